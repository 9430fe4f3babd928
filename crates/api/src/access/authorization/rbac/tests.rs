//! The index against what was put into it, and against a plain search.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::access::authorization::{Decision, Resource};

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..User::default()
    }
}

fn ask(name: &str, groups: &[&str], verb: &str, resource: &str, namespace: &str) -> Attributes {
    let about = Resource {
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        ..Resource::default()
    };
    Attributes::resource(user(name, groups), verb, about)
}

fn role(namespace: &str, name: &str, verb: &str, resource: &str) -> Value {
    json!({
        "metadata": {"namespace": namespace, "name": name},
        "rules": [{"apiGroups": [""], "resources": [resource], "verbs": [verb]}],
    })
}

fn binding(namespace: &str, name: &str, role: &str, subjects: &Value) -> Value {
    let (kind, role) = role.split_once('/').unwrap();
    json!({
        "metadata": {"namespace": namespace, "name": name},
        "roleRef": {"kind": kind, "name": role},
        "subjects": subjects,
    })
}

fn group(name: &str) -> Value {
    json!([{"kind": "Group", "name": name}])
}

#[test]
fn nothing_is_allowed_without_a_binding() {
    let mut index = RbacIndex::default();
    index.put(Kind::ClusterRole, &role("", "all", "*", "*"));
    let verdict = index.authorize(&ask("eve", &[], "get", "pods", "ns"));
    assert_eq!(verdict, Verdict::no_opinion(""));
}

#[test]
fn a_role_binding_counts_in_its_namespace_only() {
    let mut index = RbacIndex::default();
    index.put(Kind::ClusterRole, &role("", "reader", "get", "pods"));
    let subjects = json!([{"kind": "User", "name": "bob"}]);
    let object = binding("ns", "read", "ClusterRole/reader", &subjects);
    index.put(Kind::RoleBinding, &object);
    let allowed = index.authorize(&ask("bob", &[], "get", "pods", "ns"));
    assert_eq!(
        allowed.reason,
        r#"RBAC: allowed by RoleBinding "read/ns" of ClusterRole "reader" to User "bob""#
    );
    for namespace in ["other", ""] {
        let verdict = index.authorize(&ask("bob", &[], "get", "pods", namespace));
        assert_eq!(verdict.decision, Decision::NoOpinion, "{namespace}");
    }
    index.remove(Kind::RoleBinding, "ns", "read");
    let verdict = index.authorize(&ask("bob", &[], "get", "pods", "ns"));
    assert_eq!(verdict.decision, Decision::NoOpinion);
    assert!(index.users.is_empty() && index.groups.is_empty() && index.bindings.is_empty());
}

#[test]
fn a_service_account_is_in_the_bindings_namespace_if_nothing_is_said() {
    let mut index = RbacIndex::default();
    index.put(Kind::Role, &role("ns", "reader", "get", "pods"));
    let subjects = json!([{"kind": "ServiceAccount", "name": "sa"}]);
    let object = binding("ns", "read", "Role/reader", &subjects);
    index.put(Kind::RoleBinding, &object);
    let object = binding("", "read", "ClusterRole/reader", &subjects);
    index.put(Kind::ClusterRoleBinding, &object);
    let verdict = index.authorize(&ask(
        "system:serviceaccount:ns:sa",
        &[],
        "get",
        "pods",
        "ns",
    ));
    assert_eq!(
        verdict.reason,
        r#"RBAC: allowed by RoleBinding "read/ns" of Role "reader" to ServiceAccount "sa/ns""#
    );
    let verdict = index.authorize(&ask("system:serviceaccount:ns:sa", &[], "get", "pods", ""));
    assert_eq!(verdict, Verdict::no_opinion(""));
}

#[test]
fn a_missing_role_is_the_reason() {
    let mut index = RbacIndex::default();
    for name in ["a", "b"] {
        let object = binding("", name, "ClusterRole/gone", &group("dev"));
        index.put(Kind::ClusterRoleBinding, &object);
    }
    let verdict = index.authorize(&ask("bob", &["dev"], "get", "pods", "ns"));
    assert_eq!(
        verdict.reason,
        r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#
    );
    let object = binding("ns", "c", "Role/lost", &group("dev"));
    index.put(Kind::RoleBinding, &object);
    let verdict = index.authorize(&ask("bob", &["dev"], "get", "pods", "ns"));
    assert_eq!(
        verdict.reason,
        r#"RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "lost" not found]"#
    );
    let verdict = index.authorize(&ask("eve", &[], "get", "pods", "ns"));
    assert_eq!(verdict.reason, "");
}

#[test]
fn a_changed_binding_forgets_its_former_subjects() {
    let mut index = RbacIndex::default();
    index.put(Kind::ClusterRole, &role("", "reader", "get", "pods"));
    for subject in ["dev", "ops"] {
        let object = binding("", "read", "ClusterRole/reader", &group(subject));
        index.put(Kind::ClusterRoleBinding, &object);
    }
    let ask = |group| index.authorize(&ask("bob", &[group], "get", "pods", ""));
    assert!(!ask("dev").is_allowed());
    assert!(ask("ops").is_allowed());
}

fn labelled(name: &str, label: &str, resource: &str) -> Value {
    let mut role = role("", name, "get", resource);
    role["metadata"]["labels"] = json!({label: "true"});
    role
}

fn whole(name: &str, part_of: &str, takes: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {part_of: "true"}},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {takes: "true"}}]},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    })
}

#[test]
fn aggregated_rules_follow_labels_through_several_steps() {
    let mut index = RbacIndex::default();
    // The parts come before and after what they are parts of.
    index.put(Kind::ClusterRole, &labelled("part", "to-view", "pods"));
    index.put(Kind::ClusterRole, &whole("edit", "to-admin", "to-edit"));
    index.put(Kind::ClusterRole, &whole("view", "to-edit", "to-view"));
    index.put(Kind::ClusterRole, &labelled("more", "to-view", "services"));
    let resources = |index: &RbacIndex| -> Vec<Value> {
        let rules = index.aggregated_rules("edit").unwrap();
        rules
            .iter()
            .map(|rule| rule["resources"][0].clone())
            .collect()
    };
    assert_eq!(resources(&index), ["services", "pods"]);
    index.remove(Kind::ClusterRole, "", "more");
    assert_eq!(resources(&index), ["pods"]);
    index.put(Kind::ClusterRole, &labelled("part", "to-nothing", "pods"));
    assert!(resources(&index).is_empty());
    assert_eq!(index.aggregated_rules("part"), None);
    assert_eq!(index.aggregating().collect::<Vec<_>>(), ["edit", "view"]);
}

#[test]
fn roles_that_contain_each_other_come_to_rest() {
    let mut index = RbacIndex::default();
    index.put(Kind::ClusterRole, &whole("a", "x", "x"));
    index.put(Kind::ClusterRole, &whole("b", "x", "x"));
    index.put(Kind::ClusterRole, &labelled("c", "x", "pods"));
    assert_eq!(index.aggregated_rules("a"), index.aggregated_rules("b"));
    assert_eq!(index.aggregated_rules("a").unwrap().len(), 1);
}

#[test]
fn selectors_that_cannot_be_understood_choose_nothing() {
    let mut index = RbacIndex::default();
    index.put(Kind::ClusterRole, &labelled("part", "x", "secrets"));
    let choose = |operator: &str, values: Value| {
        json!({"metadata": {"name": "whole"}, "aggregationRule": {"clusterRoleSelectors": [
            {"matchExpressions": [{"key": "x", "operator": operator, "values": values}]},
        ]}})
    };
    for (operator, values, count) in [
        ("In", json!(["true"]), 1),
        ("In", json!([]), 0),
        ("NotIn", json!(["true"]), 0),
        ("NotIn", json!(["false"]), 1),
        ("Exists", json!(null), 1),
        ("DoesNotExist", json!(null), 0),
        ("Matches", json!(["true"]), 0),
    ] {
        index.put(Kind::ClusterRole, &choose(operator, values));
        let rules = index.aggregated_rules("whole").unwrap();
        assert_eq!(rules.len(), count, "{operator}");
    }
}

#[test]
fn objects_of_a_strange_form_give_no_rights() {
    let mut index = RbacIndex::default();
    for object in [
        json!(null),
        json!({"rules": {}}),
        json!({"subjects": "all"}),
    ] {
        for kind in [
            Kind::Role,
            Kind::ClusterRole,
            Kind::RoleBinding,
            Kind::ClusterRoleBinding,
        ] {
            index.put(kind, &object);
        }
    }
    let verdict = index.authorize(&ask("", &[""], "", "", ""));
    assert!(!verdict.is_allowed());
}

/// A change to a small world of roles and bindings.
#[derive(Clone, Debug)]
enum Step {
    Put(Kind, Value),
    Remove(Kind, String, String),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let small = |letters: &'static [&'static str]| proptest::sample::select(letters);
    let names = small(&["a", "b"]);
    let places = small(&["", "n", "m"]);
    let verbs = small(&["get", "list", "*"]);
    let resources = small(&["pods", "secrets", "*"]);
    let subjects = small(&["User", "Group", "ServiceAccount"]);
    let put = (
        names.clone(),
        places.clone(),
        verbs,
        resources,
        subjects,
        names.clone(),
        any::<bool>(),
    );
    let put = put.prop_map(|(name, place, verb, resource, kind, other, is_role)| {
        match (is_role, place) {
            (true, "") => Step::Put(Kind::ClusterRole, role("", name, verb, resource)),
            (true, place) => Step::Put(Kind::Role, role(place, name, verb, resource)),
            (false, place) => {
                let subjects = json!([{"kind": kind, "name": other, "namespace": "n"}]);
                let role = if place.is_empty() || name == "a" {
                    format!("ClusterRole/{other}")
                } else {
                    format!("Role/{other}")
                };
                let object = binding(place, name, &role, &subjects);
                let kind = if place.is_empty() {
                    Kind::ClusterRoleBinding
                } else {
                    Kind::RoleBinding
                };
                Step::Put(kind, object)
            }
        }
    });
    let remove = (names, places, any::<bool>()).prop_map(|(name, place, is_role)| {
        let kind = match (is_role, place.is_empty()) {
            (true, true) => Kind::ClusterRole,
            (true, false) => Kind::Role,
            (false, true) => Kind::ClusterRoleBinding,
            (false, false) => Kind::RoleBinding,
        };
        Step::Remove(kind, place.to_owned(), name.to_owned())
    });
    proptest::collection::vec(prop_oneof![3 => put, 1 => remove], 0..30)
}

/// What RBAC means, as a search through everything.
fn plainly(objects: &[(Kind, Value)], asked: &Attributes, namespace: &str) -> bool {
    let bindings = objects.iter().filter(|(kind, object)| match kind {
        Kind::ClusterRoleBinding => true,
        Kind::RoleBinding => !namespace.is_empty() && object["metadata"]["namespace"] == namespace,
        _ => false,
    });
    let mut allowed = false;
    for (_, bound) in bindings {
        let subject = &bound["subjects"][0];
        let name = subject["name"].as_str().unwrap();
        let applies = match subject["kind"].as_str().unwrap() {
            "User" => asked.user.name == name,
            "Group" => asked.user.is_in(name),
            _ => asked.user.name == format!("system:serviceaccount:n:{name}"),
        };
        let cluster = bound["roleRef"]["kind"] == "ClusterRole";
        let role = objects.iter().find(|(kind, object)| {
            object["metadata"]["name"] == bound["roleRef"]["name"]
                && match kind {
                    Kind::ClusterRole => cluster,
                    Kind::Role => {
                        !cluster
                            && object["metadata"]["namespace"] == bound["metadata"]["namespace"]
                    }
                    _ => false,
                }
        });
        if let Some((_, role)) = role
            && applies
        {
            let rules = Rule::all_of(role);
            allowed |= rules[0].allows(&asked.verb, &asked.target);
        }
    }
    allowed
}

proptest! {
    #[test]
    fn the_index_answers_like_a_search_through_everything(steps in steps()) {
        let mut index = RbacIndex::default();
        let mut objects: Vec<(Kind, Value)> = Vec::new();
        let at = |object: &Value| {
            let text = |key: &str| object["metadata"][key].as_str().unwrap().to_owned();
            (text("namespace"), text("name"))
        };
        for step in steps {
            match step {
                Step::Put(kind, object) => {
                    index.put(kind, &object);
                    objects.retain(|(other, old)| (*other, at(old)) != (kind, at(&object)));
                    objects.push((kind, object));
                }
                Step::Remove(kind, namespace, name) => {
                    index.remove(kind, &namespace, &name);
                    objects.retain(|(other, old)| {
                        (*other, at(old)) != (kind, (namespace.clone(), name.clone()))
                    });
                }
            }
        }
        for name in ["a", "system:serviceaccount:n:b"] {
            for namespace in ["", "n", "m"] {
                for resource in ["pods", "secrets"] {
                    let asked = ask(name, &["b"], "get", resource, namespace);
                    let verdict = index.authorize(&asked);
                    prop_assert_eq!(verdict.is_allowed(), plainly(&objects, &asked, namespace));
                }
            }
        }
    }
}
