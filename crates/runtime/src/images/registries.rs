//! Where images come from, as the node's administrator says it. Invariant: what a registry is told to know, its
//! mirrors are not told.

use std::collections::{BTreeMap, BTreeSet};

use crate::Credentials;

/// Stands for all registries that are not named.
const ALL: &str = "*";

/// Where images come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registries {
    /// For a registry, those to ask before it, in order. `*` stands for all that are not named.
    pub mirrors: BTreeMap<String, Vec<String>>,
    /// Registries and mirrors that speak without encryption. Those on this machine always may.
    pub plain: BTreeSet<String>,
    /// How to speak to a registry or a mirror, by host and port.
    pub hosts: BTreeMap<String, RegistryHost>,
}

/// How to speak to one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryHost {
    /// Who we are, if a pod does not say.
    pub credentials: Option<Credentials>,
    /// Certificates to trust beside those of the machine, as PEM.
    pub certificates: Option<Vec<u8>>,
    /// Any certificate will do.
    pub any_certificate: bool,
}

impl Registries {
    /// The mirrors of a registry, without itself.
    pub(super) fn mirrors_of<'a>(&'a self, registry: &'a str) -> impl Iterator<Item = &'a String> {
        let found = self.mirrors.get(registry).or_else(|| self.mirrors.get(ALL));
        let mirrors = found.into_iter().flatten();
        mirrors.filter(move |mirror| *mirror != registry)
    }

    /// What is known of a host, by the first name it has here.
    pub(super) fn host(&self, names: &[&str]) -> Option<&RegistryHost> {
        names.iter().find_map(|name| self.hosts.get(*name))
    }
}
