//! Which rules a cluster role has that is made of others. Pure, so every case is a unit test.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::rbac::v1::{ClusterRole, PolicyRule},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::ResourceExt as _;

/// The rules that a role must get; `None` if it is not made of others, or has them already.
pub(super) fn plan_rules(role: &ClusterRole, all: &[Arc<ClusterRole>]) -> Option<Vec<PolicyRule>> {
    let selectors = role
        .aggregation_rule
        .as_ref()?
        .cluster_role_selectors
        .as_deref();
    let mut parts: Vec<&Arc<ClusterRole>> = all.iter().collect();
    parts.sort_by_key(|part| part.name_any());
    let own = role.name_any();
    let mut rules: Vec<PolicyRule> = Vec::new();
    for selector in selectors.unwrap_or_default() {
        for part in &parts {
            if part.name_any() == own || !selects(selector, part.labels()) {
                continue;
            }
            for rule in part.rules.as_deref().unwrap_or_default() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    (rules.as_slice() != role.rules.as_deref().unwrap_or_default()).then_some(rules)
}

/// Whether labels fit; a selector that says nothing fits all.
fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector
        .match_labels
        .iter()
        .flatten()
        .all(|(name, value)| labels.get(name) == Some(value));
    equal
        && selector
            .match_expressions
            .iter()
            .flatten()
            .all(|expression| {
                let value = labels.get(&expression.key);
                let is_listed = value.is_some_and(|value| {
                    expression.values.iter().flatten().any(|one| one == value)
                });
                match expression.operator.as_str() {
                    "In" => is_listed,
                    "NotIn" => !is_listed,
                    "Exists" => value.is_some(),
                    "DoesNotExist" => value.is_none(),
                    _ => false,
                }
            })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn role(value: Value) -> ClusterRole {
        serde_json::from_value(value).unwrap()
    }

    fn part(name: &str, label: &str, resources: &[&str]) -> Arc<ClusterRole> {
        let rules: Vec<Value> = resources
            .iter()
            .map(|resource| json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]}))
            .collect();
        Arc::new(role(json!({
            "metadata": {"name": name, "labels": {"to": label}},
            "rules": rules,
        })))
    }

    fn whole(selectors: &Value, rules: &Value) -> ClusterRole {
        role(json!({
            "metadata": {"name": "whole", "labels": {"to": "view"}},
            "aggregationRule": {"clusterRoleSelectors": selectors},
            "rules": rules,
        }))
    }

    fn resources(rules: &[PolicyRule]) -> Vec<String> {
        let lists = rules.iter().map(|rule| rule.resources.clone().unwrap());
        lists.flatten().collect()
    }

    #[test]
    fn a_whole_has_the_rules_of_its_parts_by_their_names_and_each_once() {
        let wanted = whole(
            &json!([{"matchLabels": {"to": "view"}}, {"matchExpressions": [{"key": "to", "operator": "In", "values": ["edit"]}]}]),
            &json!([]),
        );
        let all = [
            part("b", "view", &["pods", "nodes"]),
            part("a", "view", &["services", "pods"]),
            part("c", "edit", &["secrets"]),
            part("d", "other", &["leases"]),
            Arc::new(whole(&json!([]), &json!([{"verbs": ["*"]}]))),
        ];
        let rules = plan_rules(&wanted, &all).unwrap();
        assert_eq!(resources(&rules), ["services", "pods", "nodes", "secrets"]);
        let settled = ClusterRole {
            rules: Some(rules),
            ..wanted
        };
        assert_eq!(plan_rules(&settled, &all), None);
        // A part that goes takes its rules with it.
        let left = plan_rules(&settled, &all[..2]).unwrap();
        assert_eq!(resources(&left), ["services", "pods", "nodes"]);
    }

    #[test]
    fn a_role_of_its_own_is_left_alone() {
        let own = part("own", "view", &["pods"]);
        assert_eq!(plan_rules(&own, &[part("a", "view", &["nodes"])]), None);
    }

    #[test]
    fn selectors_are_understood() {
        let labels: BTreeMap<String, String> = [("a".to_owned(), "1".to_owned())].into();
        let fits = |value: Value| selects(&serde_json::from_value(value).unwrap(), &labels);
        let term = |operator: &str, key: &str| json!({"matchExpressions": [{"key": key, "operator": operator, "values": ["1"]}]});
        assert!(fits(json!({})));
        assert!(fits(term("In", "a")) && !fits(term("In", "b")));
        assert!(fits(term("NotIn", "b")) && !fits(term("NotIn", "a")));
        assert!(fits(term("Exists", "a")) && !fits(term("Exists", "b")));
        assert!(fits(term("DoesNotExist", "b")) && !fits(term("DoesNotExist", "a")));
        assert!(!fits(term("Guess", "a")));
        assert!(!fits(json!({"matchLabels": {"a": "2"}})));
    }
}
