//! One rule of a role, and what it allows.
//!
//! Rules only ever add rights, so the order of rules never matters.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::attributes::{Resource, Target};

/// What a rule of a role says. Empty lists mean nothing, but for `names`: without names all are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule {
    pub groups: Vec<String>,
    pub resources: Vec<String>,
    pub paths: Vec<String>,
    pub names: Vec<String>,
    pub verbs: Vec<String>,
}

impl Rule {
    /// Reads one entry of `rules`.
    pub fn of(value: &Value) -> Self {
        let list = |key: &str| {
            let items = value[key].as_array().into_iter().flatten();
            items
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect()
        };
        Self {
            groups: list("apiGroups"),
            resources: list("resources"),
            paths: list("nonResourceURLs"),
            names: list("resourceNames"),
            verbs: list("verbs"),
        }
    }

    /// Reads the `rules` of a role.
    pub fn all_of(role: &Value) -> Vec<Self> {
        let rules = role["rules"].as_array();
        rules.into_iter().flatten().map(Self::of).collect()
    }

    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, list) in self.parts() {
            if !list.is_empty() {
                map.insert(key.to_owned(), json!(list));
            }
        }
        map.into()
    }

    fn parts(&self) -> [(&'static str, &Vec<String>); 5] {
        [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("nonResourceURLs", &self.paths),
            ("resourceNames", &self.names),
            ("verbs", &self.verbs),
        ]
    }

    pub fn allows(&self, verb: &str, target: &Target) -> bool {
        has(&self.verbs, verb)
            && match target {
                Target::Resource(about) => self.allows_resource(about),
                Target::Path(path) => self.paths.iter().any(|pattern| path_fits(pattern, path)),
            }
    }

    fn allows_resource(&self, about: &Resource) -> bool {
        has(&self.groups, &about.group)
            && self
                .resources
                .iter()
                .any(|pattern| resource_fits(pattern, &about.resource, &about.subresource))
            && (self.names.is_empty() || self.names.contains(&about.name))
    }

    /// In the form that messages have.
    pub fn compact(&self) -> String {
        let names = [
            "APIGroups",
            "Resources",
            "NonResourceURLs",
            "ResourceNames",
            "Verbs",
        ];
        let mut text = String::from("{");
        for (name, (_, list)) in names.iter().zip(self.parts()) {
            if !list.is_empty() {
                let separator = if text.len() > 1 { ", " } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(text, "{separator}{name}:{}", crate::access::quoted(list));
            }
        }
        text + "}"
    }
}

/// `*`, or the word itself.
fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|item| item == "*" || item == word)
}

/// `*`, `pods`, `pods/log`, or `*/log`.
pub(super) fn resource_fits(pattern: &str, resource: &str, subresource: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    match pattern.split_once('/') {
        None => subresource.is_empty() && pattern == resource,
        Some((main, sub)) => {
            !subresource.is_empty() && sub == subresource && (main == "*" || main == resource)
        }
    }
}

/// The path itself, or its beginning followed by `*`.
pub(super) fn path_fits(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => path.starts_with(beginning),
        None => pattern == path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_fit_by_name_star_or_subresource() {
        for (pattern, resource, subresource, fits) in [
            ("*", "pods", "log", true),
            ("pods", "pods", "", true),
            ("pods", "pods", "log", false),
            ("pods/log", "pods", "log", true),
            ("pods/log", "pods", "", false),
            ("*/scale", "deployments", "scale", true),
            ("*/scale", "scale", "", false),
            ("pods/*", "pods", "log", false),
            ("", "pods", "", false),
        ] {
            let found = resource_fits(pattern, resource, subresource);
            assert_eq!(found, fits, "{pattern} {resource} {subresource}");
        }
    }

    #[test]
    fn paths_fit_whole_or_from_the_beginning() {
        for (pattern, path, fits) in [
            ("*", "/metrics", true),
            ("/api/*", "/api/v1", true),
            ("/api/*", "/api", false),
            ("/api", "/api/v1", false),
            ("/a*b", "/aab", false),
            ("", "/", false),
        ] {
            assert_eq!(path_fits(pattern, path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn a_rule_with_names_says_nothing_of_requests_without_one() {
        let rule = Rule::of(&json!({
            "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["get", "list"],
        }));
        let target = |name: &str| {
            Target::Resource(Resource {
                resource: "configmaps".to_owned(),
                name: name.to_owned(),
                ..Resource::default()
            })
        };
        assert!(rule.allows("get", &target("a")));
        assert!(!rule.allows("get", &target("b")));
        assert!(!rule.allows("list", &target("")));
        assert!(!rule.allows("delete", &target("a")));
        let empty = Rule::of(&json!({"verbs": ["*"], "resources": 7}));
        assert!(!empty.allows("get", &target("a")));
    }
}
