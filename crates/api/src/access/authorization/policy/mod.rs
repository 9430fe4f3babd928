//! The roles and bindings that every cluster starts with, as upstream has them.
//!
//! The tables are text in a form of their own: one rule to a line, as `verbs groups resources…`. `read` and
//! `write` stand for several verbs, `core` for the group without a name, `=x` for a resource name, and
//! `url` in the place of the groups for paths. What a table means is checked by a test for every line.

mod cluster;
mod controllers;
mod namespaces;
mod reconcile;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use super::Rule;

pub use reconcile::{Reconciled, reconcile};

const GROUP: &str = "rbac.authorization.k8s.io";
const VERSION: &str = "rbac.authorization.k8s.io/v1";
pub(super) const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const EVENTS: &str = "create,patch,update core,events.k8s.io events";

/// A cluster role and its rules.
struct Role {
    name: &'static str,
    /// The role that takes it in: `admin`, `edit` or `view`.
    part_of: Option<&'static str>,
    rules: &'static [&'static str],
}

const fn role(name: &'static str, rules: &'static [&'static str]) -> Role {
    Role {
        name,
        part_of: None,
        rules,
    }
}

/// All objects, roles before the bindings that name them.
pub fn bootstrap_policy() -> Vec<Value> {
    let mut objects = Vec::new();
    for name in ["admin", "edit", "view"] {
        objects.push(aggregating(name));
    }
    for found in cluster::ROLES {
        objects.push(cluster_role(found, found.name));
    }
    for found in controllers::ROLES {
        objects.push(cluster_role(found, &controller(found.name)));
    }
    for (role, subjects) in cluster::BINDINGS {
        objects.push(cluster_binding(role, &subjects_of(subjects)));
    }
    for found in controllers::ROLES {
        let subject = format!("account:kube-system:{}", found.name);
        objects.push(cluster_binding(
            &controller(found.name),
            &subjects_of(&[subject.as_str()]),
        ));
    }
    for (namespace, name, rules) in namespaces::ROLES {
        objects.push(json!({
            "apiVersion": VERSION,
            "kind": "Role",
            "metadata": metadata(name, Some(namespace), None),
            "rules": rules_of(rules),
        }));
    }
    for (namespace, name, role, subjects) in namespaces::BINDINGS {
        objects.push(json!({
            "apiVersion": VERSION,
            "kind": "RoleBinding",
            "metadata": metadata(name, Some(namespace), None),
            "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": role},
            "subjects": subjects_of(subjects),
        }));
    }
    objects
}

/// What the node authorizer allows every node.
pub(super) fn node_rules() -> Vec<Rule> {
    let found = cluster::ROLES
        .iter()
        .find(|role| role.name == "system:node");
    let rules = found.map_or(&[][..], |role| role.rules);
    rules.iter().map(|line| parse(line)).collect()
}

fn controller(name: &str) -> String {
    format!("system:controller:{name}")
}

fn metadata(name: &str, namespace: Option<&str>, part_of: Option<&str>) -> Value {
    let mut labels = Map::new();
    labels.insert(
        "kubernetes.io/bootstrapping".to_owned(),
        "rbac-defaults".into(),
    );
    if let Some(whole) = part_of {
        labels.insert(aggregation_label(whole), "true".into());
    }
    let mut metadata = json!({
        "name": name,
        "labels": labels,
        "annotations": {AUTOUPDATE: "true"},
    });
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    metadata
}

fn aggregation_label(whole: &str) -> String {
    format!("{GROUP}/aggregate-to-{whole}")
}

/// `view` is a part of `edit`, and `edit` one of `admin`.
fn aggregating(name: &str) -> Value {
    let part_of = match name {
        "view" => Some("edit"),
        "edit" => Some("admin"),
        _ => None,
    };
    json!({
        "apiVersion": VERSION,
        "kind": "ClusterRole",
        "metadata": metadata(name, None, part_of),
        "aggregationRule": {
            "clusterRoleSelectors": [{"matchLabels": {aggregation_label(name): "true"}}],
        },
        "rules": null,
    })
}

fn cluster_role(found: &Role, name: &str) -> Value {
    json!({
        "apiVersion": VERSION,
        "kind": "ClusterRole",
        "metadata": metadata(name, None, found.part_of),
        "rules": rules_of(found.rules),
    })
}

fn cluster_binding(role: &str, subjects: &[Value]) -> Value {
    let mut binding = json!({
        "apiVersion": VERSION,
        "kind": "ClusterRoleBinding",
        "metadata": metadata(role, None, None),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
    });
    if !subjects.is_empty() {
        binding["subjects"] = subjects.into();
    }
    binding
}

/// Subjects are written as `user:<name>`, `group:<name>` or `account:<namespace>:<name>`.
fn subjects_of(subjects: &[&str]) -> Vec<Value> {
    let parsed = subjects.iter().filter_map(|subject| {
        let (kind, name) = subject.split_once(':')?;
        Some(match kind {
            "account" => {
                let (namespace, name) = name.split_once(':')?;
                json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
            }
            "group" => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
            _ => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
        })
    });
    parsed.collect()
}

fn rules_of(lines: &[&str]) -> Vec<Value> {
    lines.iter().map(|line| parse(line).to_value()).collect()
}

/// One line of a table.
fn parse(line: &str) -> Rule {
    let mut words = line.split_whitespace();
    let verbs = words.next().unwrap_or_default();
    let groups = words.next().unwrap_or_default();
    let mut rule = Rule {
        verbs: verbs
            .split(',')
            .flat_map(verbs_of)
            .map(str::to_owned)
            .collect(),
        ..Rule::default()
    };
    if groups == "url" {
        rule.paths = words.map(str::to_owned).collect();
    } else {
        let groups = groups.split(',');
        let groups = groups.map(|group| if group == "core" { "" } else { group });
        rule.groups = groups.map(str::to_owned).collect();
        for word in words {
            match word.strip_prefix('=') {
                Some(name) => rule.names.push(name.to_owned()),
                None => rule.resources.push(word.to_owned()),
            }
        }
    }
    for list in [
        &mut rule.verbs,
        &mut rule.groups,
        &mut rule.resources,
        &mut rule.names,
        &mut rule.paths,
    ] {
        list.sort();
    }
    rule
}

fn verbs_of(word: &str) -> Vec<&str> {
    match word {
        "read" => vec!["get", "list", "watch"],
        "write" => vec!["create", "delete", "deletecollection", "patch", "update"],
        verb => vec![verb],
    }
}
