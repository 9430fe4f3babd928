//! Jobs and cron jobs: pods that end.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    cron,
    fault::{Faults, IMMUTABLE, Report, same},
    formats,
    metadata::{self, NameRule, Scope},
    pod,
    read::Read,
    selector,
};
use crate::field::{FieldError, Path};

const MOST_INDEXED: i64 = 100_000;
const MOST_RULES: usize = 20;
const MOST_CODES: usize = 255;

pub(super) fn job(faults: &mut Faults, job: &Value) {
    metadata::create(faults, job, Scope::Namespaced, NameRule::Subdomain);
    generated_selector(faults, job);
    let path = Path::new("spec");
    let spec = &job["spec"];
    job_spec(faults, spec, &path);
    selector_fits(faults, spec, &path);
    let indexed = spec.text("completionMode") == "Indexed";
    if indexed && spec.number("completions") > 0 {
        let last = spec.number("completions") - 1;
        let name = job["metadata"].text("name");
        for message in formats::label(&format!("{name}-{last}")) {
            faults.invalid(
                &Path::new("metadata").child("name"),
                name,
                format!(
                    "will not able to create pod with invalid DNS label {name}-{last}: {message}"
                ),
            );
        }
    }
}

/// Labels that tell the pods of this job from all others, unless somebody chose other ones.
fn generated_selector(faults: &mut Faults, job: &Value) {
    if job["spec"].flag("manualSelector") || !job["spec"].has("selector") {
        return;
    }
    let (id, name) = (job["metadata"].text("uid"), job["metadata"].text("name"));
    if id.is_empty() {
        faults.required(&Path::new("metadata").child("uid"), "");
    }
    let path = Path::new("spec")
        .child("template")
        .child("metadata")
        .child("labels");
    let template = &job["spec"]["template"]["metadata"];
    let expected = [
        ("controller-uid", id),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", id),
        ("batch.kubernetes.io/job-name", name),
    ];
    for (key, value) in expected {
        match template["labels"].maybe_text(key) {
            None => faults.required(&path.key(key), &format!("must be '{value}'")),
            Some(other) if other != value => faults.invalid(
                &path.key(key),
                template["labels"].clone(),
                format!("must be '{value}'"),
            ),
            Some(_) => {}
        }
    }
    let labels = expected
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    if !selector::matches(&job["spec"]["selector"], &labels) {
        faults.invalid(
            &Path::new("spec").child("selector"),
            job["spec"]["selector"].clone(),
            "`selector` not auto-generated",
        );
    }
}

fn selector_fits(faults: &mut Faults, spec: &Value, path: &Path) {
    let chosen = &spec["selector"];
    if chosen.is_null() {
        faults.required(&path.child("selector"), "");
        return;
    }
    selector::validate(faults, chosen, &path.child("selector"));
    let labels = spec["template"]["metadata"].entries("labels");
    if !selector::matches(chosen, labels) {
        faults.invalid(
            &path.child("template").child("metadata").child("labels"),
            labels.clone(),
            "`selector` does not match template `labels`",
        );
    }
}

fn job_spec(faults: &mut Faults, spec: &Value, path: &Path) {
    faults.not_negative(
        spec,
        path,
        &[
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
        ],
    );
    indexed(faults, spec, path);
    if let Some(manager) = spec.maybe_text("managedBy") {
        let path = path.child("managedBy");
        faults.extend(formats::domain_prefixed_path(manager, &path));
        if manager.len() > 63 {
            faults.push(FieldError::too_long(&path, 63));
        }
    }
    let template_path = path.child("template");
    pod::template(faults, &spec["template"], &template_path);
    restart_policy(faults, spec, &template_path);
    if spec.has("podFailurePolicy") {
        failure_policy(faults, spec, &path.child("podFailurePolicy"));
    }
    faults.choice(
        &path.child("podReplacementPolicy"),
        &spec["podReplacementPolicy"],
        &["Failed", "TerminatingOrFailed"],
    );
    if spec.has("podFailurePolicy") && spec.text("podReplacementPolicy") == "TerminatingOrFailed" {
        faults.push(FieldError::not_supported(
            &path.child("podReplacementPolicy"),
            "TerminatingOrFailed",
            &["Failed"],
        ));
    }
    if spec.has("successPolicy") {
        success_policy(faults, spec, &path.child("successPolicy"));
    }
}

fn indexed(faults: &mut Faults, spec: &Value, path: &Path) {
    let mode = spec.text("completionMode");
    faults.choice(
        &path.child("completionMode"),
        &spec["completionMode"],
        &["Indexed", "NonIndexed"],
    );
    if mode == "Indexed" {
        if !spec.has("completions") {
            faults.required(
                &path.child("completions"),
                "when completion mode is Indexed",
            );
        }
        let parallelism = spec.number("parallelism");
        if parallelism > MOST_INDEXED {
            faults.invalid(
                &path.child("parallelism"),
                parallelism,
                format!(
                    "must be less than or equal to {MOST_INDEXED} when completion mode is Indexed"
                ),
            );
        }
        if spec.number("maxFailedIndexes") > spec.number("completions") {
            faults.invalid(
                &path.child("maxFailedIndexes"),
                spec.number("maxFailedIndexes"),
                "must be less than or equal to completions",
            );
        }
    } else {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if spec.has(field) {
                faults.invalid(
                    &path.child(field),
                    spec[field].clone(),
                    "requires indexed completion mode",
                );
            }
        }
    }
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        faults.required(
            &path.child("backoffLimitPerIndex"),
            "when maxFailedIndexes is specified",
        );
    }
}

fn restart_policy(faults: &mut Faults, spec: &Value, path: &Path) {
    let path = path.child("spec").child("restartPolicy");
    match spec["template"]["spec"].text("restartPolicy") {
        // What nobody chose is `Always` by default.
        "" | "Always" => faults.required(&path, "valid values: \"OnFailure\", \"Never\""),
        policy @ ("OnFailure" | "Never") => {
            if spec.has("podFailurePolicy") && policy != "Never" {
                faults.invalid(
                    &path,
                    policy,
                    "only \"Never\" is supported when podFailurePolicy is specified",
                );
            }
        }
        other => faults.push(FieldError::not_supported(
            &path,
            other,
            &["OnFailure", "Never"],
        )),
    }
}

fn failure_policy(faults: &mut Faults, spec: &Value, path: &Path) {
    let path = path.child("rules");
    let rules = spec["podFailurePolicy"].items("rules");
    if rules.len() > MOST_RULES {
        faults.push(FieldError::too_many(&path, rules.len(), MOST_RULES));
    }
    let names: BTreeSet<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| spec["template"]["spec"].items(list))
        .map(|container| container.text("name"))
        .collect();
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        let action = rule.text("action");
        faults.required_choice(
            &path.child("action"),
            action,
            &["Count", "FailIndex", "FailJob", "Ignore"],
        );
        if action == "FailIndex" && !spec.has("backoffLimitPerIndex") {
            faults.invalid(
                &path.child("action"),
                action,
                "requires the backoffLimitPerIndex to be set",
            );
        }
        let codes = rule.has("onExitCodes");
        let conditions = !rule.items("onPodConditions").is_empty();
        if codes && conditions {
            faults.invalid(
                &path,
                "",
                "specifying both OnExitCodes and OnPodConditions is not supported",
            );
        } else if !codes && !conditions {
            faults.invalid(
                &path,
                "",
                "specifying one of OnExitCodes and OnPodConditions is required",
            );
        }
        if codes {
            exit_codes(
                faults,
                &rule["onExitCodes"],
                &names,
                &path.child("onExitCodes"),
            );
        }
        pod_conditions(faults, rule, &path.child("onPodConditions"));
    }
}

fn exit_codes(faults: &mut Faults, codes: &Value, names: &BTreeSet<&str>, path: &Path) {
    let operator = codes.text("operator");
    faults.required_choice(&path.child("operator"), operator, &["In", "NotIn"]);
    if let Some(name) = codes.maybe_text("containerName")
        && !names.contains(name)
    {
        faults.invalid(
            &path.child("containerName"),
            name,
            "must be one of the container or initContainer names in the pod template",
        );
    }
    let path = path.child("values");
    let values = codes.items("values");
    if values.is_empty() {
        faults.invalid(
            &path,
            codes["values"].clone(),
            "at least one value is required",
        );
    } else if values.len() > MOST_CODES {
        faults.push(FieldError::too_many(&path, values.len(), MOST_CODES));
    }
    let mut before: Option<i64> = None;
    let mut ordered = true;
    for (index, value) in values.iter().enumerate() {
        let code = value.as_i64().unwrap_or_default();
        if operator == "In" && code == 0 {
            faults.invalid(
                &path.index(index),
                code,
                "must not be 0 for the In operator",
            );
        }
        match before {
            Some(other) if other == code => {
                faults.push(FieldError::duplicate(&path.index(index), code));
            }
            Some(other) if other > code => ordered = false,
            _ => {}
        }
        before = Some(code);
    }
    if !ordered {
        faults.invalid(&path, codes["values"].clone(), "must be ordered");
    }
}

fn pod_conditions(faults: &mut Faults, rule: &Value, path: &Path) {
    let conditions = rule.items("onPodConditions");
    if conditions.len() > MOST_RULES {
        faults.push(FieldError::too_many(path, conditions.len(), MOST_RULES));
    }
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let kind = condition.text("type");
        faults.messages(&path.child("type"), kind, formats::qualified_name(kind));
        faults.required_choice(
            &path.child("status"),
            condition.text("status"),
            &["False", "True", "Unknown"],
        );
    }
}

fn success_policy(faults: &mut Faults, spec: &Value, path: &Path) {
    if spec.text("completionMode") != "Indexed" {
        faults.invalid(
            path,
            spec["successPolicy"].clone(),
            "requires indexed completion mode",
        );
        return;
    }
    let path = path.child("rules");
    let rules = spec["successPolicy"].items("rules");
    if rules.is_empty() {
        faults.required(
            &path,
            "at least one rules must be specified when the successPolicy is specified",
        );
    } else if rules.len() > MOST_RULES {
        faults.push(FieldError::too_many(&path, rules.len(), MOST_RULES));
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        if !rule.has("succeededIndexes") && !rule.has("succeededCount") {
            faults.required(
                &path,
                "at least one of succeededCount or succeededIndexes must be specified",
            );
        }
        faults.not_negative(rule, &path, &["succeededCount"]);
        if rule.number("succeededCount") > spec.number("completions") {
            faults.invalid(
                &path.child("succeededCount"),
                rule.number("succeededCount"),
                format!(
                    "must be less than or equal to {} (the number of specified completions)",
                    spec.number("completions")
                ),
            );
        }
    }
}

pub(super) fn job_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    let path = Path::new("spec");
    let (after, before) = (&new["spec"], &old["spec"]);
    job_spec(faults, after, &path);
    selector_fits(faults, after, &path);
    completions(faults, after, before, &path.child("completions"));
    let mut keep = |field: &str| {
        if !same(&after[field], &before[field]) {
            faults.invalid(&path.child(field), after[field].clone(), IMMUTABLE);
        }
    };
    keep("selector");
    for field in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        keep(field);
    }
    template_kept(faults, new, old, &path.child("template"));
}

/// The number of completions may follow parallelism in indexed jobs.
fn completions(faults: &mut Faults, after: &Value, before: &Value, path: &Path) {
    if after["completions"] == before["completions"] {
        return;
    }
    if before.text("completionMode") != "Indexed" {
        faults.invalid(path, after["completions"].clone(), IMMUTABLE);
    } else if after["completions"] != after["parallelism"] {
        faults.invalid(
            path,
            after["completions"].clone(),
            "can only be modified in tandem with parallelism to maintain equality in completions and parallelism"
        );
    }
}

/// While a job is suspended and has not started, where its pods run may still change.
fn template_kept(faults: &mut Faults, new: &Value, old: &Value, path: &Path) {
    let open = old["spec"].flag("suspend") && !old["status"].has("startTime");
    let without_placement = |job: &Value| {
        let mut template = job["spec"]["template"].clone();
        if open {
            for field in ["nodeSelector", "affinity", "tolerations", "schedulingGates"] {
                if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
                    spec.remove(field);
                }
            }
            for field in ["labels", "annotations"] {
                if let Some(meta) = template.get_mut("metadata").and_then(Value::as_object_mut) {
                    meta.remove(field);
                }
            }
        }
        template
    };
    if !same(&without_placement(new), &without_placement(old)) {
        faults.invalid(path, new["spec"]["template"].clone(), IMMUTABLE);
    }
}

pub(super) fn job_status(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    faults.not_negative(
        &new["status"],
        &Path::new("status"),
        &["active", "succeeded", "failed", "ready", "terminating"],
    );
}

pub(super) fn cron_job(faults: &mut Faults, job: &Value) {
    metadata::create(faults, job, Scope::Namespaced, NameRule::ShortSubdomain);
    cron_spec(faults, &job["spec"], true);
}

fn cron_spec(faults: &mut Faults, spec: &Value, is_new: bool) {
    let path = Path::new("spec");
    let schedule = spec.text("schedule");
    let schedule_path = path.child("schedule");
    if schedule.is_empty() {
        faults.required(&schedule_path, "");
    } else {
        if let Err(reason) = cron::schedule(schedule) {
            faults.invalid(&schedule_path, schedule, reason);
        }
        if schedule.contains("TZ") {
            let zoned = spec.has("timeZone");
            if zoned {
                faults.invalid(
                    &schedule_path,
                    schedule,
                    "cannot use both timeZone field and TZ or CRON_TZ in schedule",
                );
            } else if is_new {
                faults.invalid(
                    &schedule_path,
                    schedule,
                    "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
                );
            }
        }
    }
    faults.not_negative(spec, &path, &["startingDeadlineSeconds"]);
    cron::time_zone(faults, spec.maybe_text("timeZone"), &path.child("timeZone"));
    faults.required_choice(
        &path.child("concurrencyPolicy"),
        spec.text("concurrencyPolicy"),
        &["Allow", "Forbid", "Replace"],
    );
    let template_path = path.child("jobTemplate").child("spec");
    let template = &spec["jobTemplate"]["spec"];
    job_spec(faults, template, &template_path);
    if template.has("selector") {
        faults.invalid(
            &template_path.child("selector"),
            template["selector"].clone(),
            "`selector` will be auto-generated",
        );
    }
    if template.flag("manualSelector") {
        faults.push(FieldError::not_supported(
            &template_path.child("manualSelector"),
            true,
            &["nil", "false"],
        ));
    }
    faults.not_negative(
        spec,
        &path,
        &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"],
    );
}

pub(super) fn cron_job_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    cron_spec(faults, &new["spec"], false);
}
