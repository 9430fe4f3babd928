//! Which rules are for which kind.
//!
//! A kind that is not built in has the rules of its metadata here; its schema has the rest.

use serde_json::Value;

use super::{
    apps, autoscaling, basic, batch, claims, cluster, endpoints, extensions,
    fault::{Faults, Report},
    limits,
    metadata::{self, NameRule, Scope},
    networking, pod, rbac, service,
};
use crate::field::{FieldError, Path};

/// Faults of a new object.
pub fn create(group: &str, kind: &str, object: &Value) -> Vec<FieldError> {
    let mut faults = Faults::new();
    let known = match group {
        "" => core(kind, &mut faults, object),
        "apps" | "batch" | "autoscaling" => workloads(kind, &mut faults, object),
        _ => other(group, kind, &mut faults, object),
    };
    if !known {
        metadata::create(&mut faults, object, Scope::Unknown, NameRule::Subdomain);
    }
    faults
}

fn core(kind: &str, faults: &mut Faults, object: &Value) -> bool {
    match kind {
        "Pod" => pod::create(faults, object),
        "PodTemplate" => {
            metadata::create(faults, object, Scope::Namespaced, NameRule::Subdomain);
            pod::template(faults, &object["template"], &Path::new("template"));
        }
        "ReplicationController" => apps::replication_controller(faults, object),
        "Service" => service::create(faults, object),
        "Endpoints" => endpoints::create(faults, object),
        "Namespace" => basic::namespace(faults, object),
        "Node" => basic::node(faults, object),
        "ConfigMap" => basic::config_map(faults, object),
        "Secret" => basic::secret(faults, object),
        "ServiceAccount" => basic::service_account(faults, object),
        "Event" => {
            basic::event(faults, object);
            metadata::create(faults, object, Scope::Namespaced, NameRule::PathSegment);
        }
        "PersistentVolume" => claims::volume(faults, object),
        "PersistentVolumeClaim" => claims::claim(faults, object),
        "ResourceQuota" => limits::quota(faults, object),
        "LimitRange" => limits::limit_range(faults, object),
        "Binding" => pod::binding(faults, object),
        _ => return false,
    }
    true
}

fn workloads(kind: &str, faults: &mut Faults, object: &Value) -> bool {
    match kind {
        "Deployment" => apps::deployment(faults, object),
        "ReplicaSet" => apps::replica_set(faults, object),
        "DaemonSet" => apps::daemon_set(faults, object),
        "StatefulSet" => apps::stateful_set(faults, object),
        "ControllerRevision" => apps::revision(faults, object),
        "Job" => batch::job(faults, object),
        "CronJob" => batch::cron_job(faults, object),
        "HorizontalPodAutoscaler" => autoscaling::create(faults, object),
        _ => return false,
    }
    true
}

fn other(group: &str, kind: &str, faults: &mut Faults, object: &Value) -> bool {
    match (group, kind) {
        ("networking.k8s.io", "NetworkPolicy") => networking::policy(faults, object),
        ("networking.k8s.io", "Ingress") => networking::ingress_create(faults, object),
        ("networking.k8s.io", "IngressClass") => networking::class(faults, object),
        ("discovery.k8s.io", "EndpointSlice") => endpoints::slice(faults, object),
        ("events.k8s.io", "Event") => basic::new_event(faults, object),
        ("policy", "PodDisruptionBudget") => cluster::budget(faults, object),
        ("rbac.authorization.k8s.io", "Role") => rbac::role(faults, object, Scope::Namespaced),
        ("rbac.authorization.k8s.io", "ClusterRole") => {
            rbac::role(faults, object, Scope::Cluster);
        }
        ("rbac.authorization.k8s.io", "RoleBinding") => {
            rbac::binding(faults, object, Scope::Namespaced);
        }
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => {
            rbac::binding(faults, object, Scope::Cluster);
        }
        ("scheduling.k8s.io", "PriorityClass") => cluster::priority_class(faults, object),
        ("storage.k8s.io", "StorageClass") => cluster::storage_class(faults, object),
        ("storage.k8s.io", "VolumeAttachment") => cluster::attachment(faults, object),
        ("storage.k8s.io", "VolumeAttributesClass") => cluster::attributes_class(faults, object),
        ("storage.k8s.io", "CSIDriver") => cluster::driver(faults, object),
        ("storage.k8s.io", "CSINode") => cluster::storage_node(faults, object),
        ("storage.k8s.io", "CSIStorageCapacity") => cluster::storage_capacity(faults, object),
        ("coordination.k8s.io", "Lease") => cluster::lease(faults, object),
        ("node.k8s.io", "RuntimeClass") => cluster::runtime_class(faults, object),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            cluster::signing_request(faults, object);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            extensions::create(faults, object);
        }
        _ => return false,
    }
    true
}

/// Faults of an update of the object itself.
pub fn update(group: &str, kind: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::new();
    let known = match group {
        "" => core_update(kind, &mut faults, new, old),
        _ => other_update(group, kind, &mut faults, new, old),
    };
    if !known {
        metadata::update(&mut faults, new, old);
        for fault in create(group, kind, new) {
            // What is wrong with the metadata is in both.
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
    }
    let has_fixed_selector = matches!(
        (group, kind),
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet")
    );
    if has_fixed_selector {
        apps::selector_kept(&mut faults, new, old);
    }
    faults
}

fn core_update(kind: &str, faults: &mut Faults, new: &Value, old: &Value) -> bool {
    match kind {
        "Pod" => pod::update(faults, new, old),
        "Service" => service::update(faults, new, old),
        "Namespace" => metadata::update(faults, new, old),
        "Node" => basic::node_update(faults, new, old),
        "ConfigMap" => basic::config_map_update(faults, new, old),
        "Secret" => basic::secret_update(faults, new, old),
        "Event" => {
            basic::event(faults, new);
            metadata::update(faults, new, old);
        }
        "PersistentVolume" => claims::volume_update(faults, new, old),
        "PersistentVolumeClaim" => claims::claim_update(faults, new, old),
        "ResourceQuota" => limits::quota_update(faults, new, old),
        _ => return false,
    }
    true
}

fn other_update(group: &str, kind: &str, faults: &mut Faults, new: &Value, old: &Value) -> bool {
    match (group, kind) {
        ("apps", "StatefulSet") => apps::stateful_set_update(faults, new, old),
        ("apps", "ControllerRevision") => apps::revision_update(faults, new, old),
        ("batch", "Job") => batch::job_update(faults, new, old),
        ("batch", "CronJob") => batch::cron_job_update(faults, new, old),
        ("networking.k8s.io", "Ingress") => {
            metadata::update(faults, new, old);
            networking::ingress(faults, new);
        }
        ("networking.k8s.io", "IngressClass") => networking::class_update(faults, new, old),
        ("discovery.k8s.io", "EndpointSlice") => {
            metadata::update(faults, new, old);
            endpoints::slice(faults, new);
            faults.immutable(
                &Path::new("addressType"),
                &new["addressType"],
                &old["addressType"],
            );
        }
        ("events.k8s.io", "Event") => basic::new_event_update(faults, new, old),
        ("rbac.authorization.k8s.io", "RoleBinding") => {
            rbac::binding_update(faults, new, old, Scope::Namespaced);
        }
        ("rbac.authorization.k8s.io", "ClusterRoleBinding") => {
            rbac::binding_update(faults, new, old, Scope::Cluster);
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            cluster::priority_class_update(faults, new, old);
        }
        ("storage.k8s.io", "StorageClass") => cluster::storage_class_update(faults, new, old),
        ("storage.k8s.io", "VolumeAttachment") => cluster::attachment_update(faults, new, old),
        ("storage.k8s.io", "VolumeAttributesClass") => {
            cluster::attributes_class_update(faults, new, old);
        }
        ("storage.k8s.io", "CSIDriver") => cluster::driver_update(faults, new, old),
        ("coordination.k8s.io", "Lease") => cluster::lease_update(faults, new, old),
        ("node.k8s.io", "RuntimeClass") => cluster::runtime_class_update(faults, new, old),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            cluster::signing_request_update(faults, new, old);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            extensions::update(faults, new, old);
        }
        _ => return false,
    }
    true
}

/// Faults of an update of the status.
pub fn status(group: &str, kind: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::new();
    match (group, kind) {
        ("", "Pod") => pod::status(&mut faults, new, old),
        ("", "Service") => service::status(&mut faults, new, old),
        ("", "Namespace") => basic::namespace_status(&mut faults, new, old),
        ("", "Node") => basic::node_update(&mut faults, new, old),
        ("", "PersistentVolumeClaim") => claims::claim_status(&mut faults, new, old),
        ("", "ResourceQuota") => limits::quota_status(&mut faults, new, old),
        ("", "ReplicationController")
        | ("apps", "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet") => {
            apps::status(&mut faults, new, old, kind);
        }
        ("batch", "Job") => batch::job_status(&mut faults, new, old),
        ("networking.k8s.io", "Ingress") => networking::ingress_status(&mut faults, new, old),
        ("policy", "PodDisruptionBudget") => cluster::budget_status(&mut faults, new, old),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            cluster::signing_request_status(&mut faults, new, old);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            extensions::status(&mut faults, new, old);
        }
        _ => metadata::update(&mut faults, new, old),
    }
    faults
}

/// Faults of an update by way of another subresource, like `ephemeralcontainers`, `resize` or `finalize`.
pub fn subresource(kind: &str, name: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut faults = Faults::new();
    match (kind, name) {
        ("Pod", "ephemeralcontainers") => pod::ephemeral_containers(&mut faults, new, old),
        ("Pod", "resize") => pod::resize(&mut faults, new, old),
        ("Pod", "binding") => pod::binding(&mut faults, new),
        ("Namespace", "finalize") => basic::namespace_finalize(&mut faults, new, old),
        ("CertificateSigningRequest", "approval") => {
            cluster::signing_request_update(&mut faults, new, old);
        }
        _ => metadata::update(&mut faults, new, old),
    }
    faults
}
