//! When and where a pod may run: gates, tolerations and spreading.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::{FieldError, Path},
    validation::{
        fault::{Faults, NOT_POSITIVE, Report},
        formats, metadata,
        read::Read,
        selector,
    },
};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Conditions before a pod is ready, and before it is scheduled.
pub(super) fn gates(faults: &mut Faults, spec: &Value, path: &Path) {
    for (index, gate) in spec.items("readinessGates").iter().enumerate() {
        let kind = gate.text("conditionType");
        faults.messages(
            &path
                .child("readinessGates")
                .index(index)
                .child("conditionType"),
            kind,
            formats::qualified_name(kind),
        );
    }
    let mut seen = BTreeSet::new();
    for (index, gate) in spec.items("schedulingGates").iter().enumerate() {
        let path = path.child("schedulingGates").index(index);
        let name = gate.text("name");
        faults.messages(&path, name, formats::qualified_name(name));
        if !seen.insert(name) {
            faults.push(FieldError::duplicate(&path, name));
        }
    }
}

/// What a taint does to pods that do not tolerate it.
pub(in crate::validation) fn taint_effect(
    faults: &mut Faults,
    effect: &str,
    may_be_empty: bool,
    path: &Path,
) {
    if effect.is_empty() {
        if !may_be_empty {
            faults.required(path, "");
        }
    } else if !EFFECTS.contains(&effect) {
        faults.push(FieldError::not_supported(path, effect, &EFFECTS));
    }
}

pub(in crate::validation) fn tolerations(faults: &mut Faults, tolerations: &[Value], path: &Path) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let path = path.index(index);
        let key = toleration.text("key");
        let operator = toleration.text("operator");
        let effect = toleration.text("effect");
        if !key.is_empty() {
            metadata::label_name(faults, key, &path.child("key"));
        } else if operator != "Exists" {
            faults.invalid(
                &path.child("operator"),
                operator,
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            );
        }
        if toleration.has("tolerationSeconds") && effect != "NoExecute" {
            faults.invalid(
                &path.child("effect"),
                effect,
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            );
        }
        toleration_value(faults, operator, toleration.text("value"), &path);
        taint_effect(faults, effect, true, &path.child("effect"));
    }
}

fn toleration_value(faults: &mut Faults, operator: &str, value: &str, path: &Path) {
    let path = path.child("operator");
    match operator {
        "Equal" | "" => {
            let messages = formats::label_value(value);
            if !messages.is_empty() {
                faults.invalid(&path, value, messages.join(";"));
            }
        }
        "Exists" => {
            if !value.is_empty() {
                faults.invalid(
                    &path,
                    value,
                    "value must be empty when `operator` is 'Exists'",
                );
            }
        }
        other => faults.push(FieldError::not_supported(
            &path,
            other,
            &["Equal", "Exists"],
        )),
    }
}

/// How evenly pods are to be spread.
pub(super) fn spread(faults: &mut Faults, spec: &Value, path: &Path) {
    let constraints = spec.items("topologySpreadConstraints");
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        let skew = constraint.number("maxSkew");
        if skew <= 0 {
            faults.invalid(&path.child("maxSkew"), skew, NOT_POSITIVE);
        }
        let key = constraint.text("topologyKey");
        if key.is_empty() {
            faults.required(&path.child("topologyKey"), "can not be empty");
        }
        let action = constraint.text("whenUnsatisfiable");
        if !["DoNotSchedule", "ScheduleAnyway"].contains(&action) {
            faults.push(FieldError::not_supported(
                &path.child("whenUnsatisfiable"),
                action,
                &["DoNotSchedule", "ScheduleAnyway"],
            ));
        }
        let repeated = constraints[index + 1..].iter().any(|other| {
            other.text("topologyKey") == key && other.text("whenUnsatisfiable") == action
        });
        if repeated {
            faults.push(FieldError::duplicate(
                &path.child("{topologyKey, whenUnsatisfiable}"),
                format!("{{{key}, {action}}}"),
            ));
        }
        if let Some(domains) = constraint.maybe_number("minDomains") {
            let path = path.child("minDomains");
            if domains <= 0 {
                faults.invalid(&path, domains, NOT_POSITIVE);
            }
            if action != "DoNotSchedule" {
                faults.invalid(
                    &path,
                    domains,
                    format!(
                        "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                    ),
                );
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            faults.choice(&path.child(field), &constraint[field], &["Honor", "Ignore"]);
        }
        spread_keys(faults, constraint, &path.child("matchLabelKeys"));
        selector::validate(
            faults,
            &constraint["labelSelector"],
            &path.child("labelSelector"),
        );
    }
}

fn spread_keys(faults: &mut Faults, constraint: &Value, path: &Path) {
    if constraint.items("matchLabelKeys").is_empty() {
        return;
    }
    let selector = &constraint["labelSelector"];
    if selector.is_null() {
        faults.forbidden(path, "must not be specified when labelSelector is not set");
    }
    for (index, key) in constraint.texts("matchLabelKeys").enumerate() {
        let path = path.index(index);
        metadata::label_name(faults, key, &path);
        let selected = selector.entries("matchLabels").contains_key(key)
            || selector
                .items("matchExpressions")
                .iter()
                .any(|each| each.text("key") == key);
        if selected {
            faults.invalid(
                &path,
                key,
                "exists in both matchLabelKeys and labelSelector",
            );
        }
    }
}
