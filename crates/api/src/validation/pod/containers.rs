//! Containers: regular, initial and ephemeral ones.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Context, environment, handlers, mounts, resources, security};
use crate::{
    field::{FieldError, Path},
    validation::{
        fault::{Faults, Report},
        formats,
        read::Read,
    },
};

const ONLY_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";
const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// The containers that make up the pod. Their names differ, and so do their host ports.
pub(super) fn regular(faults: &mut Faults, context: &Context<'_>, path: &Path) {
    let containers = context.spec.items("containers");
    if containers.is_empty() {
        faults.required(path, "");
        return;
    }
    let mut names = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        common(faults, context, container, &path);
        if !names.insert(container.text("name")) {
            faults.push(FieldError::duplicate(
                &path.child("name"),
                container.text("name"),
            ));
        }
        handlers::all(faults, context, container, &path);
        restart_policy(faults, container, &path);
    }
    host_port_conflicts(faults, containers, path);
}

/// Containers that run one after the other, or stay beside the others (sidecars).
pub(super) fn initial(faults: &mut Faults, context: &Context<'_>, path: &Path) {
    let mut names: BTreeSet<&str> = context
        .spec
        .items("containers")
        .iter()
        .map(|container| container.text("name"))
        .collect();
    for (index, container) in context.spec.items("initContainers").iter().enumerate() {
        let container_path = path.index(index);
        common(faults, context, container, &container_path);
        restart_policy(faults, container, &container_path);
        let name = container.text("name");
        if names.contains(name) {
            faults.push(FieldError::duplicate(&container_path.child("name"), name));
        } else if !name.is_empty() {
            names.insert(name);
        }
        host_port_conflicts(faults, std::slice::from_ref(container), path);
        if container.text("restartPolicy") == "Always" {
            handlers::all(faults, context, container, &container_path);
        } else {
            for field in [
                "lifecycle",
                "livenessProbe",
                "readinessProbe",
                "startupProbe",
            ] {
                if container.has(field) {
                    faults.forbidden(&container_path.child(field), ONLY_SIDECARS);
                }
            }
        }
    }
}

/// Containers that somebody adds to a running pod to look into it.
pub(super) fn ephemeral(faults: &mut Faults, context: &Context<'_>, path: &Path) {
    let others: BTreeSet<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| context.spec.items(list))
        .map(|container| container.text("name"))
        .collect();
    let mut names = others.clone();
    for (index, container) in context.spec.items("ephemeralContainers").iter().enumerate() {
        let path = path.index(index);
        common(faults, context, container, &path);
        image_without_spaces(faults, container, &path);
        let name = container.text("name");
        if !names.insert(name) {
            faults.push(FieldError::duplicate(&path.child("name"), name));
        }
        let target = container.text("targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            faults.push(FieldError::not_found(
                &path.child("targetContainerName"),
                target,
            ));
        }
        ephemeral_fields(faults, container, &path);
    }
}

fn ephemeral_fields(faults: &mut Faults, container: &Value, path: &Path) {
    if !container.items("ports").is_empty() {
        faults.forbidden(&path.child("ports"), NOT_EPHEMERAL);
    }
    if !container.entries("resources").is_empty() {
        faults.forbidden(&path.child("resources"), NOT_EPHEMERAL);
    }
    if !container.items("resizePolicy").is_empty() {
        faults.forbidden(&path.child("resizePolicy"), NOT_EPHEMERAL);
    }
    for field in [
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ] {
        if container.has(field) {
            faults.forbidden(&path.child(field), NOT_EPHEMERAL);
        }
    }
    for (index, mount) in container.items("volumeMounts").iter().enumerate() {
        for field in ["subPath", "subPathExpr"] {
            if !mount.text(field).is_empty() {
                faults.forbidden(
                    &path.child("volumeMounts").index(index).child(field),
                    NOT_EPHEMERAL,
                );
            }
        }
    }
}

fn common(faults: &mut Faults, context: &Context<'_>, container: &Value, path: &Path) {
    let name = container.text("name");
    if name.is_empty() {
        faults.required(&path.child("name"), "");
    } else {
        faults.messages(&path.child("name"), name, formats::label(name));
    }
    if container.text("image").is_empty() {
        faults.required(&path.child("image"), "");
    }
    faults.required_choice(
        &path.child("terminationMessagePolicy"),
        container.text("terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
    );
    ports(faults, container, &path.child("ports"));
    environment::variables(faults, container, &path.child("env"));
    environment::sources(faults, container, &path.child("envFrom"));
    mounts::mounts(faults, context, container, &path.child("volumeMounts"));
    mounts::devices(faults, context, container, &path.child("volumeDevices"));
    pull_policy(
        faults,
        container.text("imagePullPolicy"),
        &path.child("imagePullPolicy"),
    );
    resources::requirements(
        faults,
        &container["resources"],
        Some(context.spec),
        &path.child("resources"),
    );
    resize_policy(faults, context, container, &path.child("resizePolicy"));
    security::container(
        faults,
        &container["securityContext"],
        context.host_users(),
        &path.child("securityContext"),
    );
}

pub(super) fn pull_policy(faults: &mut Faults, policy: &str, path: &Path) {
    faults.required_choice(path, policy, &["Always", "IfNotPresent", "Never"]);
}

/// Pods do not have what templates may have for old reasons.
pub(super) fn image_without_spaces(faults: &mut Faults, container: &Value, path: &Path) {
    let image = container.text("image");
    if image.trim() != image {
        faults.invalid(
            &path.child("image"),
            image,
            "must not have leading or trailing whitespace",
        );
    }
}

fn ports(faults: &mut Faults, container: &Value, path: &Path) {
    let mut names = BTreeSet::new();
    for (index, port) in container.items("ports").iter().enumerate() {
        let path = path.index(index);
        let name = port.text("name");
        if !name.is_empty() {
            let messages = formats::port_name(name);
            if messages.is_empty() && !names.insert(name) {
                faults.push(FieldError::duplicate(&path.child("name"), name));
            }
            faults.messages(&path.child("name"), name, messages);
        }
        let number = port.number("containerPort");
        if number == 0 {
            faults.required(&path.child("containerPort"), "");
        } else {
            faults.messages(
                &path.child("containerPort"),
                number,
                formats::port_number(number),
            );
        }
        let host = port.number("hostPort");
        if host != 0 {
            faults.messages(&path.child("hostPort"), host, formats::port_number(host));
        }
        faults.required_choice(
            &path.child("protocol"),
            port.text("protocol"),
            &["SCTP", "TCP", "UDP"],
        );
    }
}

fn host_port_conflicts(faults: &mut Faults, containers: &[Value], path: &Path) {
    let mut taken = BTreeSet::new();
    for (container_index, container) in containers.iter().enumerate() {
        for (index, port) in container.items("ports").iter().enumerate() {
            let number = port.number("hostPort");
            if number == 0 {
                continue;
            }
            let key = format!("{}/{}/{number}", port.text("protocol"), port.text("hostIP"));
            if !taken.insert(key.clone()) {
                faults.push(FieldError::duplicate(
                    &path
                        .index(container_index)
                        .child("ports")
                        .index(index)
                        .child("hostPort"),
                    key,
                ));
            }
        }
    }
}

/// When a container is restarted, other than its pod says.
fn restart_policy(faults: &mut Faults, container: &Value, path: &Path) {
    let rules = container.items("restartPolicyRules");
    let policy_path = path.child("restartPolicy");
    match container.maybe_text("restartPolicy") {
        Some(policy) if !["Always", "Never", "OnFailure"].contains(&policy) => {
            faults.push(FieldError::not_supported(
                &policy_path,
                policy,
                &["Always", "Never", "OnFailure"],
            ));
        }
        Some(_) => {}
        None if !rules.is_empty() => faults.required(
            &policy_path,
            "must specify restartPolicy when restart rules are used",
        ),
        None => {}
    }
    let path = path.child("restartPolicyRules");
    if rules.len() > 20 {
        faults.push(FieldError::too_many(&path, rules.len(), 20));
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        if rule.text("action") != "Restart" {
            faults.push(FieldError::not_supported(
                &path.child("action"),
                rule.text("action"),
                &["Restart"],
            ));
        }
        let path = path.child("exitCodes");
        if !rule.has("exitCodes") {
            faults.required(&path, "must be specified");
            continue;
        }
        let codes = &rule["exitCodes"];
        if !["In", "NotIn"].contains(&codes.text("operator")) {
            faults.push(FieldError::not_supported(
                &path.child("operator"),
                codes.text("operator"),
                &["In", "NotIn"],
            ));
        }
        let values = codes.items("values");
        if values.is_empty() {
            faults.required(&path.child("values"), "must be specified");
        } else if values.len() > 255 {
            faults.push(FieldError::too_many(
                &path.child("values"),
                values.len(),
                255,
            ));
        }
    }
}

fn resize_policy(faults: &mut Faults, context: &Context<'_>, container: &Value, path: &Path) {
    let mut seen = BTreeSet::new();
    for (index, policy) in container.items("resizePolicy").iter().enumerate() {
        let resource = policy.text("resourceName");
        if !seen.insert(resource) {
            faults.push(FieldError::duplicate(&path.index(index), resource));
        }
        faults.required_choice(path, resource, &["cpu", "memory"]);
        let restart = policy.text("restartPolicy");
        faults.required_choice(path, restart, &["NotRequired", "RestartContainer"]);
        if context.restart_policy() == "Never" && restart != "NotRequired" {
            faults.invalid(
                path,
                restart,
                "must be 'NotRequired' when `restartPolicy` is 'Never'",
            );
        }
    }
}
