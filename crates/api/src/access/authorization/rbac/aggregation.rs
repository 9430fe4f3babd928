//! Cluster roles that are made of others, chosen by their labels.
//!
//! The rules of an aggregating role are computed here and are right at once; what its object says was
//! computed by somebody before, and is not looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use crate::access::authorization::Rule;

/// One cluster role.
#[derive(Debug)]
pub(super) struct ClusterRole {
    rules: Arc<[Rule]>,
    labels: BTreeMap<String, String>,
    /// `None` if its rules are its own.
    selectors: Option<Vec<Selector>>,
}

impl ClusterRole {
    pub(super) fn of(object: &Value) -> Self {
        let selectors = object["aggregationRule"]["clusterRoleSelectors"].as_array();
        let aggregates = object["aggregationRule"].is_object();
        let selectors = selectors.into_iter().flatten().map(Selector::of).collect();
        Self {
            rules: if aggregates {
                Arc::from([])
            } else {
                Rule::all_of(object).into()
            },
            labels: texts(&object["metadata"]["labels"]),
            selectors: aggregates.then_some(selectors),
        }
    }

    pub(super) fn rules(&self) -> &Arc<[Rule]> {
        &self.rules
    }

    pub(super) fn is_aggregating(&self) -> bool {
        self.selectors.is_some()
    }
}

/// Computes the rules of all aggregating roles. One may be part of another, so this goes on until nothing
/// changes; roles that contain each other end up with the same rules.
pub(super) fn settle(roles: &mut BTreeMap<String, ClusterRole>) {
    let aggregating: Vec<String> = roles
        .iter()
        .filter(|(_, role)| role.is_aggregating())
        .map(|(name, _)| name.clone())
        .collect();
    for name in &aggregating {
        if let Some(role) = roles.get_mut(name) {
            role.rules = Arc::from([]);
        }
    }
    // A chain is at most as long as there are aggregating roles.
    for _ in 0..=aggregating.len() {
        let mut changed = false;
        for name in &aggregating {
            let found = combined(roles, name);
            if let Some(role) = roles.get_mut(name)
                && role.rules != found
            {
                role.rules = found;
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

fn combined(roles: &BTreeMap<String, ClusterRole>, name: &str) -> Arc<[Rule]> {
    let selectors = roles.get(name).and_then(|role| role.selectors.as_ref());
    let Some(selectors) = selectors else {
        return Arc::from([]);
    };
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (other, role) in roles {
        let is_chosen = selectors
            .iter()
            .any(|selector| selector.matches(&role.labels));
        if other == name || !is_chosen {
            continue;
        }
        for rule in role.rules.iter() {
            if seen.insert(rule) {
                found.push(rule.clone());
            }
        }
    }
    found.into()
}

/// A label selector.
#[derive(Debug)]
struct Selector {
    labels: BTreeMap<String, String>,
    expressions: Vec<Expression>,
}

#[derive(Debug)]
struct Expression {
    key: String,
    operator: String,
    values: Vec<String>,
}

impl Selector {
    fn of(value: &Value) -> Self {
        let expressions = value["matchExpressions"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            labels: texts(&value["matchLabels"]),
            expressions: expressions
                .map(|expression| Expression {
                    key: text(&expression["key"]),
                    operator: text(&expression["operator"]),
                    values: expression["values"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .map(text)
                        .collect(),
                })
                .collect(),
        }
    }

    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self
                .expressions
                .iter()
                .all(|expression| expression.matches(labels))
    }
}

impl Expression {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            // What cannot be understood chooses nothing.
            _ => false,
        }
    }
}

fn texts(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}
