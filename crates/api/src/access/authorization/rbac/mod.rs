//! Roles and bindings, indexed by who they are about.
//!
//! A request looks at the bindings of its user and groups only; how many bindings there are for others makes
//! no difference.

mod aggregation;
mod binding;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde_json::Value;

use super::{Attributes, Rule, Target, Verdict};
use crate::access::authentication::User;
use aggregation::ClusterRole;
use binding::{Binding, Subject, subjects_of};

/// The kinds that the index is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Role,
    ClusterRole,
    RoleBinding,
    ClusterRoleBinding,
}

impl Kind {
    /// The kind of a resource of the group `rbac.authorization.k8s.io`.
    pub fn of_resource(resource: &str) -> Option<Self> {
        Some(match resource {
            "roles" => Self::Role,
            "clusterroles" => Self::ClusterRole,
            "rolebindings" => Self::RoleBinding,
            "clusterrolebindings" => Self::ClusterRoleBinding,
            _ => return None,
        })
    }
}

/// Namespace and name; the namespace of what has none is empty.
type Place = (String, String);

/// The bindings of one subject: by namespace, then by name.
type Grants = HashMap<String, BTreeMap<String, Arc<Binding>>>;

/// All roles and bindings.
#[derive(Debug, Default)]
pub struct RbacIndex {
    roles: HashMap<Place, Arc<[Rule]>>,
    cluster_roles: BTreeMap<String, ClusterRole>,
    bindings: HashMap<Place, Vec<Subject>>,
    users: HashMap<String, Grants>,
    groups: HashMap<String, Grants>,
}

impl RbacIndex {
    /// Takes in an object that was added or changed.
    pub fn put(&mut self, kind: Kind, object: &Value) {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        match kind {
            Kind::Role => {
                let place = (namespace.to_owned(), name.to_owned());
                self.roles.insert(place, Rule::all_of(object).into());
            }
            Kind::ClusterRole => {
                self.cluster_roles
                    .insert(name.to_owned(), ClusterRole::of(object));
                aggregation::settle(&mut self.cluster_roles);
            }
            Kind::RoleBinding => self.put_binding(namespace, name, object),
            Kind::ClusterRoleBinding => self.put_binding("", name, object),
        }
    }

    /// Forgets an object that was deleted.
    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        match kind {
            Kind::Role => {
                let place = (namespace.to_owned(), name.to_owned());
                self.roles.remove(&place);
            }
            Kind::ClusterRole => {
                self.cluster_roles.remove(name);
                aggregation::settle(&mut self.cluster_roles);
            }
            Kind::RoleBinding => self.remove_binding(namespace, name),
            Kind::ClusterRoleBinding => self.remove_binding("", name),
        }
    }

    fn put_binding(&mut self, namespace: &str, name: &str, object: &Value) {
        self.remove_binding(namespace, name);
        let place = (namespace.to_owned(), name.to_owned());
        let subjects = subjects_of(object, namespace);
        for (subject, described) in &subjects {
            let binding = Binding::of(object, described);
            let (table, key) = self.table(subject);
            let grants = table.entry(key.to_owned()).or_default();
            let here = grants.entry(namespace.to_owned()).or_default();
            // Of several entries for one subject the first is named as the reason.
            here.entry(name.to_owned()).or_insert(Arc::new(binding));
        }
        let subjects = subjects.into_iter().map(|(subject, _)| subject);
        self.bindings.insert(place, subjects.collect());
    }

    fn remove_binding(&mut self, namespace: &str, name: &str) {
        let place = (namespace.to_owned(), name.to_owned());
        for subject in self.bindings.remove(&place).unwrap_or_default() {
            let (table, key) = self.table(&subject);
            let Some(grants) = table.get_mut(key) else {
                continue;
            };
            if let Some(here) = grants.get_mut(namespace) {
                here.remove(name);
                if here.is_empty() {
                    grants.remove(namespace);
                }
            }
            if grants.is_empty() {
                table.remove(key);
            }
        }
    }

    fn table<'a>(&mut self, subject: &'a Subject) -> (&mut HashMap<String, Grants>, &'a str) {
        match subject {
            Subject::User(name) => (&mut self.users, name),
            Subject::Group(name) => (&mut self.groups, name),
        }
    }

    /// The rules that an aggregating cluster role should have, for whoever writes them into the object.
    /// `None` if it does not aggregate, or is not there.
    pub fn aggregated_rules(&self, name: &str) -> Option<Vec<Value>> {
        let role = self.cluster_roles.get(name)?;
        role.is_aggregating()
            .then(|| role.rules().iter().map(Rule::to_value).collect())
    }

    /// The cluster roles that aggregate others.
    pub fn aggregating(&self) -> impl Iterator<Item = &str> {
        let aggregating = self
            .cluster_roles
            .iter()
            .filter(|(_, role)| role.is_aggregating());
        aggregating.map(|(name, _)| name.as_str())
    }

    /// The rules behind a reference in a binding of this namespace.
    pub fn rules_of(&self, kind: &str, name: &str, namespace: &str) -> Result<Arc<[Rule]>, String> {
        let missing = |kind: &str| format!("{kind}.rbac.authorization.k8s.io {name:?} not found");
        match kind {
            "Role" => {
                let place = (namespace.to_owned(), name.to_owned());
                let found = self.roles.get(&place);
                found.cloned().ok_or_else(|| missing("role"))
            }
            "ClusterRole" => {
                let found = self.cluster_roles.get(name);
                found
                    .map(|role| Arc::clone(role.rules()))
                    .ok_or_else(|| missing("clusterrole"))
            }
            other => Err(format!("unsupported role reference kind: {other:?}")),
        }
    }

    /// Whether some binding allows it.
    pub fn authorize(&self, attributes: &Attributes) -> Verdict {
        let namespace = match &attributes.target {
            Target::Resource(about) => about.namespace.as_str(),
            Target::Path(_) => "",
        };
        let mut faults = Vec::new();
        for (place, name, binding) in self.bindings_of(&attributes.user, namespace) {
            match self.rules_of(&binding.kind, &binding.role, place) {
                Ok(rules) => {
                    let allows = |rule: &Rule| rule.allows(&attributes.verb, &attributes.target);
                    if rules.iter().any(allows) {
                        return Verdict::allow(binding.reason(place, name));
                    }
                }
                Err(fault) => faults.push(fault),
            }
        }
        Verdict::no_opinion(match aggregate(&faults) {
            text if text.is_empty() => text,
            text => format!("RBAC: {text}"),
        })
    }

    /// Every rule that applies to a user in a namespace, and what could not be resolved.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        let mut rules = Vec::new();
        let mut faults = Vec::new();
        for (place, _, binding) in self.bindings_of(user, namespace) {
            match self.rules_of(&binding.kind, &binding.role, place) {
                Ok(found) => rules.extend(found.iter().cloned()),
                Err(fault) => faults.push(fault),
            }
        }
        (rules, faults)
    }

    /// The bindings of a user and its groups, those of the cluster first, each with where and what it is.
    fn bindings_of<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str, &'a Binding)> {
        let places = ["", namespace];
        let count = if namespace.is_empty() { 1 } else { 2 };
        places.into_iter().take(count).flat_map(move |place| {
            let by_name = self.users.get(&user.name).into_iter();
            let by_group = user
                .groups
                .iter()
                .filter_map(|group| self.groups.get(group));
            by_name
                .chain(by_group)
                .filter_map(move |grants| grants.get(place))
                .flatten()
                .map(move |(name, binding)| (place, name.as_str(), binding.as_ref()))
        })
    }
}

/// Several faults as one sentence, each of them once.
pub(super) fn aggregate(faults: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for fault in faults {
        if !distinct.contains(&fault.as_str()) {
            distinct.push(fault);
        }
    }
    match distinct.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}
