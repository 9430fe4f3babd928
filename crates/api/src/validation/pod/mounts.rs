//! Where containers see volumes: as directories or as block devices.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Context, volumes};
use crate::{
    field::{FieldError, Path},
    validation::{
        fault::{Faults, Report},
        read::Read,
    },
};

pub(super) fn mounts(faults: &mut Faults, context: &Context<'_>, container: &Value, path: &Path) {
    let devices = container.items("volumeDevices");
    let mut places = BTreeSet::new();
    for (index, mount) in container.items("volumeMounts").iter().enumerate() {
        let item_path = path.index(index);
        let name = mount.text("name");
        let place = mount.text("mountPath");
        if name.is_empty() {
            faults.required(&item_path.child("name"), "");
        }
        if !context.volumes.contains_key(name) {
            faults.push(FieldError::not_found(&item_path.child("name"), name));
        }
        if place.is_empty() {
            faults.required(&item_path.child("mountPath"), "");
        }
        if !places.insert(place) {
            faults.invalid(&item_path.child("mountPath"), place, "must be unique");
        }
        if devices.iter().any(|device| device.text("name") == name) {
            faults.invalid(
                &item_path.child("name"),
                name,
                "must not already exist in volumeDevices",
            );
        }
        if devices
            .iter()
            .any(|device| device.text("devicePath") == place)
        {
            faults.invalid(
                &item_path.child("mountPath"),
                place,
                "must not already exist as a path in volumeDevices",
            );
        }
        below(faults, mount, &item_path, path);
        propagation(faults, mount, container, &path.child("mountPropagation"));
        recursive_read_only(faults, mount, &path.child("recursiveReadOnly"));
    }
}

/// A directory of the volume instead of its root. The list's path in the faults is upstream's.
fn below(faults: &mut Faults, mount: &Value, item_path: &Path, path: &Path) {
    let plain = mount.text("subPath");
    if !plain.is_empty() {
        volumes::descending_path(faults, plain, &path.child("subPath"));
    }
    let expanded = mount.text("subPathExpr");
    if !expanded.is_empty() {
        if !plain.is_empty() {
            faults.invalid(
                &item_path.child("subPathExpr"),
                expanded,
                "subPathExpr and subPath are mutually exclusive",
            );
        }
        volumes::descending_path(faults, expanded, &path.child("subPathExpr"));
    }
}

fn propagation(faults: &mut Faults, mount: &Value, container: &Value, path: &Path) {
    let Some(mode) = mount.maybe_text("mountPropagation") else {
        return;
    };
    faults.choice(
        path,
        &mount["mountPropagation"],
        &["Bidirectional", "HostToContainer", "None"],
    );
    if mode == "Bidirectional" && !container["securityContext"].flag("privileged") {
        faults.forbidden(
            path,
            "Bidirectional mount propagation is available only to privileged containers",
        );
    }
}

fn recursive_read_only(faults: &mut Faults, mount: &Value, path: &Path) {
    match mount.maybe_text("recursiveReadOnly") {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.flag("readOnly") {
                faults.forbidden(path, "may only be specified when readOnly is true");
            }
            if !matches!(mount.text("mountPropagation"), "" | "None") {
                faults.forbidden(
                    path,
                    "may only be specified when mountPropagation is None or not specified",
                );
            }
        }
        Some(other) => faults.push(FieldError::not_supported(
            path,
            other,
            &["Disabled", "Enabled", "IfPossible"],
        )),
    }
}

pub(super) fn devices(faults: &mut Faults, context: &Context<'_>, container: &Value, path: &Path) {
    let mounts = container.items("volumeMounts");
    let mut names = BTreeSet::new();
    let mut places = BTreeSet::new();
    for (index, device) in container.items("volumeDevices").iter().enumerate() {
        let path = path.index(index);
        let name = device.text("name");
        let place = device.text("devicePath");
        if name.is_empty() {
            faults.required(&path.child("name"), "");
        }
        if names.contains(name) {
            faults.invalid(&path.child("name"), name, "must be unique");
        }
        match context.volumes.get(name) {
            Some(volume) if !volume.has("persistentVolumeClaim") && !volume.has("ephemeral") => {
                faults.invalid(
                    &path.child("name"),
                    name,
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
                );
            }
            Some(_) => {}
            None => faults.push(FieldError::not_found(&path.child("name"), name)),
        }
        if place.is_empty() {
            faults.required(&path.child("devicePath"), "");
        }
        if places.contains(place) {
            faults.invalid(&path.child("devicePath"), place, "must be unique");
        }
        if volumes::has_backsteps(place) {
            faults.invalid(
                &path.child("devicePath"),
                place,
                "can not contain backsteps ('..')",
            );
        } else {
            places.insert(place);
        }
        if mounts.iter().any(|mount| mount.text("name") == name) {
            faults.invalid(
                &path.child("name"),
                name,
                "must not already exist in volumeMounts",
            );
        }
        if mounts.iter().any(|mount| mount.text("mountPath") == place) {
            faults.invalid(
                &path.child("devicePath"),
                place,
                "must not already exist as a path in volumeMounts",
            );
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}
