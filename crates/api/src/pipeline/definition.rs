//! Definitions of custom resources: their names are accepted, or not, in the same write.
//!
//! Upstream does this a moment later in a controller, so its clients must wait; here an accepted definition is
//! served when the write returns.

use serde_json::{Value, json};

use crate::{object, state::Api, validation::read::Read as _};

/// Objects of a definition go before it does: the controller takes this mark off.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Marks a definition that is to stay.
fn keep_until_empty(definition: &mut Value) {
    if object::is_being_deleted(definition) || object::finalizers(definition).contains(&FINALIZER) {
        return;
    }
    let mut finalizers: Vec<Value> = object::finalizers(definition)
        .into_iter()
        .map(Value::from)
        .collect();
    finalizers.push(FINALIZER.into());
    object::set_metadata(definition, "finalizers", Some(finalizers.into()));
}

/// What a definition asks for that does not happen here: it is kept, and its writer is told.
pub(super) fn warnings(definition: &Value) -> Vec<String> {
    let spec = &definition["spec"];
    let mut warnings = Vec::new();
    for (index, version) in spec.items("versions").iter().enumerate() {
        if has_rules(&version["schema"]["openAPIV3Schema"]) {
            warnings.push(format!(
                "spec.versions[{index}].schema.openAPIV3Schema: rules of x-kubernetes-validations are kept and not evaluated"
            ));
        }
    }
    if spec["conversion"].text("strategy") == "Webhook" {
        warnings.push(
            "spec.conversion.strategy: webhooks are not supported; objects of all versions have the same fields"
                .to_owned(),
        );
    }
    warnings
}

/// Whether a schema, or one inside of it, has rules.
fn has_rules(schema: &Value) -> bool {
    let inside = |field: &str| schema.items(field).iter().any(has_rules);
    !schema.items("x-kubernetes-validations").is_empty()
        || schema.entries("properties").values().any(has_rules)
        || ["items", "additionalProperties", "not"]
            .iter()
            .any(|field| schema[*field].is_object() && has_rules(&schema[*field]))
        || ["allOf", "anyOf", "oneOf"]
            .iter()
            .any(|field| inside(field))
}

/// Sets the status of a definition: accepted names, conditions, stored versions.
pub(super) fn accept(api: &Api, definition: &mut Value) {
    keep_until_empty(definition);
    let kind = definition["spec"]["names"]["kind"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let names = object::as_map(&mut definition["spec"]["names"]);
    names
        .entry("singular")
        .or_insert_with(|| kind.to_lowercase().into());
    names
        .entry("listKind")
        .or_insert_with(|| format!("{kind}List").into());
    let now = object::time(api.now());
    let conflict = name_conflict(api, definition);
    let (status, reason, message) = match &conflict {
        None => ("True", "NoConflicts", "no conflicts found".to_owned()),
        Some((reason, message)) => ("False", *reason, message.clone()),
    };
    let established = if conflict.is_none() {
        (
            "True",
            "InitialNamesAccepted",
            "the initial names have been accepted",
        )
    } else {
        ("False", "NotAccepted", "not all names are accepted")
    };
    let mut conditions = vec![
        json!({"type": "NamesAccepted", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": now}),
        json!({"type": "Established", "status": established.0, "reason": established.1,
            "message": established.2, "lastTransitionTime": now}),
    ];
    let before = definition["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for condition in &mut conditions {
        let same = before
            .iter()
            .find(|old| old["type"] == condition["type"] && old["status"] == condition["status"]);
        if let Some(old) = same {
            condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
        }
    }
    let others = before
        .into_iter()
        .filter(|old| old["type"] != "NamesAccepted" && old["type"] != "Established");
    conditions.extend(others);
    let stored = stored_versions(definition);
    if conflict.is_none() {
        definition["status"]["acceptedNames"] = definition["spec"]["names"].clone();
    } else if definition["status"]["acceptedNames"].is_null() {
        definition["status"]["acceptedNames"] = json!({"kind": "", "plural": ""});
    }
    definition["status"]["conditions"] = conditions.into();
    definition["status"]["storedVersions"] = stored.into();
}

/// The versions in which objects may be stored: all that ever were, and the one of now.
fn stored_versions(definition: &Value) -> Vec<Value> {
    let mut stored = definition["status"]["storedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let versions = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten();
    for version in versions.filter(|version| version["storage"] == true) {
        if !stored.contains(&version["name"]) {
            stored.push(version["name"].clone());
        }
    }
    stored
}

/// A name that another kind of the same group has.
fn name_conflict(api: &Api, definition: &Value) -> Option<(&'static str, String)> {
    let own = object::name(definition);
    let group = definition["spec"]["group"].as_str()?;
    let names = &definition["spec"]["names"];
    let kinds = api.registry.kinds();
    let others = kinds.iter().filter(|kind| {
        kind.group == group
            && kind
                .custom
                .as_ref()
                .is_none_or(|custom| custom.definition != own)
    });
    let wanted: Vec<&str> = [&names["plural"], &names["singular"]]
        .into_iter()
        .chain(names["shortNames"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    for other in others {
        let taken = |name: &str| {
            other.plural == name
                || other.singular == name
                || other.short_names.iter().any(|short| short == name)
        };
        if let Some(name) = wanted.iter().find(|name| taken(name)) {
            return Some(("PluralConflict", format!("{name:?} is already in use")));
        }
        for field in ["kind", "listKind"] {
            let name = names[field].as_str().unwrap_or_default();
            if other.kind == name || other.list_kind == name {
                return Some(("KindConflict", format!("{name:?} is already in use")));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_schema(schema: &Value) -> Value {
        json!({"spec": {"versions": [
            {"name": "v1"}, {"name": "v2", "schema": {"openAPIV3Schema": schema}},
        ]}})
    }

    #[test]
    fn rules_are_found_wherever_they_are() {
        let rules = json!([{"rule": "self > 0"}]);
        let checked = json!({"type": "integer", "x-kubernetes-validations": rules});
        for schema in [
            checked.clone(),
            json!({"properties": {"a": {"items": checked}}}),
            json!({"additionalProperties": {"allOf": [checked]}}),
        ] {
            let found = warnings(&with_schema(&schema));
            assert_eq!(found.len(), 1, "{schema}");
            assert!(found[0].starts_with("spec.versions[1]."), "{}", found[0]);
        }
        // A field may have the name of the rules.
        let named = json!({"properties": {"x-kubernetes-validations": {"type": "array"}}});
        assert_eq!(warnings(&with_schema(&named)), Vec::<String>::new());
    }
}
