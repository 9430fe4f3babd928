//! The sources that volumes of pods and persistent volumes can have: disks, shares, drivers.
//!
//! A volume has exactly one source; the first one found is checked, others are too many.

use serde_json::Value;

use super::{
    fault::{Faults, Report},
    formats, metadata,
    read::Read,
};
use crate::field::{FieldError, Path};

/// Where a source is declared; persistent volumes refer to secrets of any namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Pod,
    PersistentVolume,
}

/// Checks the one source of a volume among `known`, with a function for those that only one holder has.
pub(super) fn one_of(
    faults: &mut Faults,
    volume: &Value,
    known: &[&str],
    path: &Path,
    mut check: impl FnMut(&mut Faults, &str, &Value, &Path),
) {
    let mut count = 0;
    for name in known {
        if !volume.has(name) {
            continue;
        }
        count += 1;
        if count > 1 {
            faults.forbidden(
                &path.child(refused_name(name)),
                "may not specify more than 1 volume type",
            );
        } else {
            check(faults, name, &volume[*name], &path.child(shown_name(name)));
        }
    }
    if count == 0 {
        faults.required(path, "must specify a volume type");
    }
}

/// Upstream's faults call some sources by other names.
fn refused_name(name: &str) -> &str {
    match name {
        "cephfs" => "cephFS",
        "downwardAPI" => "downwarAPI",
        name => name,
    }
}

fn shown_name(name: &str) -> &str {
    match name {
        "gcePersistentDisk" => "persistentDisk",
        name => name,
    }
}

/// A source that both holders can have.
pub(super) fn shared(faults: &mut Faults, holder: Holder, name: &str, source: &Value, path: &Path) {
    match name {
        "hostPath" => host_path(faults, source, path),
        "gcePersistentDisk" => disk(faults, source, "pdName", path),
        "awsElasticBlockStore" => disk(faults, source, "volumeID", path),
        "nfs" => nfs(faults, source, path),
        "iscsi" => iscsi(faults, holder, source, path),
        "glusterfs" => faults.not_empty(source, path, &["endpoints", "path"]),
        "flocker" => flocker(faults, source, path),
        "rbd" => {
            monitors(faults, source, path);
            faults.not_empty(source, path, &["image"]);
        }
        "cinder" => {
            faults.not_empty(source, path, &["volumeID"]);
            secret_reference(faults, holder, source, path);
        }
        "cephfs" => monitors(faults, source, path),
        "quobyte" => quobyte(faults, source, path),
        "fc" => fibre_channel(faults, source, path),
        "flexVolume" => flex(faults, source, path),
        "azureFile" => {
            faults.not_empty(source, path, &["secretName", "shareName"]);
            if source.maybe_text("secretNamespace") == Some("") {
                faults.required(&path.child("secretNamespace"), "");
            }
        }
        "vsphereVolume" => faults.not_empty(source, path, &["volumePath"]),
        "photonPersistentDisk" => faults.not_empty(source, path, &["pdID"]),
        "portworxVolume" => faults.not_empty(source, path, &["volumeID"]),
        "azureDisk" => azure_disk(faults, source, path),
        "scaleIO" => faults.not_empty(source, path, &["gateway", "system", "volumeName"]),
        "storageos" => storage_os(faults, holder, source, path),
        "csi" => container_storage(faults, holder, source, path),
        _ => {}
    }
}

fn host_path(faults: &mut Faults, source: &Value, path: &Path) {
    let host = source.text("path");
    if host.is_empty() {
        faults.required(&path.child("path"), "");
        return;
    }
    no_backsteps(faults, host, &path.child("path"));
    faults.choice(
        &path.child("type"),
        &source["type"],
        &[
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ],
    );
}

/// Whether a path leads upwards somewhere. Both kinds of slashes count, since nodes may be Windows.
pub(super) fn has_backsteps(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| part == "..")
}

pub(super) fn no_backsteps(faults: &mut Faults, text: &str, path: &Path) {
    if has_backsteps(text) {
        faults.invalid(path, text, "must not contain '..'");
    }
}

fn disk(faults: &mut Faults, source: &Value, name: &str, path: &Path) {
    faults.not_empty(source, path, &[name]);
    let partition = source.number("partition");
    if !(0..=255).contains(&partition) {
        faults.invalid(&path.child("partition"), partition, formats::range(1, 255));
    }
}

fn nfs(faults: &mut Faults, source: &Value, path: &Path) {
    faults.not_empty(source, path, &["server", "path"]);
    if !source.text("path").starts_with('/') {
        faults.invalid(
            &path.child("path"),
            source.text("path"),
            "must be an absolute path",
        );
    }
}

fn iscsi(faults: &mut Faults, holder: Holder, source: &Value, path: &Path) {
    faults.not_empty(source, path, &["targetPortal", "iqn"]);
    let name = source.text("iqn");
    if !name.is_empty() {
        iscsi_name(faults, holder, name, &path.child("iqn"));
    }
    let unit = source.number("lun");
    faults.messages(&path.child("lun"), unit, formats::in_range(unit, 0, 255));
    let asks = source.flag("chapAuthDiscovery") || source.flag("chapAuthSession");
    if asks && !source.has("secretRef") {
        faults.required(&path.child("secretRef"), "");
    }
    if holder == Holder::PersistentVolume
        && source.has("secretRef")
        && source["secretRef"].text("name").is_empty()
    {
        faults.required(&path.child("secretRef").child("name"), "");
    }
    if let Some(initiator) = source.maybe_text("initiatorName") {
        iscsi_name(faults, holder, initiator, &path.child("initiatorname"));
    }
}

fn iscsi_name(faults: &mut Faults, holder: Holder, name: &str, path: &Path) {
    let alphanumeric = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let fine = match name.get(..3) {
        Some("iqn") => is_qualified_iscsi_name(name),
        Some("eui") => name.get(4..).is_some_and(|rest| alphanumeric(rest, 16)),
        Some("naa") => name.get(4..).is_some_and(|rest| alphanumeric(rest, 32)),
        _ => {
            let detail = match holder {
                Holder::Pod => "must be valid format starting with iqn, eui, or naa",
                Holder::PersistentVolume => "must be valid format",
            };
            faults.invalid(path, name, detail);
            return;
        }
    };
    if !fine {
        faults.invalid(path, name, "must be valid format");
    }
}

/// A name like `iqn.2001-04.com.example:storage`.
fn is_qualified_iscsi_name(name: &str) -> bool {
    let parts = || -> Option<(&str, &str)> {
        let rest = name.strip_prefix("iqn.")?;
        let (date, rest) = rest.split_once('.')?;
        let (year, month) = date.split_once('-')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        (year.len() == 4 && month.len() == 2 && digits(year) && digits(month)).then_some(())?;
        rest.split_once(':')
    };
    parts().is_some_and(|(authority, target)| {
        !authority.is_empty()
            && authority
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
            && !target.is_empty()
            && !target.contains(|each: char| ",;*&$|".contains(each) || each.is_whitespace())
    })
}

fn flocker(faults: &mut Faults, source: &Value, path: &Path) {
    let name = source.text("datasetName");
    let has_id = !source.text("datasetUUID").is_empty();
    if name.is_empty() && !has_id {
        faults.required(path, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && has_id {
        faults.invalid(
            path,
            "resource",
            "datasetName and datasetUUID can not be specified simultaneously",
        );
    }
    if name.contains('/') {
        faults.invalid(&path.child("datasetName"), name, "must not contain '/'");
    }
}

fn monitors(faults: &mut Faults, source: &Value, path: &Path) {
    if source.items("monitors").is_empty() {
        faults.required(&path.child("monitors"), "");
    }
}

fn quobyte(faults: &mut Faults, source: &Value, path: &Path) {
    let pairs = "must be a host:port pair or multiple pairs separated by commas";
    let registry = source.text("registry");
    if registry.is_empty() {
        faults.required(&path.child("registry"), pairs);
    } else if source.text("tenant").len() >= 65 {
        faults.required(
            &path.child("tenant"),
            "must be a UUID and may not exceed a length of 64 characters",
        );
    } else {
        for pair in registry.split(',') {
            let has_port = pair
                .rsplit_once(':')
                .is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'));
            if !has_port {
                faults.invalid(&path.child("registry"), registry, pairs);
            }
        }
    }
    faults.not_empty(source, path, &["volume"]);
}

fn fibre_channel(faults: &mut Faults, source: &Value, path: &Path) {
    let targets = source.items("targetWWNs");
    let ids = source.items("wwids");
    if targets.is_empty() && ids.is_empty() {
        faults.required(
            &path.child("targetWWNs"),
            "must specify either targetWWNs or wwids, but not both",
        );
    }
    if !targets.is_empty() && !ids.is_empty() {
        faults.invalid(
            &path.child("targetWWNs"),
            source["targetWWNs"].clone(),
            "targetWWNs and wwids can not be specified simultaneously",
        );
    }
    if !targets.is_empty() {
        match source.maybe_number("lun") {
            None => faults.required(
                &path.child("lun"),
                "lun is required if targetWWNs is specified",
            ),
            Some(unit) => {
                faults.messages(&path.child("lun"), unit, formats::in_range(unit, 0, 255));
            }
        }
    }
}

fn flex(faults: &mut Faults, source: &Value, path: &Path) {
    faults.not_empty(source, path, &["driver"]);
    for option in source.entries("options").keys() {
        let domain = option
            .split_once('/')
            .map_or(option.as_str(), |parts| parts.0);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            faults.invalid(
                &path.child("options").key(option),
                option.as_str(),
                "kubernetes.io and k8s.io namespaces are reserved",
            );
        }
    }
}

fn azure_disk(faults: &mut Faults, source: &Value, path: &Path) {
    faults.not_empty(source, path, &["diskName", "diskURI"]);
    faults.choice(
        &path.child("cachingMode"),
        &source["cachingMode"],
        &["None", "ReadOnly", "ReadWrite"],
    );
    faults.choice(
        &path.child("kind"),
        &source["kind"],
        &["Dedicated", "Managed", "Shared"],
    );
    let address = source.text("diskURI");
    match source.maybe_text("kind") {
        Some("Managed") if !address.starts_with("/subscriptions/") => {
            faults.push(FieldError::not_supported(
                &path.child("diskURI"),
                address,
                &["/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"],
            ));
        }
        Some(kind) if kind != "Managed" && !address.starts_with("https://") => {
            faults.push(FieldError::not_supported(
                &path.child("diskURI"),
                address,
                &["https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"],
            ));
        }
        _ => {}
    }
}

fn secret_reference(faults: &mut Faults, holder: Holder, source: &Value, path: &Path) {
    if !source.has("secretRef") {
        return;
    }
    let fields: &[&str] = match holder {
        Holder::Pod => &["name"],
        Holder::PersistentVolume => &["name", "namespace"],
    };
    faults.not_empty(&source["secretRef"], &path.child("secretRef"), fields);
}

fn storage_os(faults: &mut Faults, holder: Holder, source: &Value, path: &Path) {
    let name = source.text("volumeName");
    if name.is_empty() {
        faults.required(&path.child("volumeName"), "");
    } else {
        faults.messages(&path.child("volumeName"), name, formats::label(name));
    }
    let namespace = source.text("volumeNamespace");
    if !namespace.is_empty() {
        faults.messages(
            &path.child("volumeNamespace"),
            namespace,
            formats::label(namespace),
        );
    }
    secret_reference(faults, holder, source, path);
}

/// The name of a storage driver.
pub(super) fn driver_name(faults: &mut Faults, name: &str, path: &Path) {
    if name.is_empty() {
        faults.required(path, "");
    }
    if name.len() > 63 {
        faults.push(FieldError::too_long(path, 63));
    }
    faults.messages(path, name, formats::subdomain(&name.to_lowercase()));
}

fn container_storage(faults: &mut Faults, holder: Holder, source: &Value, path: &Path) {
    driver_name(faults, source.text("driver"), &path.child("driver"));
    if holder == Holder::Pod {
        if source.has("nodePublishSecretRef") {
            let name = source["nodePublishSecretRef"].text("name");
            if name.is_empty() {
                faults.required(&path.child("nodePublishSecretRef").child("name"), "");
            } else {
                faults.messages(&path.child("name"), name, formats::subdomain(name));
            }
        }
        return;
    }
    faults.not_empty(source, path, &["volumeHandle"]);
    for field in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        if !source.has(field) {
            continue;
        }
        let reference = &source[field];
        let path = path.child(field);
        metadata::reference_name(faults, reference.text("name"), &path.child("name"));
        let namespace = reference.text("namespace");
        if namespace.is_empty() {
            faults.required(&path.child("namespace"), "");
        } else {
            faults.messages(
                &path.child("namespace"),
                namespace,
                formats::label(namespace),
            );
        }
    }
}
