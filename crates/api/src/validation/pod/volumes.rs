//! The volumes of a pod, one source each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{containers, environment};
use crate::{
    field::{FieldError, Path},
    validation::{
        claims,
        fault::{Faults, Report},
        formats, quantities,
        read::Read,
        selector,
        sources::{self, Holder},
    },
};

pub(super) use crate::validation::sources::has_backsteps;

/// In the order in which upstream looks for them.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const DUPLICATE_PATHS: &str = "conflicting duplicate paths";

/// Checks all volumes and returns those that are right, by name.
pub(super) fn validate<'a>(
    faults: &mut Faults,
    spec: &'a Value,
    pod_name: Option<&str>,
    path: &Path,
) -> BTreeMap<&'a str, &'a Value> {
    let volumes = spec.items("volumes");
    let pod_name = pod_name.filter(|name| !name.is_empty());
    let made: BTreeSet<String> = volumes
        .iter()
        .filter(|volume| volume.has("ephemeral"))
        .filter_map(|volume| pod_name.map(|pod| format!("{pod}-{}", volume.text("name"))))
        .collect();
    let mut right = BTreeMap::new();
    for (index, volume) in volumes.iter().enumerate() {
        let path = path.index(index);
        let mut own = Faults::new();
        source(&mut own, volume, pod_name, &path);
        let name = volume.text("name");
        if name.is_empty() {
            own.required(&path.child("name"), "");
        } else {
            own.messages(&path.child("name"), name, formats::label(name));
        }
        if right.contains_key(name) {
            own.push(FieldError::duplicate(&path.child("name"), name));
        }
        if own.is_empty() {
            right.insert(name, volume);
        }
        faults.append(&mut own);
        let claim = volume["persistentVolumeClaim"].text("claimName");
        if made.contains(claim) {
            faults.invalid(
                &path.child("persistentVolumeClaim").child("claimName"),
                claim,
                "must not reference a PVC that gets created for an ephemeral volume",
            );
        }
    }
    right
}

fn source(faults: &mut Faults, volume: &Value, pod_name: Option<&str>, path: &Path) {
    let name = volume.text("name");
    sources::one_of(
        faults,
        volume,
        &SOURCES,
        path,
        |faults, kind, source, at| match kind {
            "emptyDir" => {
                if quantities::is_negative(&source["sizeLimit"]) {
                    faults.forbidden(
                        &at.child("sizeLimit"),
                        "SizeLimit field must be a valid resource quantity",
                    );
                }
            }
            "gitRepo" => {
                faults.not_empty(source, at, &["repository"]);
                descending_path(faults, source.text("directory"), &at.child("directory"));
            }
            "secret" => files(faults, source, "secretName", at),
            "configMap" => files(faults, source, "name", at),
            "persistentVolumeClaim" => faults.not_empty(source, at, &["claimName"]),
            "downwardAPI" => {
                mode(faults, source, "defaultMode", at);
                for file in source.items("items") {
                    downward_file(faults, file, at);
                }
            }
            "projected" => projected(faults, source, at),
            "ephemeral" => ephemeral(faults, source, name, pod_name, path, at),
            "image" => {
                if pod_name.is_some() {
                    faults.not_empty(source, at, &["reference"]);
                }
                containers::pull_policy(faults, source.text("pullPolicy"), &at.child("pullPolicy"));
            }
            _ => sources::shared(faults, Holder::Pod, kind, source, at),
        },
    );
    let iscsi = &volume["iscsi"];
    if iscsi.has("initiatorName") && name.len() + 1 + iscsi.text("targetPortal").len() > 64 {
        faults.invalid(
            &path.child("name"),
            name,
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.",
        );
    }
}

fn ephemeral(
    faults: &mut Faults,
    source: &Value,
    volume_name: &str,
    pod_name: Option<&str>,
    path: &Path,
    at: &Path,
) {
    let template = &source["volumeClaimTemplate"];
    let template_path = at.child("volumeClaimTemplate");
    if template.is_null() {
        faults.required(&template_path, "");
    } else {
        claims::template(faults, template, &template_path);
    }
    if let Some(pod) = pod_name
        && !volume_name.is_empty()
    {
        let claim = format!("{pod}-{volume_name}");
        for message in formats::subdomain(&claim) {
            faults.invalid(
                &path.child("name"),
                volume_name,
                format!("PVC name {claim:?}: {message}"),
            );
        }
    }
}

fn mode(faults: &mut Faults, holder: &Value, field: &str, path: &Path) {
    if let Some(mode) = holder.maybe_number(field)
        && !(0..=0o777).contains(&mode)
    {
        faults.invalid(&path.child(field), mode, FILE_MODE);
    }
}

fn files(faults: &mut Faults, source: &Value, name: &str, path: &Path) {
    faults.not_empty(source, path, &[name]);
    mode(faults, source, "defaultMode", path);
    for (index, item) in source.items("items").iter().enumerate() {
        key_to_path(faults, item, &path.child("items").index(index));
    }
}

fn key_to_path(faults: &mut Faults, item: &Value, path: &Path) {
    faults.not_empty(item, path, &["key", "path"]);
    local_path(faults, item.text("path"), &path.child("path"));
    mode(faults, item, "mode", path);
}

/// A path below some directory, without steps back.
pub(super) fn descending_path(faults: &mut Faults, text: &str, path: &Path) {
    if text.starts_with('/') {
        faults.invalid(path, text, "must be a relative path");
    }
    sources::no_backsteps(faults, text, path);
}

/// A path below some directory that no internal name looks like.
pub(super) fn local_path(faults: &mut Faults, text: &str, path: &Path) {
    descending_path(faults, text, path);
    if text.starts_with("..") && !text.starts_with("../") {
        faults.invalid(path, text, "must not start with '..'");
    }
}

fn downward_file(faults: &mut Faults, file: &Value, path: &Path) {
    faults.not_empty(file, path, &["path"]);
    local_path(faults, file.text("path"), &path.child("path"));
    if file.has("fieldRef") {
        environment::field_reference(
            faults,
            &file["fieldRef"],
            &environment::FILE_FIELDS,
            &path.child("fieldRef"),
        );
        if file.has("resourceFieldRef") {
            faults.invalid(
                path,
                "resource",
                "fieldRef and resourceFieldRef can not be specified simultaneously",
            );
        }
    } else if file.has("resourceFieldRef") {
        environment::resource_reference(
            faults,
            &file["resourceFieldRef"],
            true,
            &path.child("resourceFieldRef"),
        );
    } else {
        faults.required(path, "one of fieldRef and resourceFieldRef is required");
    }
    mode(faults, file, "mode", path);
}

fn projected(faults: &mut Faults, projection: &Value, path: &Path) {
    mode(faults, projection, "defaultMode", path);
    let mut taken = BTreeSet::new();
    for (index, source) in projection.items("sources").iter().enumerate() {
        let item_path = path.child("sources").index(index);
        let mut count = 0;
        for kind in ["secret", "configMap"] {
            if !source.has(kind) {
                continue;
            }
            count += 1;
            let files = &source[kind];
            let kind_path = item_path.child(kind);
            faults.not_empty(files, &kind_path, &["name"]);
            for (index, item) in files.items("items").iter().enumerate() {
                key_to_path(faults, item, &kind_path.child("items").index(index));
                let file = item.text("path");
                if !file.is_empty() && !taken.insert(file) {
                    faults.invalid(path, files.text("name"), DUPLICATE_PATHS);
                }
            }
        }
        if source.has("downwardAPI") {
            count += 1;
            for file in source["downwardAPI"].items("items") {
                downward_file(faults, file, &item_path.child("downwardAPI"));
                let file = file.text("path");
                if !file.is_empty() && !taken.insert(file) {
                    faults.invalid(path, file, DUPLICATE_PATHS);
                }
            }
        }
        if source.has("serviceAccountToken") {
            count += 1;
            token(faults, &source["serviceAccountToken"], path, &item_path);
        }
        if source.has("clusterTrustBundle") {
            count += 1;
            let bundle = &source["clusterTrustBundle"];
            trust_bundle(faults, bundle, &item_path.child("clusterTrustBundle"));
            if !taken.insert(bundle.text("path")) {
                faults.invalid(path, bundle.text("path"), DUPLICATE_PATHS);
            }
        }
        if count > 1 {
            faults.forbidden(
                &item_path,
                "may not specify more than 1 volume type per source",
            );
        }
    }
}

fn token(faults: &mut Faults, token: &Value, path: &Path, item_path: &Path) {
    let seconds = token.number("expirationSeconds");
    let seconds_path = item_path
        .child("serviceAccountToken")
        .child("expirationSeconds");
    if seconds < 600 {
        faults.invalid(
            &seconds_path,
            seconds,
            "may not specify a duration less than 10 minutes",
        );
    }
    if seconds > 1 << 32 {
        faults.invalid(
            &seconds_path,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        );
    }
    // The paths of these two lack the source; upstream's do as well.
    if token.text("path").is_empty() {
        faults.required(&path.child("path"), "");
    } else {
        local_path(faults, token.text("path"), &path.child("path"));
    }
}

fn trust_bundle(faults: &mut Faults, bundle: &Value, path: &Path) {
    match (bundle.maybe_text("name"), bundle.maybe_text("signerName")) {
        (Some(_), Some(_)) => faults.invalid(
            path,
            bundle.clone(),
            "only one of name and signerName may be used",
        ),
        (Some(name), None) => {
            if name.is_empty() {
                faults.required(&path.child("name"), "must be a valid object name");
            }
            for message in formats::subdomain(name) {
                faults.invalid(
                    &path.child("name"),
                    name,
                    format!("not a valid clustertrustbundlename: {message}"),
                );
            }
            if bundle.has("labelSelector") {
                faults.invalid(
                    &path.child("labelSelector"),
                    bundle["labelSelector"].clone(),
                    "labelSelector must be unset if name is specified",
                );
            }
        }
        (None, Some(signer)) => {
            if signer.is_empty() {
                faults.required(&path.child("signerName"), "must be a valid signer name");
            }
            faults.extend(formats::domain_prefixed_path(
                signer,
                &path.child("signerName"),
            ));
            selector::validate(
                faults,
                &bundle["labelSelector"],
                &path.child("labelSelector"),
            );
        }
        (None, None) => {
            faults.required(path, "either name or signerName must be specified");
        }
    }
    faults.not_empty(bundle, path, &["path"]);
    local_path(faults, bundle.text("path"), &path.child("path"));
}

/// Without an account there is nothing that a token could be of.
pub(super) fn no_tokens(faults: &mut Faults, spec: &Value, path: &Path) {
    for (index, volume) in spec.items("volumes").iter().enumerate() {
        let path = path.index(index).child("projected").child("sources");
        for (index, source) in volume["projected"].items("sources").iter().enumerate() {
            if source.has("serviceAccountToken") {
                faults.forbidden(
                    &path.index(index).child("serviceAccountToken"),
                    "must not be specified when serviceAccountName is not set",
                );
            }
        }
    }
}
