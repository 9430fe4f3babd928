//! Nobody gives away rights that they do not have.
//!
//! Whoever writes a role or a binding must hold every right in it, unless they may `escalate` or `bind`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Attributes, RbacIndex, Resource, Rule,
    rbac::Kind,
    rule::{path_fits, resource_fits},
};
use crate::{
    access::{
        authentication::{User, group},
        quoted,
    },
    status::ApiError,
};

const GROUP: &str = "rbac.authorization.k8s.io";
/// A role with more single rights than this is not taken apart but refused.
const MOST_RIGHTS: usize = 1 << 16;

impl Kind {
    fn resource(self) -> &'static str {
        match self {
            Self::Role => "roles",
            Self::ClusterRole => "clusterroles",
            Self::RoleBinding => "rolebindings",
            Self::ClusterRoleBinding => "clusterrolebindings",
        }
    }
}

/// Whether `user` may write this role or binding. `authorize` answers whether they may `escalate` or `bind`;
/// `old` is the object before, if there was one.
pub fn check_escalation(
    index: &RbacIndex,
    kind: Kind,
    object: &Value,
    old: Option<&Value>,
    user: &User,
    authorize: impl Fn(&Attributes) -> bool,
) -> Result<(), ApiError> {
    if user.is_in(group::MASTERS) || old.is_some_and(|old| only_lets_go(object, old)) {
        return Ok(());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = text(&object["metadata"]["namespace"]);
    let name = text(&object["metadata"]["name"]);
    let ask = |verb: &str, resource: &str, name: &str| {
        authorize(&Attributes::resource(
            user.clone(),
            verb,
            Resource {
                group: GROUP.to_owned(),
                version: "v1".to_owned(),
                resource: resource.to_owned(),
                namespace: namespace.clone(),
                name: name.to_owned(),
                ..Resource::default()
            },
        ))
    };
    let refuse = |why: &str| ApiError::forbidden(GROUP, kind.resource(), &name, why);
    let rules = match kind {
        Kind::Role | Kind::ClusterRole => {
            if ask("escalate", kind.resource(), &name) {
                return Ok(());
            }
            Rule::all_of(object)
        }
        Kind::RoleBinding | Kind::ClusterRoleBinding => {
            let (role_kind, role) = (
                text(&object["roleRef"]["kind"]),
                text(&object["roleRef"]["name"]),
            );
            let resource = if role_kind == "Role" {
                "roles"
            } else {
                "clusterroles"
            };
            if ask("bind", resource, &role) {
                return Ok(());
            }
            let found = index.rules_of(&role_kind, &role, &namespace);
            found
                .map_err(|_| ApiError::not_found(GROUP, resource, &role))?
                .to_vec()
        }
    };
    confirm(index, user, &namespace, &rules).map_err(|why| refuse(&why))?;
    let aggregates = |role: &Value| role["aggregationRule"].is_object();
    if aggregates(object) || old.is_some_and(aggregates) {
        let everything = [full_authority(true), full_authority(false)];
        let why = "must have cluster-admin privileges to use the aggregationRule";
        confirm(index, user, &namespace, &everything).map_err(|_| refuse(why))?;
    }
    Ok(())
}

/// An update that changes only what stands in the way of a deletion gives nothing away. Labels are not among
/// that: a label can make a role a part of another.
fn only_lets_go(new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for key in [
                "finalizers",
                "managedFields",
                "ownerReferences",
                "resourceVersion",
            ] {
                metadata.remove(key);
            }
        }
        object
    };
    rest(new) == rest(old)
}

fn full_authority(of_resources: bool) -> Rule {
    let all = || vec!["*".to_owned()];
    let mut rule = Rule {
        verbs: all(),
        ..Rule::default()
    };
    if of_resources {
        rule.groups = all();
        rule.resources = all();
    } else {
        rule.paths = all();
    }
    rule
}

/// Checks that a user holds every right in `wanted`, or says which ones are missing.
fn confirm(index: &RbacIndex, user: &User, namespace: &str, wanted: &[Rule]) -> Result<(), String> {
    let (held, faults) = index.rules_for(user, namespace);
    let count = wanted
        .iter()
        .fold(0_usize, |sum, rule| sum.saturating_add(rights_in(rule)));
    if count > MOST_RIGHTS {
        return Err(format!(
            "the role has more than {MOST_RIGHTS} single rights"
        ));
    }
    let missing = missing_rights(&held, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let described: BTreeSet<String> = missing.iter().map(Rule::compact).collect();
    let described: Vec<String> = described.into_iter().collect();
    let text = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        described.join("\n")
    );
    Err(if faults.is_empty() {
        text
    } else {
        format!("{text}; resolution errors: [{}]", faults.join(" "))
    })
}

/// The rights in `wanted` that `held` does not give.
pub(super) fn missing_rights(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let mut missing = BTreeSet::new();
    for rule in wanted {
        for right in single_rights(rule) {
            if !held.iter().any(|rule| covers(rule, &right)) {
                missing.insert(right);
            }
        }
    }
    join_verbs(missing)
}

fn rights_in(rule: &Rule) -> usize {
    let of_resources = rule
        .groups
        .len()
        .saturating_mul(rule.resources.len())
        .saturating_mul(rule.names.len().max(1));
    of_resources
        .saturating_add(rule.paths.len())
        .saturating_mul(rule.verbs.len())
}

/// A rule taken apart: each part has one verb, and one path or one group, one resource and at most one name.
fn single_rights(rule: &Rule) -> Vec<Rule> {
    let one = |text: &String| vec![text.clone()];
    let no_name = [String::new()];
    let names = if rule.names.is_empty() {
        &no_name[..]
    } else {
        &rule.names[..]
    };
    let mut rights = Vec::new();
    for verb in &rule.verbs {
        for path in &rule.paths {
            rights.push(Rule {
                verbs: one(verb),
                paths: one(path),
                ..Rule::default()
            });
        }
        for group in &rule.groups {
            for resource in &rule.resources {
                for name in names {
                    rights.push(Rule {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        names: if name.is_empty() {
                            Vec::new()
                        } else {
                            one(name)
                        },
                        paths: Vec::new(),
                    });
                }
            }
        }
    }
    rights
}

/// Whether a rule gives a single right, stars included: only a star covers a star.
fn covers(rule: &Rule, right: &Rule) -> bool {
    let has_all = |held: &[String], wanted: &[String]| {
        held.iter().any(|item| item == "*") || wanted.iter().all(|item| held.contains(item))
    };
    let resources = right.resources.iter().all(|wanted| {
        let (main, sub) = wanted.split_once('/').unwrap_or((wanted, ""));
        let fits = |pattern: &String| {
            pattern == wanted
                || (main != "*" && resource_fits(pattern, main, sub))
                || pattern == "*"
        };
        rule.resources.iter().any(fits)
    });
    let paths = right.paths.iter().all(|wanted| {
        let mut patterns = rule.paths.iter();
        patterns.any(|pattern| pattern == wanted || path_fits(pattern, wanted))
    });
    let names = rule.names.is_empty()
        || (!right.names.is_empty() && right.names.iter().all(|name| rule.names.contains(name)));
    has_all(&rule.verbs, &right.verbs)
        && has_all(&rule.groups, &right.groups)
        && resources
        && paths
        && names
}

/// Rights that differ in the verb only, as one.
fn join_verbs(rights: BTreeSet<Rule>) -> Vec<Rule> {
    let mut joined: Vec<Rule> = Vec::new();
    for right in rights {
        let same = joined.iter_mut().find(|rule| {
            rule.groups == right.groups
                && rule.resources == right.resources
                && rule.paths == right.paths
                && rule.names == right.names
        });
        match same {
            Some(rule) => rule.verbs.extend(right.verbs),
            None => joined.push(right),
        }
    }
    joined
}
