//! What a start does to the default roles and bindings that are there already.
//!
//! Missing rights and subjects come back; what somebody added stays; whoever sets the annotation to `false`
//! is left alone.

use serde_json::Value;

use super::{
    super::{Rule, escalation::missing_rights},
    AUTOUPDATE,
};

/// What to do about one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Reconciled {
    /// There is none: create the wanted one.
    Create,
    /// Write this in its place.
    Update(Value),
    /// It names another role, which cannot be changed: delete it and create the wanted one.
    Replace,
    /// It has everything.
    Keep,
    /// Its owner does not want it to be changed.
    Protected,
}

/// Compares a default object with what is stored.
pub fn reconcile(existing: Option<&Value>, wanted: &Value) -> Reconciled {
    let Some(existing) = existing else {
        return Reconciled::Create;
    };
    if existing["metadata"]["annotations"][AUTOUPDATE] == "false" {
        return Reconciled::Protected;
    }
    if wanted["roleRef"] != existing["roleRef"] {
        return Reconciled::Replace;
    }
    let mut merged = existing.clone();
    for key in ["labels", "annotations"] {
        let missing = wanted["metadata"][key].as_object().into_iter().flatten();
        for (name, value) in missing {
            if merged["metadata"][key][name.as_str()].is_null() {
                merged["metadata"][key][name.as_str()] = value.clone();
            }
        }
    }
    add_missing(&mut merged, wanted, "subjects", |list| list);
    if wanted["aggregationRule"].is_object() {
        add_missing(
            &mut merged,
            wanted,
            "aggregationRule",
            |rule| &mut rule["clusterRoleSelectors"],
        );
    } else if wanted["rules"].is_array() {
        let missing = missing_rights(&Rule::all_of(existing), &Rule::all_of(wanted));
        if !missing.is_empty() {
            let mut rules = existing["rules"].as_array().cloned().unwrap_or_default();
            rules.extend(missing.iter().map(Rule::to_value));
            merged["rules"] = rules.into();
        }
    }
    if merged == *existing {
        Reconciled::Keep
    } else {
        Reconciled::Update(merged)
    }
}

/// Adds the items of a list that are not there.
fn add_missing(
    merged: &mut Value,
    wanted: &Value,
    key: &str,
    list_in: impl Fn(&mut Value) -> &mut Value,
) {
    let mut wanted = wanted[key].clone();
    let Some(items) = list_in(&mut wanted).as_array().cloned() else {
        return;
    };
    let mut value = merged[key].clone();
    let mut list = list_in(&mut value).as_array().cloned().unwrap_or_default();
    let before = list.len();
    for item in items {
        if !list.contains(&item) {
            list.push(item);
        }
    }
    if list.len() > before {
        *list_in(&mut value) = list.into();
        merged[key] = value;
    }
}
