//! The kinds that are served: the one place that says what exists and what can be done with it.
//!
//! Discovery, routing, tables, `OpenAPI` and the compatibility page are all views of this registry. A set of
//! kinds never changes; a custom resource definition makes a new set, which requests pick up as a whole.

mod builtin;
mod custom;
mod kind;
mod own;
mod support;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use custom::Definition;
pub use custom::{CustomResource, ScalePaths};
pub(crate) use kind::storage_prefix;
pub use kind::{Conversion, Kind, SelectableField, Subresource, Verb, Verbs};
pub use support::Support;

/// A version of a group, with its kinds by plural.
pub type Version = (String, BTreeMap<String, Arc<Kind>>);

/// All kinds at one moment.
#[derive(Debug, Default)]
pub struct Kinds {
    by_resource: HashMap<(String, String, String), Arc<Kind>>,
    /// The versions of a group stand in order of preference.
    groups: BTreeMap<String, Vec<Version>>,
}

impl Kinds {
    pub fn new(kinds: impl IntoIterator<Item = Arc<Kind>>) -> Self {
        let mut set = Self::default();
        for kind in kinds {
            set.add(kind);
        }
        for versions in set.groups.values_mut() {
            versions.sort_by_key(|(version, _)| version_rank(version));
        }
        set
    }

    fn add(&mut self, kind: Arc<Kind>) {
        let versions = self.groups.entry(kind.group.clone()).or_default();
        let index = versions
            .iter()
            .position(|(name, _)| *name == kind.version)
            .unwrap_or_else(|| {
                versions.push((kind.version.clone(), BTreeMap::new()));
                versions.len() - 1
            });
        versions[index]
            .1
            .insert(kind.plural.clone(), Arc::clone(&kind));
        self.by_resource.insert(
            (
                kind.group.clone(),
                kind.version.clone(),
                kind.plural.clone(),
            ),
            kind,
        );
    }

    /// The kind behind a path.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.by_resource
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The kind behind an object's `apiVersion` and `kind`.
    pub fn object(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let (_, kinds) = self
            .groups
            .get(group)?
            .iter()
            .find(|(name, _)| name == version)?;
        kinds.values().find(|candidate| candidate.kind == kind)
    }

    /// Groups by name, each with its versions, the preferred one first.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &[Version])> {
        self.groups
            .iter()
            .map(|(group, versions)| (group.as_str(), versions.as_slice()))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.groups
            .values()
            .flatten()
            .flat_map(|(_, kinds)| kinds.values())
    }
}

/// Versions in upstream's order: stable before beta before alpha, newer first, other names last.
fn version_rank(version: &str) -> (u8, i64, i64, String) {
    let parsed = version.strip_prefix('v').and_then(|rest| {
        let digits = rest
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(rest.len());
        let (major, stage) = rest.split_at(digits);
        let major: i64 = major.parse().ok()?;
        match stage {
            "" => Some((0, major, 0)),
            stage if stage.starts_with("beta") => Some((1, major, stage[4..].parse().ok()?)),
            stage if stage.starts_with("alpha") => Some((2, major, stage[5..].parse().ok()?)),
            _ => None,
        }
    });
    match parsed {
        Some((stage, major, minor)) => (stage, -major, -minor, String::new()),
        None => (3, 0, 0, version.to_owned()),
    }
}

/// Where definitions of custom resources are stored.
pub const CUSTOM_RESOURCE_PREFIX: &str =
    "/registry/apiextensions.k8s.io/customresourcedefinitions/";

/// The kinds that are served now.
#[derive(Debug)]
pub struct Registry {
    builtin: Vec<Arc<Kind>>,
    /// The custom kinds of each definition, by the definition's name.
    custom: Mutex<BTreeMap<String, Definition>>,
    kinds: RwLock<Arc<Kinds>>,
}

impl Registry {
    /// Only what is built in.
    pub fn builtin() -> Self {
        let mut builtin = builtin::kinds();
        builtin.extend(own::kinds());
        let kinds = RwLock::new(Arc::new(Kinds::new(builtin.iter().cloned())));
        Self {
            builtin,
            custom: Mutex::default(),
            kinds,
        }
    }

    /// The kinds of this moment. Take it once in a request.
    pub fn kinds(&self) -> Arc<Kinds> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&kinds)
    }

    /// The kind in whose form objects are stored.
    pub fn storage_kind(&self, kind: &Arc<Kind>) -> Arc<Kind> {
        let kinds = self.kinds();
        let found = kinds
            .iter()
            .find(|candidate| candidate.storage == kind.storage && candidate.conversion.is_none());
        Arc::clone(found.unwrap_or(kind))
    }

    /// Kinds of which no version is served while their definition is there: one for each.
    pub fn hidden(&self) -> Vec<Arc<Kind>> {
        let custom = self.custom.lock().unwrap_or_else(PoisonError::into_inner);
        custom
            .values()
            .filter(|definition| definition.served.is_empty())
            .filter_map(|definition| definition.hidden.first().cloned())
            .collect()
    }

    /// Takes in all stored definitions.
    pub fn define_all<'a>(&self, definitions: impl Iterator<Item = &'a [u8]>) {
        let mut custom = self.custom.lock().unwrap_or_else(PoisonError::into_inner);
        custom.clear();
        for definition in definitions {
            match custom::read(definition) {
                Some((name, definition)) => {
                    custom.insert(name, definition);
                }
                None => tracing::error!(
                    "a definition of a custom resource cannot be read and is not served"
                ),
            }
        }
        self.publish(&custom);
    }

    /// Takes in one definition, or forgets it.
    pub fn define(&self, key: &str, definition: Option<&[u8]>) {
        let name = key.strip_prefix(CUSTOM_RESOURCE_PREFIX).unwrap_or(key);
        let mut custom = self.custom.lock().unwrap_or_else(PoisonError::into_inner);
        match definition.and_then(custom::read) {
            Some((name, definition)) => custom.insert(name, definition),
            None => custom.remove(name),
        };
        self.publish(&custom);
    }

    fn publish(&self, custom: &BTreeMap<String, Definition>) {
        let served = custom.values().flat_map(|definition| &definition.served);
        // What is built in comes last: nobody can put something else in its place.
        let all = served.chain(self.builtin.iter()).cloned();
        let kinds = Arc::new(Kinds::new(all));
        *self.kinds.write().unwrap_or_else(PoisonError::into_inner) = kinds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_upstreams_order() {
        let mut versions = [
            "v1alpha1",
            "v1",
            "foo1",
            "v2beta1",
            "v2",
            "v11alpha2",
            "v1beta2",
            "v10",
        ];
        versions.sort_by_key(|version| version_rank(version));
        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v2beta1",
                "v1beta2",
                "v11alpha2",
                "v1alpha1",
                "foo1"
            ]
        );
    }

    #[test]
    fn every_built_in_kind_has_a_type_and_a_place_of_its_own() {
        let registry = Registry::builtin();
        let mut plurals = std::collections::HashSet::new();
        for kind in registry.kinds().iter() {
            assert!(
                plurals.insert((kind.api_version(), kind.plural.clone())),
                "{} twice",
                kind.plural
            );
        }
        assert!(plurals.len() >= 50, "only {} kinds", plurals.len());
    }
}
