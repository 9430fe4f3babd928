//! What an object has when its author says nothing: upstream's defaults for every built-in kind.
//!
//! Applying the defaults twice is the same as applying them once, and a value that somebody chose stays.

mod cluster;
mod core;
mod fill;
mod image;
mod pod;
mod prepare;
mod resources;
#[cfg(test)]
mod tests;
mod volumes;
mod workloads;

pub use prepare::prepare_create;
use serde_json::Value;

/// Fills the defaults of an object that has the fields of its type.
pub fn apply(group: &str, version: &str, kind: &str, object: &mut Value) {
    match group {
        "" => core::apply(kind, object),
        "apps" => workloads::apps(kind, object),
        "batch" => workloads::batch(kind, object),
        "autoscaling" => workloads::autoscaling(version, kind, object),
        "networking.k8s.io" => cluster::networking(kind, object),
        "storage.k8s.io" => cluster::storage(kind, object),
        "rbac.authorization.k8s.io" => cluster::rbac(kind, object),
        "scheduling.k8s.io" => cluster::scheduling(kind, object),
        "discovery.k8s.io" => cluster::discovery(kind, object),
        "policy" => cluster::policy(kind, object),
        "authentication.k8s.io" => cluster::authentication(kind, object),
        "certificates.k8s.io" => cluster::certificates(kind, object),
        "apiextensions.k8s.io" => cluster::extensions(kind, object),
        _ => {}
    }
}
