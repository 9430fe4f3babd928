//! Pods and pod templates: upstream's rules in upstream's order.
//!
//! A template is checked like a pod, but for what can only be known of a real one.

mod affinity;
mod annotations;
mod binding;
mod containers;
mod environment;
mod handlers;
mod mounts;
mod network;
mod resources;
mod scheduling;
mod security;
mod status;
mod subresources;
#[cfg(test)]
mod tests;
mod update;
mod volumes;
mod windows;

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) use self::{
    binding::binding,
    handlers::port,
    resources::{container_resource_name, requirements as resource_requirements, resource_name},
    scheduling::{taint_effect, tolerations},
    status::status,
    subresources::{ephemeral_containers, resize},
    update::update,
};
use super::{
    fault::{Faults, Report},
    formats,
    metadata::{self, NameRule, Scope},
    read::Read,
};
use crate::field::Path;

/// What the rules for parts of a pod need to know of the whole.
struct Context<'a> {
    spec: &'a Value,
    /// The volumes that are right, by name.
    volumes: BTreeMap<&'a str, &'a Value>,
    /// Whether this is a pod, not a template.
    is_pod: bool,
}

impl Context<'_> {
    fn grace_period(&self) -> Option<i64> {
        self.spec.maybe_number("terminationGracePeriodSeconds")
    }

    fn restart_policy(&self) -> &str {
        self.spec.text("restartPolicy")
    }

    /// Whether containers have the users of the host, which they have unless told otherwise.
    fn host_users(&self) -> bool {
        self.spec.maybe_flag("hostUsers").unwrap_or(true)
    }
}

/// A new pod.
pub(super) fn create(faults: &mut Faults, pod: &Value) {
    metadata_and_spec(faults, pod);
    let path = Path::new("spec");
    let spec = &pod["spec"];
    if !spec.items("ephemeralContainers").is_empty() {
        faults.forbidden(
            &path.child("ephemeralContainers"),
            "cannot be set on create",
        );
    }
    if !spec.text("nodeName").is_empty() && !spec.items("schedulingGates").is_empty() {
        faults.forbidden(
            &path.child("nodeName"),
            "cannot be set until all schedulingGates have been cleared",
        );
    }
    annotations::match_fields(faults, &pod["metadata"], spec, &path);
}

/// What creating and updating have in common.
fn metadata_and_spec(faults: &mut Faults, pod: &Value) {
    metadata::create(faults, pod, Scope::Namespaced, NameRule::Subdomain);
    let spec = &pod["spec"];
    annotations::validate(
        faults,
        &pod["metadata"],
        spec,
        &Path::new("metadata").child("annotations"),
    );
    let path = Path::new("spec");
    pod_spec(faults, spec, Some(pod["metadata"].text("name")), &path);
    if spec.text("serviceAccountName").is_empty() {
        volumes::no_tokens(faults, spec, &path.child("volumes"));
    }
    for list in ["containers", "initContainers"] {
        for (index, container) in spec.items(list).iter().enumerate() {
            containers::image_without_spaces(faults, container, &path.child(list).index(index));
        }
    }
}

/// A template in another kind.
pub(super) fn template(faults: &mut Faults, template: &Value, path: &Path) {
    let meta = &template["metadata"];
    metadata::labels(faults, meta.entries("labels"), &path.child("labels"));
    metadata::annotations(
        faults,
        meta.entries("annotations"),
        &path.child("annotations"),
    );
    let spec = &template["spec"];
    annotations::validate(faults, meta, spec, &path.child("annotations"));
    let spec_path = path.child("spec");
    pod_spec(faults, spec, None, &spec_path);
    annotations::match_fields(faults, meta, spec, &spec_path);
    if !spec.items("ephemeralContainers").is_empty() {
        faults.forbidden(
            &spec_path.child("ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        );
    }
}

/// The spec of a pod, whose name is known if it is a real one.
fn pod_spec(faults: &mut Faults, spec: &Value, name: Option<&str>, path: &Path) {
    if !spec.has("terminationGracePeriodSeconds") {
        faults.required(&path.child("terminationGracePeriodSeconds"), "");
    }
    let volumes = volumes::validate(faults, spec, name, &path.child("volumes"));
    let context = Context {
        spec,
        volumes,
        is_pod: name.is_some(),
    };
    resources::claims(faults, spec, &path.child("resourceClaims"));
    containers::regular(faults, &context, &path.child("containers"));
    containers::initial(faults, &context, &path.child("initContainers"));
    containers::ephemeral(faults, &context, &path.child("ephemeralContainers"));
    resources::pod_level(faults, spec, &path.child("resources"));
    network::host_ports(faults, &context, path);
    faults.required_choice(
        &path.child("restartPolicy"),
        spec.text("restartPolicy"),
        &["Always", "OnFailure", "Never"],
    );
    faults.required_choice(
        &path.child("dnsPolicy"),
        spec.text("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    metadata::labels(
        faults,
        spec.entries("nodeSelector"),
        &path.child("nodeSelector"),
    );
    security::pod(faults, spec, &path.child("securityContext"));
    affinity::validate(faults, &spec["affinity"], &path.child("affinity"));
    network::dns(faults, spec, &path.child("dnsConfig"));
    scheduling::gates(faults, spec, path);
    scheduling::spread(faults, spec, &path.child("topologySpreadConstraints"));
    windows::host_process(faults, spec, path);
    host_users(faults, spec, path);
    names(faults, spec, path);
    network::host_names(faults, spec, path);
    tolerations(
        faults,
        spec.items("tolerations"),
        &path.child("tolerations"),
    );
    network::host_aliases(faults, spec, &path.child("hostAliases"));
    classes(faults, spec, path);
    windows::operating_system(faults, spec, path);
}

/// Users of its own and namespaces of the host do not go together.
fn host_users(faults: &mut Faults, spec: &Value, path: &Path) {
    if spec.maybe_flag("hostUsers") != Some(false) {
        return;
    }
    // The capital letters are upstream's.
    for (field, shown) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if spec.flag(field) {
            faults.forbidden(&path.child(shown), "when `pod.Spec.HostUsers` is false");
        }
    }
}

fn names(faults: &mut Faults, spec: &Value, path: &Path) {
    for field in ["serviceAccountName", "nodeName"] {
        let name = spec.text(field);
        if !name.is_empty() {
            faults.messages(&path.child(field), name, formats::subdomain(name));
        }
    }
    if let Some(seconds) = spec.maybe_number("activeDeadlineSeconds") {
        faults.messages(
            &path.child("activeDeadlineSeconds"),
            seconds,
            formats::in_range(seconds, 1, i64::from(i32::MAX)),
        );
    }
}

fn classes(faults: &mut Faults, spec: &Value, path: &Path) {
    let priority = spec.text("priorityClassName");
    if !priority.is_empty() {
        faults.messages(
            &path.child("priorityClassName"),
            priority,
            formats::subdomain(priority),
        );
    }
    if let Some(name) = spec.maybe_text("runtimeClassName") {
        faults.messages(
            &path.child("runtimeClassName"),
            name,
            formats::subdomain(name),
        );
    }
    if let Some(policy) = spec.maybe_text("preemptionPolicy") {
        faults.required_choice(
            &path.child("preemptionPolicy"),
            policy,
            &["PreemptLowerPriority", "Never"],
        );
    }
    resources::overhead(faults, spec, &path.child("overhead"));
}

/// Every container of a pod with its path, in upstream's order.
fn each_container<'a>(
    spec: &'a Value,
    path: &'a Path,
) -> impl Iterator<Item = (&'a Value, Path)> + use<'a> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(move |list| {
            spec.items(list)
                .iter()
                .enumerate()
                .map(move |(index, container)| (container, path.child(list).index(index)))
        })
}
