//! Roles and who has them.

use serde_json::Value;

use super::{
    fault::{Faults, Report},
    formats,
    metadata::{self, NameRule, Scope},
    read::Read,
    selector,
};
use crate::field::{FieldError, Path};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(faults: &mut Faults, role: &Value, scope: Scope) {
    metadata::create(faults, role, scope, NameRule::PathSegment);
    for (index, rule) in role.items("rules").iter().enumerate() {
        self::rule(
            faults,
            rule,
            scope == Scope::Namespaced,
            &Path::new("rules").index(index),
        );
    }
    let path = Path::new("aggregationRule").child("clusterRoleSelectors");
    let aggregation = &role["aggregationRule"];
    if !aggregation.is_null() && aggregation.items("clusterRoleSelectors").is_empty() {
        faults.required(
            &path,
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
        );
    }
    for (index, each) in aggregation.items("clusterRoleSelectors").iter().enumerate() {
        selector::validate(faults, each, &path.index(index));
    }
}

fn rule(faults: &mut Faults, rule: &Value, namespaced: bool, path: &Path) {
    let has = |field: &str| !rule.items(field).is_empty();
    if !has("verbs") {
        faults.required(
            &path.child("verbs"),
            "verbs must contain at least one value",
        );
    }
    if has("nonResourceURLs") {
        let path = path.child("nonResourceURLs");
        let shown = rule["nonResourceURLs"].clone();
        if namespaced {
            faults.invalid(
                &path,
                shown.clone(),
                "namespaced rules cannot apply to non-resource URLs",
            );
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            faults.invalid(
                &path,
                shown,
                "rules cannot apply to both regular resources and non-resource URLs",
            );
        }
        return;
    }
    if !has("apiGroups") {
        faults.required(
            &path.child("apiGroups"),
            "resource rules must supply at least one api group",
        );
    }
    if !has("resources") {
        faults.required(
            &path.child("resources"),
            "resource rules must supply at least one resource",
        );
    }
}

pub(super) fn binding(faults: &mut Faults, binding: &Value, scope: Scope) {
    metadata::create(faults, binding, scope, NameRule::PathSegment);
    let path = Path::new("roleRef");
    let role = &binding["roleRef"];
    if role.text("apiGroup") != GROUP {
        faults.push(FieldError::not_supported(
            &path.child("apiGroup"),
            role.text("apiGroup"),
            &[GROUP],
        ));
    }
    let kinds: &[&str] = if scope == Scope::Namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !kinds.contains(&role.text("kind")) {
        faults.push(FieldError::not_supported(
            &path.child("kind"),
            role.text("kind"),
            kinds,
        ));
    }
    let name = role.text("name");
    if name.is_empty() {
        faults.required(&path.child("name"), "");
    } else {
        faults.messages(&path.child("name"), name, formats::path_segment(name));
    }
    for (index, subject) in binding.items("subjects").iter().enumerate() {
        self::subject(
            faults,
            subject,
            scope == Scope::Namespaced,
            &Path::new("subjects").index(index),
        );
    }
}

fn subject(faults: &mut Faults, subject: &Value, namespaced: bool, path: &Path) {
    let name = subject.text("name");
    let group = subject.text("apiGroup");
    if name.is_empty() {
        faults.required(&path.child("name"), "");
    }
    match subject.text("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                faults.messages(&path.child("name"), name, formats::subdomain(name));
            }
            if !group.is_empty() {
                faults.push(FieldError::not_supported(
                    &path.child("apiGroup"),
                    group,
                    &[""],
                ));
            }
            if !namespaced && subject.text("namespace").is_empty() {
                faults.required(&path.child("namespace"), "");
            }
        }
        kind @ ("User" | "Group") => {
            if name.is_empty() {
                faults.invalid(
                    &path.child("name"),
                    name,
                    format!("{} name cannot be empty", kind.to_lowercase()),
                );
            }
            if group != GROUP {
                faults.push(FieldError::not_supported(
                    &path.child("apiGroup"),
                    group,
                    &[GROUP],
                ));
            }
        }
        other => faults.push(FieldError::not_supported(
            &path.child("kind"),
            other,
            &["ServiceAccount", "User", "Group"],
        )),
    }
}

pub(super) fn binding_update(faults: &mut Faults, new: &Value, old: &Value, scope: Scope) {
    binding(faults, new, scope);
    metadata::update(faults, new, old);
    if new["roleRef"] != old["roleRef"] {
        faults.invalid(
            &Path::new("roleRef"),
            new["roleRef"].clone(),
            "cannot change roleRef",
        );
    }
}
