//! From the words of a pod object to what a runtime is asked for.
//!
//! Nothing here has an effect: what is missing is an error with the text people know.

mod container;
mod downward;
mod environment;
mod expand;
mod sandbox;
mod security;

pub(crate) use container::{Ingredients, container_limits, container_spec, log_folder};
pub(crate) use downward::{Allocatable, field, resource_field};
pub(crate) use environment::{Sources, environment, service_variables};
pub(crate) use expand::expand;
pub(crate) use sandbox::{given_address, hosts_file, pod_limits, sandbox_spec};

/// Why a container cannot be described.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComposeError {
    #[error("{kind} \"{name}\" not found")]
    Absent { kind: &'static str, name: String },
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoKey {
        kind: &'static str,
        namespace: String,
        name: String,
        key: String,
    },
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Fault(#[from] crate::fault::Fault),
}
