//! Persistent volumes and the claims for them.

use serde_json::Value;

use super::{
    fault::{Faults, Report, same},
    formats,
    metadata::{self, NameRule, Scope},
    quantities::{self, Amount},
    read::Read,
    selector,
    sources::{self, Holder},
};
use crate::field::{FieldError, Path};

const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// In the order in which upstream looks for them.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

fn access_modes(faults: &mut Faults, spec: &Value, path: &Path) {
    let path = path.child("accessModes");
    let modes: Vec<&str> = spec.texts("accessModes").collect();
    for mode in &modes {
        if !ACCESS_MODES.contains(mode) {
            faults.push(FieldError::not_supported(&path, *mode, &ACCESS_MODES));
        }
    }
    let alone = modes.contains(&"ReadWriteOncePod");
    let others = modes
        .iter()
        .any(|mode| *mode != "ReadWriteOncePod" && ACCESS_MODES.contains(mode));
    if alone && others {
        faults.forbidden(
            &path,
            "may not use ReadWriteOncePod with other access modes",
        );
    }
}

pub(super) fn volume(faults: &mut Faults, volume: &Value) {
    metadata::create(faults, volume, Scope::Cluster, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &volume["spec"];
    if spec.items("accessModes").is_empty() {
        faults.required(&path.child("accessModes"), "");
    }
    access_modes(faults, spec, &path);
    capacity(faults, spec, &path.child("capacity"));
    let policy = spec.text("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        faults.choice(
            &path.child("persistentVolumeReclaimPolicy"),
            &spec["persistentVolumeReclaimPolicy"],
            &["Delete", "Recycle", "Retain"],
        );
    }
    volume_affinity(faults, spec, &path.child("nodeAffinity"));
    volume_source(faults, volume, &path);
    if policy == "Recycle" && is_root(spec["hostPath"].text("path")) {
        faults.forbidden(
            &path.child("persistentVolumeReclaimPolicy"),
            "may not be 'recycle' for a hostPath mount of '/'",
        );
    }
    let class = spec.text("storageClassName");
    if !class.is_empty() {
        faults.messages(
            &path.child("storageClassName"),
            class,
            formats::subdomain(class),
        );
    }
    faults.choice(
        &path.child("volumeMode"),
        &spec["volumeMode"],
        &VOLUME_MODES,
    );
    if let Some(class) = spec.maybe_text("volumeAttributesClassName") {
        let class_path = path.child("volumeAttributesClassName");
        if class.is_empty() {
            faults.required(&class_path, "an empty string is disallowed");
        } else {
            faults.messages(&class_path, class, formats::subdomain(class));
        }
        if !spec.has("csi") {
            faults.required(
                &path.child("csi"),
                "has to be specified when using volumeAttributesClassName",
            );
        }
    }
}

fn capacity(faults: &mut Faults, spec: &Value, path: &Path) {
    let capacity = spec.entries("capacity");
    if capacity.is_empty() {
        faults.required(path, "");
    }
    if capacity.len() > 1 || !capacity.contains_key("storage") {
        faults.push(FieldError::not_supported(
            path,
            spec["capacity"].clone(),
            &["storage"],
        ));
    }
    for (resource, amount) in capacity {
        quantities::positive(faults, amount, &path.key(resource));
    }
}

fn volume_affinity(faults: &mut Faults, spec: &Value, path: &Path) {
    let affinity = &spec["nodeAffinity"];
    if affinity.is_null() {
        return;
    }
    if affinity.has("required") {
        selector::node_selector(faults, &affinity["required"], &path.child("required"));
    } else {
        faults.required(
            &path.child("required"),
            "must specify required node constraints",
        );
    }
}

fn volume_source(faults: &mut Faults, volume: &Value, path: &Path) {
    let spec = &volume["spec"];
    let name = volume["metadata"].text("name");
    sources::one_of(
        faults,
        spec,
        &SOURCES,
        path,
        |faults, kind, source, at| match kind {
            "local" => {
                let place = source.text("path");
                if place.is_empty() {
                    faults.required(&at.child("path"), "");
                } else {
                    sources::no_backsteps(faults, place, &at.child("path"));
                }
                if !spec.has("nodeAffinity") {
                    faults.required(
                        &path.child("nodeAffinity"),
                        "Local volume requires node affinity",
                    );
                }
            }
            "iscsi" => {
                let portal = source.text("targetPortal");
                if source.has("initiatorName") && name.len() + 1 + portal.len() > 64 {
                    faults.invalid(
                        &at.child("targetportal"),
                        portal,
                        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.",
                    );
                }
                sources::shared(faults, Holder::PersistentVolume, kind, source, at);
            }
            _ => sources::shared(faults, Holder::PersistentVolume, kind, source, at),
        },
    );
}

fn is_root(path: &str) -> bool {
    path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "." | ".."))
}

pub(super) fn volume_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    volume(faults, new);
    let (new, old) = (&new["spec"], &old["spec"]);
    let mut changed = SOURCES
        .iter()
        .any(|source| *source != "csi" && !same(&new[*source], &old[*source]));
    let mut driver = new["csi"].clone();
    if old.has("csi")
        && !old["csi"].has("controllerExpandSecretRef")
        && let Some(fields) = driver.as_object_mut()
    {
        // A secret for growing may still be added.
        fields.remove("controllerExpandSecretRef");
    }
    changed |= !same(&driver, &old["csi"]);
    if changed {
        faults.forbidden(
            &Path::new("spec").child("persistentvolumesource"),
            "spec.persistentvolumesource is immutable after creation",
        );
    }
    faults.immutable(
        &Path::new("volumeMode"),
        &new["volumeMode"],
        &old["volumeMode"],
    );
    class_update(faults, new, old);
}

fn class_update(faults: &mut Faults, new: &Value, old: &Value) {
    let path = Path::new("spec").child("volumeAttributesClassName");
    if !old.has("volumeAttributesClassName") {
        return;
    }
    match new.maybe_text("volumeAttributesClassName") {
        None => faults.forbidden(&path, "update from non-nil value to nil is forbidden"),
        Some("") if !old.text("volumeAttributesClassName").is_empty() => faults.forbidden(
            &path,
            "update from non-nil value to an empty string is forbidden",
        ),
        Some(_) => {}
    }
}

pub(super) fn claim(faults: &mut Faults, claim: &Value) {
    metadata::create(faults, claim, Scope::Namespaced, NameRule::Subdomain);
    claim_spec(faults, &claim["spec"], &Path::new("spec"));
}

/// A claim inside a pod, which has only labels and annotations.
pub(super) fn template(faults: &mut Faults, template: &Value, path: &Path) {
    let path_of_metadata = path.child("metadata");
    let meta = &template["metadata"];
    metadata::annotations(
        faults,
        meta.entries("annotations"),
        &path_of_metadata.child("annotations"),
    );
    metadata::labels(
        faults,
        meta.entries("labels"),
        &path_of_metadata.child("labels"),
    );
    for (field, value) in template.entries("metadata") {
        if !matches!(field.as_str(), "annotations" | "labels") && !value.is_null() {
            faults.forbidden(&path_of_metadata.child(field), "cannot be set");
        }
    }
    claim_spec(faults, &template["spec"], &path.child("spec"));
}

fn claim_spec(faults: &mut Faults, spec: &Value, path: &Path) {
    if spec.items("accessModes").is_empty() {
        faults.required(
            &path.child("accessModes"),
            "at least 1 access mode is required",
        );
    }
    selector::validate(faults, &spec["selector"], &path.child("selector"));
    access_modes(faults, spec, path);
    let storage_path = path.child("resources").key("storage");
    let storage = &spec["resources"]["requests"]["storage"];
    if storage.is_null() {
        faults.required(&storage_path, "");
    } else {
        quantities::positive(faults, storage, &storage_path);
    }
    for field in ["storageClassName", "volumeAttributesClassName"] {
        let class = spec.text(field);
        if !class.is_empty() {
            faults.messages(&path.child(field), class, formats::subdomain(class));
        }
    }
    faults.choice(
        &path.child("volumeMode"),
        &spec["volumeMode"],
        &VOLUME_MODES,
    );
    data_sources(faults, spec, path);
}

fn data_sources(faults: &mut Faults, spec: &Value, path: &Path) {
    for field in ["dataSource", "dataSourceRef"] {
        if spec.has(field) {
            data_source(faults, &spec[field], &path.child(field));
        }
    }
    let (old_style, new_style) = (&spec["dataSource"], &spec["dataSourceRef"]);
    if old_style.is_null() || new_style.is_null() {
        return;
    }
    let shown = path.child("dataSource").to_string();
    if !new_style.text("namespace").is_empty() {
        faults.invalid(
            path,
            shown,
            "may not be specified when dataSourceRef.namespace is specified",
        );
    } else if ["apiGroup", "kind", "name"]
        .iter()
        .any(|field| old_style.text(field) != new_style.text(field))
    {
        faults.invalid(path, shown, "must match dataSourceRef");
    }
}

fn data_source(faults: &mut Faults, source: &Value, path: &Path) {
    faults.not_empty(source, path, &["name", "kind"]);
    let group = source.text("apiGroup");
    if group.is_empty() {
        if source.text("kind") != "PersistentVolumeClaim" {
            faults.invalid(
                path,
                source.text("kind"),
                "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
            );
        }
    } else {
        faults.messages(&path.child("apiGroup"), group, formats::subdomain(group));
    }
    let namespace = source.text("namespace");
    if !namespace.is_empty() {
        faults.messages(
            &path.child("namespace"),
            namespace,
            formats::label(namespace),
        );
    }
}

pub(super) fn claim_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    claim(faults, new);
    let mut rest = new["spec"].clone();
    let before = &old["spec"];
    let annotation = |claim: &Value| {
        claim["metadata"]["annotations"]
            .text(CLASS_ANNOTATION)
            .to_owned()
    };
    if annotation(new) != annotation(old) && before.has("storageClassName") {
        faults.invalid(
            &Path::new("metadata")
                .child("annotations")
                .child(CLASS_ANNOTATION),
            annotation(new),
            super::fault::IMMUTABLE,
        );
    }
    let bound = new["status"].text("phase") == "Bound";
    if let Some(fields) = rest.as_object_mut() {
        let mut keep = |field: &str| {
            if before.has(field) {
                fields.insert(field.to_owned(), before[field].clone());
            } else {
                fields.remove(field);
            }
        };
        if before.text("volumeName").is_empty() {
            keep("volumeName");
        }
        if !before.has("storageClassName") {
            keep("storageClassName");
        }
        if bound {
            keep("volumeAttributesClassName");
        }
    }
    if bound
        && let Some(requests) = rest
            .pointer_mut("/resources/requests")
            .and_then(Value::as_object_mut)
    {
        requests.insert(
            "storage".to_owned(),
            before["resources"]["requests"]["storage"].clone(),
        );
    }
    if !same(&rest, before) {
        faults.forbidden(
            &Path::new("spec"),
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        );
    }
    shrinking(faults, new, old);
    faults.immutable(
        &Path::new("volumeMode"),
        &new["spec"]["volumeMode"],
        &before["volumeMode"],
    );
    class_update(faults, &new["spec"], before);
}

/// Asking for less is only right while growing has not happened.
fn shrinking(faults: &mut Faults, new: &Value, old: &Value) {
    let size = |claim: &Value| quantities::read(&claim["spec"]["resources"]["requests"]["storage"]);
    if let (Some(after), Some(before)) = (size(new), size(old))
        && after < before
    {
        let capacity =
            quantities::read(&old["status"]["capacity"]["storage"]).unwrap_or(Amount::ZERO);
        if after <= capacity {
            faults.forbidden(
                &Path::new("spec")
                    .child("resources")
                    .child("requests")
                    .child("storage"),
                "field can not be less than status.capacity",
            );
        }
    }
}

pub(super) fn claim_status(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    if new["spec"].items("accessModes").is_empty() {
        faults.required(&Path::new("Spec").child("accessModes"), "");
    }
    for field in ["capacity", "allocatedResources"] {
        let path = Path::new("status").child(field);
        for (resource, amount) in new["status"].entries(field) {
            if quantities::is_negative(amount) {
                faults.invalid(
                    &path.key(resource),
                    amount.clone(),
                    "must be a valid resource quantity",
                );
            }
        }
    }
}
