//! The kinds that keep pods running: deployments, replica sets, daemon sets, stateful sets.

use serde_json::{Value, json};

use super::{
    fault::{Faults, Report, same},
    formats,
    metadata::{self, NameRule, Scope},
    pod,
    read::Read,
    selector,
};
use crate::field::{FieldError, Path};

const MISMATCH: &str = "`selector` does not match template `labels`";

/// A number, or a percentage.
pub(super) fn number_or_percentage(faults: &mut Faults, value: &Value, path: &Path) {
    match value {
        Value::String(text) => {
            faults.messages(path, text.as_str(), formats::percentage(text));
        }
        _ => metadata::number(faults, value.as_i64().unwrap_or_default(), path),
    }
}

fn percentage(value: &Value) -> Option<i64> {
    value.as_str()?.strip_suffix('%')?.parse().ok()
}

pub(super) fn not_more_than_all(faults: &mut Faults, value: &Value, path: &Path) {
    if percentage(value).is_some_and(|percentage| percentage > 100) {
        faults.invalid(path, value.clone(), "must not be greater than 100%");
    }
}

/// What a number is, or a percentage that is written like one.
fn is_nothing(value: &Value) -> bool {
    percentage(value)
        .or_else(|| value.as_i64())
        .unwrap_or_default()
        == 0
}

fn selector(faults: &mut Faults, spec: &Value, path: &Path, empty: &str) {
    let selector = &spec["selector"];
    let path = path.child("selector");
    if selector.is_null() {
        faults.required(&path, "");
        return;
    }
    selector::validate(faults, selector, &path);
    if selector::is_empty(selector) {
        faults.invalid(&path, selector.clone(), empty);
    }
}

/// The template of pods that are started again when they end.
fn lasting_template(faults: &mut Faults, spec: &Value, path: &Path, kind: &str) {
    let template = &spec["template"];
    let path = path.child("template");
    if template.is_null() {
        faults.required(&path, "");
        return;
    }
    let labels = template["metadata"].entries("labels");
    let chosen = &spec["selector"];
    if !selector::is_empty(chosen) && !selector::matches(chosen, labels) {
        faults.invalid(
            &path.child("metadata").child("labels"),
            labels.clone(),
            MISMATCH,
        );
    }
    pod::template(faults, template, &path);
    always_restarted(faults, &template["spec"], &path.child("spec"), kind);
}

fn always_restarted(faults: &mut Faults, spec: &Value, path: &Path, kind: &str) {
    if spec.text("restartPolicy") != "Always" {
        faults.push(FieldError::not_supported(
            &path.child("restartPolicy"),
            spec.text("restartPolicy"),
            &["Always"],
        ));
    }
    if spec.has("activeDeadlineSeconds") {
        faults.forbidden(
            &path.child("activeDeadlineSeconds"),
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        );
    }
}

pub(super) fn deployment(faults: &mut Faults, deployment: &Value) {
    metadata::create(faults, deployment, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &deployment["spec"];
    faults.not_negative(spec, &path, &["replicas"]);
    selector(
        faults,
        spec,
        &path,
        "empty selector is invalid for deployment",
    );
    lasting_template(faults, spec, &path, "ReplicaSet");
    strategy(faults, &spec["strategy"], &path.child("strategy"));
    faults.not_negative(
        spec,
        &path,
        &[
            "minReadySeconds",
            "revisionHistoryLimit",
            "progressDeadlineSeconds",
        ],
    );
    if let Some(deadline) = spec.maybe_number("progressDeadlineSeconds")
        && deadline <= spec.number("minReadySeconds")
    {
        faults.invalid(
            &path.child("progressDeadlineSeconds"),
            deadline,
            "must be greater than minReadySeconds",
        );
    }
}

fn strategy(faults: &mut Faults, strategy: &Value, path: &Path) {
    let rolling = &strategy["rollingUpdate"];
    let rolling_path = path.child("rollingUpdate");
    match strategy.text("type") {
        "Recreate" => {
            if !rolling.is_null() {
                faults.forbidden(
                    &rolling_path,
                    "may not be specified when strategy `type` is 'Recreate'",
                );
            }
        }
        "RollingUpdate" => {
            if rolling.is_null() {
                faults.required(&rolling_path, "this should be defaulted and never be nil");
                return;
            }
            let unavailable_path = rolling_path.child("maxUnavailable");
            number_or_percentage(faults, &rolling["maxUnavailable"], &unavailable_path);
            number_or_percentage(
                faults,
                &rolling["maxSurge"],
                &rolling_path.child("maxSurge"),
            );
            if is_nothing(&rolling["maxUnavailable"]) && is_nothing(&rolling["maxSurge"]) {
                faults.invalid(
                    &unavailable_path,
                    rolling["maxUnavailable"].clone(),
                    "may not be 0 when `maxSurge` is 0",
                );
            }
            not_more_than_all(faults, &rolling["maxUnavailable"], &unavailable_path);
        }
        other => faults.push(FieldError::not_supported(
            &path.child("type"),
            other,
            &["Recreate", "RollingUpdate"],
        )),
    }
}

pub(super) fn replica_set(faults: &mut Faults, set: &Value) {
    metadata::create(faults, set, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &set["spec"];
    faults.not_negative(spec, &path, &["replicas", "minReadySeconds"]);
    selector(
        faults,
        spec,
        &path,
        "empty selector is invalid for deployment",
    );
    lasting_template(faults, spec, &path, "ReplicaSet");
}

pub(super) fn replication_controller(faults: &mut Faults, controller: &Value) {
    metadata::create(faults, controller, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &controller["spec"];
    faults.not_negative(spec, &path, &["minReadySeconds"]);
    if spec.entries("selector").is_empty() {
        faults.required(&path.child("selector"), "");
    }
    faults.not_negative(spec, &path, &["replicas"]);
    // Here the selector is a plain map of labels.
    let labels = json!({"matchLabels": spec.entries("selector"), });
    let shaped = json!({"selector": labels, "template": spec["template"]});
    lasting_template(faults, &shaped, &path, "ReplicationController");
}

pub(super) fn daemon_set(faults: &mut Faults, set: &Value) {
    metadata::create(faults, set, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &set["spec"];
    let chosen = &spec["selector"];
    selector::validate(faults, chosen, &path.child("selector"));
    if chosen.is_null() {
        faults.required(&path.child("selector"), "");
    }
    let labels = spec["template"]["metadata"].entries("labels");
    if !chosen.is_null() && !selector::is_empty(chosen) && !selector::matches(chosen, labels) {
        faults.invalid(
            &path.child("template").child("metadata").child("labels"),
            labels.clone(),
            MISMATCH,
        );
    }
    if !chosen.is_null() && selector::is_empty(chosen) {
        faults.invalid(
            &path.child("selector"),
            chosen.clone(),
            "empty selector is invalid for daemonset",
        );
    }
    let template_path = path.child("template");
    pod::template(faults, &spec["template"], &template_path);
    always_restarted(
        faults,
        &spec["template"]["spec"],
        &template_path.child("spec"),
        "DaemonSet",
    );
    faults.not_negative(spec, &path, &["minReadySeconds"]);
    daemon_strategy(
        faults,
        &spec["updateStrategy"],
        &path.child("updateStrategy"),
    );
    faults.not_negative(spec, &path, &["revisionHistoryLimit"]);
}

fn daemon_strategy(faults: &mut Faults, strategy: &Value, path: &Path) {
    match strategy.text("type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = &strategy["rollingUpdate"];
            let path = path.child("rollingUpdate");
            if rolling.is_null() {
                faults.required(&path, "");
                return;
            }
            for field in ["maxUnavailable", "maxSurge"] {
                number_or_percentage(faults, &rolling[field], &path.child(field));
                not_more_than_all(faults, &rolling[field], &path.child(field));
            }
            match (
                is_nothing(&rolling["maxUnavailable"]),
                is_nothing(&rolling["maxSurge"]),
            ) {
                (true, true) => faults.required(
                    &path.child("maxUnavailable"),
                    "cannot be 0 when maxSurge is 0",
                ),
                (false, false) => faults.invalid(
                    &path.child("maxSurge"),
                    rolling["maxSurge"].clone(),
                    "may not be set when maxUnavailable is non-zero",
                ),
                _ => {}
            }
        }
        other => faults.push(FieldError::not_supported(
            &path.child("type"),
            other,
            &["RollingUpdate", "OnDelete"],
        )),
    }
}

pub(super) fn stateful_set(faults: &mut Faults, set: &Value) {
    metadata::create(faults, set, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &set["spec"];
    match spec.text("podManagementPolicy") {
        "" => faults.required(&path.child("podManagementPolicy"), ""),
        "OrderedReady" | "Parallel" => {}
        other => faults.invalid(
            &path.child("podManagementPolicy"),
            other,
            "must be 'OrderedReady' or 'Parallel'",
        ),
    }
    stateful_strategy(
        faults,
        &spec["updateStrategy"],
        &path.child("updateStrategy"),
    );
    let policy = &spec["persistentVolumeClaimRetentionPolicy"];
    for field in ["whenDeleted", "whenScaled"] {
        faults.choice(
            &path
                .child("persistentVolumeClaimRetentionPolicy")
                .child(field),
            &policy[field],
            &["Delete", "Retain"],
        );
    }
    faults.not_negative(spec, &path, &["replicas", "minReadySeconds"]);
    faults.not_negative(&spec["ordinals"], &path.child("ordinals"), &["start"]);
    selector(
        faults,
        spec,
        &path,
        "empty selector is invalid for statefulset",
    );
    lasting_template(faults, &with_claims(spec), &path, "StatefulSet");
    let service = spec.text("serviceName");
    if !service.is_empty() {
        faults.messages(
            &path.child("serviceName"),
            service,
            formats::old_label(service),
        );
    }
    faults.not_negative(spec, &path, &["revisionHistoryLimit"]);
}

/// The spec as its pods will have it: with a volume for each claim that is made for them.
fn with_claims(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let mut volumes: Vec<Value> = spec["template"]["spec"].items("volumes").to_vec();
    let names: Vec<String> = spec
        .items("volumeClaimTemplates")
        .iter()
        .map(|claim| claim["metadata"].text("name").to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        return spec;
    }
    // A volume of the same name gives way to the claim.
    volumes.retain(|volume| !names.iter().any(|name| name == volume.text("name")));
    volumes.extend(
        names
            .iter()
            .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}})),
    );
    if let Some(template) = spec
        .pointer_mut("/template/spec")
        .and_then(Value::as_object_mut)
    {
        template.insert("volumes".to_owned(), volumes.into());
    }
    spec
}

fn stateful_strategy(faults: &mut Faults, strategy: &Value, path: &Path) {
    let rolling = &strategy["rollingUpdate"];
    let rolling_path = path.child("rollingUpdate");
    match strategy.text("type") {
        "" => faults.required(path, ""),
        "OnDelete" => {
            if !rolling.is_null() {
                faults.invalid(
                    &rolling_path,
                    rolling.clone(),
                    "only allowed for updateStrategy 'RollingUpdate'",
                );
            }
        }
        "RollingUpdate" => {
            faults.not_negative(rolling, &rolling_path, &["partition"]);
            if rolling.has("maxUnavailable") {
                let path = rolling_path.child("maxUnavailable");
                number_or_percentage(faults, &rolling["maxUnavailable"], &path);
                if is_nothing(&rolling["maxUnavailable"]) {
                    faults.invalid(&path, rolling["maxUnavailable"].clone(), "cannot be 0");
                }
                not_more_than_all(faults, &rolling["maxUnavailable"], &path);
            }
        }
        _ => faults.invalid(
            path,
            strategy.clone(),
            "must be 'RollingUpdate' or 'OnDelete'",
        ),
    }
}

/// Which pods a controller has does not change.
pub(super) fn selector_kept(faults: &mut Faults, new: &Value, old: &Value) {
    if !same(&new["spec"]["selector"], &old["spec"]["selector"]) {
        faults.invalid(
            &Path::new("spec").child("selector"),
            new["spec"]["selector"].clone(),
            super::fault::IMMUTABLE,
        );
    }
}

pub(super) fn stateful_set_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    stateful_set(faults, new);
    let changeable = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let rest = |set: &Value| {
        let mut spec = set["spec"].clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|name, _| !changeable.contains(&name.as_str()));
        }
        spec
    };
    if !same(&rest(new), &rest(old)) {
        faults.forbidden(
            &Path::new("spec"),
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
}

/// The counts in a status: not negative, and none larger than the number of replicas.
pub(super) fn status(faults: &mut Faults, new: &Value, old: &Value, kind: &str) {
    metadata::update(faults, new, old);
    let path = Path::new("status");
    let status = &new["status"];
    let counts: &[&str] = match kind {
        "Deployment" => &["updatedReplicas", "readyReplicas", "availableReplicas"],
        "StatefulSet" => &[
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
        ],
        "DaemonSet" => {
            faults.not_negative(
                status,
                &path,
                &[
                    "currentNumberScheduled",
                    "numberMisscheduled",
                    "desiredNumberScheduled",
                    "numberReady",
                    "updatedNumberScheduled",
                    "numberAvailable",
                    "numberUnavailable",
                ],
            );
            &[]
        }
        _ => &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
    };
    faults.not_negative(status, &path, &["replicas"]);
    faults.not_negative(status, &path, counts);
    faults.not_negative(status, &path, &["observedGeneration"]);
    for count in counts {
        if status.number(count) > status.number("replicas") {
            faults.invalid(
                &path.child(count),
                status.number(count),
                "cannot be greater than status.replicas",
            );
        }
    }
    if status.number("availableReplicas") > status.number("readyReplicas") {
        faults.invalid(
            &path.child("availableReplicas"),
            status.number("availableReplicas"),
            "cannot be greater than readyReplicas",
        );
    }
    let collisions = |object: &Value| object["status"].maybe_number("collisionCount");
    if collisions(new).unwrap_or_default() < collisions(old).unwrap_or_default() {
        faults.invalid(
            &path.child("collisionCount"),
            collisions(new).unwrap_or_default(),
            "cannot be decremented",
        );
    }
}

pub(super) fn revision(faults: &mut Faults, revision: &Value) {
    metadata::create(faults, revision, Scope::Namespaced, NameRule::Subdomain);
    if !revision.has("data") {
        faults.required(&Path::new("data"), "data is mandatory");
    }
    metadata::number(faults, revision.number("revision"), &Path::new("revision"));
}

pub(super) fn revision_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    revision(faults, new);
    faults.immutable(&Path::new("data"), &new["data"], &old["data"]);
}
