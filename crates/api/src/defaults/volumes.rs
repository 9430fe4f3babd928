//! Defaults of volumes, in pods and in persistent volumes.
//!
//! A volume of a pod that says nothing about its source is an empty directory.

use serde_json::{Value, json};

use super::{fill::Fill, image};

/// Permissions of projected files: `rw-r--r--`.
const FILE_MODE: i64 = 0o644;

/// A volume in the spec of a pod.
pub(super) fn volume(volume: &mut Value) {
    let has_source = volume.as_object().is_some_and(|fields| {
        fields
            .iter()
            .any(|(name, value)| name != "name" && !value.is_null())
    });
    if !has_source {
        volume.put("emptyDir", json!({}));
    }
    source(volume);
    for files in ["secret", "configMap", "downwardAPI", "projected"] {
        volume.when_there(files, |files| files.fill("defaultMode", FILE_MODE));
    }
    volume.when_there("downwardAPI", |downward| downward.each("items", field_file));
    volume.when_there("projected", |projected| {
        projected.each("sources", projection);
    });
    volume.when_there("ephemeral", |ephemeral| {
        ephemeral.when_there("volumeClaimTemplate", |template| {
            template.within("metadata", |_| {});
            template.within("spec", claim_spec);
        });
    });
    volume.when_there("image", |source| {
        let policy = image::pull_policy(source["reference"].as_str().unwrap_or_default());
        source.fill_text("pullPolicy", policy);
    });
}

/// What pods and persistent volumes have in common.
pub(super) fn source(holder: &mut Value) {
    holder.when_there("hostPath", |path| path.fill("type", ""));
    holder.when_there("iscsi", |iscsi| {
        iscsi.fill_text("iscsiInterface", "default");
    });
    holder.when_there("rbd", |rbd| {
        rbd.fill_text("pool", "rbd");
        rbd.fill_text("user", "admin");
        rbd.fill_text("keyring", "/etc/ceph/keyring");
    });
    holder.when_there("azureDisk", |disk| {
        disk.fill("cachingMode", "ReadWrite");
        disk.fill("fsType", "ext4");
        disk.fill("readOnly", false);
        disk.fill("kind", "Shared");
    });
    holder.when_there("scaleIO", |scale_io| {
        scale_io.fill_text("storageMode", "ThinProvisioned");
        scale_io.fill_text("fsType", "xfs");
    });
}

fn projection(source: &mut Value) {
    source.when_there("serviceAccountToken", |token| {
        token.fill("expirationSeconds", 3600);
    });
    source.when_there("downwardAPI", |downward| downward.each("items", field_file));
}

fn field_file(item: &mut Value) {
    item.when_there("fieldRef", |field| field.fill_text("apiVersion", "v1"));
}

/// The spec of a persistent volume claim.
pub(super) fn claim_spec(spec: &mut Value) {
    spec.fill("volumeMode", "Filesystem");
    spec.within("resources", |_| {});
}

/// A whole claim, also as a template of a stateful set.
pub(super) fn claim(claim: &mut Value) {
    claim.within("spec", claim_spec);
    claim.within("status", |status| status.fill_text("phase", "Pending"));
}
