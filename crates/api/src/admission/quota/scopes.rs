//! Which objects a quota is about.

use serde_json::Value;

use super::Attributes;
use crate::validation::{amounts, read::Read};

/// Whether a quota with this spec counts an object.
pub(super) fn select(spec: &Value, request: &Attributes, object: &Value) -> bool {
    let kind = if request.group.is_empty() {
        request.kind.as_str()
    } else {
        ""
    };
    let plain = spec
        .texts("scopes")
        .all(|scope| fits(scope, kind, object, "Exists", &[]));
    plain
        && spec["scopeSelector"]
            .items("matchExpressions")
            .iter()
            .all(|each| {
                let values: Vec<&str> = each.texts("values").collect();
                fits(
                    each.text("scopeName"),
                    kind,
                    object,
                    each.text("operator"),
                    &values,
                )
            })
}

fn fits(scope: &str, kind: &str, object: &Value, operator: &str, values: &[&str]) -> bool {
    let spec = &object["spec"];
    if scope == "VolumeAttributesClass" {
        return kind == "PersistentVolumeClaim"
            && is_chosen(spec.text("volumeAttributesClassName"), operator, values);
    }
    if kind != "Pod" {
        return false;
    }
    let best_effort = || amounts::quality_of_service(spec) == "BestEffort";
    match scope {
        "Terminating" => spec.has("activeDeadlineSeconds"),
        "NotTerminating" => !spec.has("activeDeadlineSeconds"),
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "PriorityClass" => is_chosen(spec.text("priorityClassName"), operator, values),
        "CrossNamespacePodAffinity" => crosses_namespaces(&spec["affinity"]),
        _ => false,
    }
}

fn is_chosen(name: &str, operator: &str, values: &[&str]) -> bool {
    match operator {
        "In" => values.contains(&name),
        "NotIn" => !values.contains(&name),
        "DoesNotExist" => name.is_empty(),
        _ => !name.is_empty(),
    }
}

/// Whether a pod wants to be near pods of other namespaces, or far from them.
fn crosses_namespaces(affinity: &Value) -> bool {
    let far = |term: &Value| !term.items("namespaces").is_empty() || term.has("namespaceSelector");
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let terms = &affinity[*kind];
        terms
            .items("requiredDuringSchedulingIgnoredDuringExecution")
            .iter()
            .any(far)
            || terms
                .items("preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(|term| far(&term["podAffinityTerm"]))
    })
}
