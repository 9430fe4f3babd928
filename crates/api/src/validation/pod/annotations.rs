//! Annotations that mean something to pods, most of them older than the fields that replaced them.

use serde_json::Value;

use super::{each_container, volumes};
use crate::{
    field::Path,
    validation::{
        fault::{Faults, Report},
        read::Read,
    },
};

pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn validate(faults: &mut Faults, metadata: &Value, spec: &Value, path: &Path) {
    let annotations = &metadata["annotations"];
    if let Some(value) = annotations.maybe_text(MIRROR)
        && spec.text("nodeName").is_empty()
    {
        faults.invalid(
            &path.key(MIRROR),
            value,
            "must set spec.nodeName if mirror pod annotation is set",
        );
    }
    if let Some(cost) = annotations.maybe_text(DELETION_COST)
        && !is_cost(cost)
    {
        faults.invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer");
    }
    for (key, value) in metadata.entries("annotations") {
        let value = value.as_str().unwrap_or_default();
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            seccomp(faults, value, &path.child(key));
        } else if let Some(container) = key.strip_prefix(APP_ARMOR) {
            if !has_container(spec, container) {
                faults.invalid(&path.key(key), container, "container not found");
            }
            let known = matches!(value, "" | "runtime/default" | "unconfined");
            if !known && !value.starts_with("localhost/") {
                faults.invalid(
                    &path.key(key),
                    value,
                    format!("invalid AppArmor profile name: {value:?}"),
                );
            }
        }
    }
}

/// A number without plus sign or leading zeros.
fn is_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let padded = digits.len() > 1 && digits.starts_with('0');
    !padded && !text.starts_with('+') && text.parse::<i32>().is_ok()
}

fn seccomp(faults: &mut Faults, profile: &str, path: &Path) {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        _ => match profile.strip_prefix("localhost/") {
            Some(file) => volumes::descending_path(faults, file, path),
            None => faults.invalid(path, profile, "must be a valid seccomp profile"),
        },
    }
}

fn has_container(spec: &Value, name: &str) -> bool {
    each_container(spec, &Path::new("spec")).any(|(container, _)| container.text("name") == name)
}

/// Where both an annotation and its field are set, they must say the same.
pub(super) fn match_fields(faults: &mut Faults, metadata: &Value, spec: &Value, path: &Path) {
    let annotations = &metadata["annotations"];
    if let Some(annotation) = annotations.maybe_text(SECCOMP_POD) {
        let path = path.child("securityContext").child("seccompProfile");
        let profile = &spec["securityContext"]["seccompProfile"];
        same_profile(faults, "seccomp", annotation, profile, &path);
    }
    for (container, at) in each_container(spec, path) {
        let key = format!("{SECCOMP_CONTAINER}{}", container.text("name"));
        if let Some(annotation) = annotations.maybe_text(&key) {
            let path = at.child("securityContext").child("seccompProfile");
            let profile = &container["securityContext"]["seccompProfile"];
            same_profile(faults, "seccomp", annotation, profile, &path);
        }
    }
    if spec["os"].text("name") == "windows" {
        return;
    }
    for (container, at) in each_container(spec, path) {
        let key = format!("{APP_ARMOR}{}", container.text("name"));
        let Some(annotation) = annotations.maybe_text(&key) else {
            continue;
        };
        let own = &container["securityContext"]["appArmorProfile"];
        let profile = if own.is_null() {
            &spec["securityContext"]["appArmorProfile"]
        } else {
            own
        };
        let path = at.child("securityContext").child("appArmorProfile");
        same_profile(faults, "apparmor", annotation, profile, &path);
    }
}

fn same_profile(faults: &mut Faults, what: &str, annotation: &str, profile: &Value, path: &Path) {
    let file = annotation.strip_prefix("localhost/");
    let same = match profile.text("type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default")
        }
        "Localhost" => file.is_some(),
        _ => return,
    };
    if !same {
        faults.forbidden(
            &path.child("type"),
            format!("{what} type in annotation and field must match"),
        );
    } else if file.is_some() && file != profile.maybe_text("localhostProfile") {
        faults.forbidden(
            &path.child("localhostProfile"),
            format!("{what} profile in annotation and field must match"),
        );
    }
}

/// Annotations that a pod has for good, or never.
pub(super) fn update(faults: &mut Faults, new: &Value, old: &Value, path: &Path) {
    let (new_set, old_set) = (
        new["metadata"].entries("annotations"),
        old["metadata"].entries("annotations"),
    );
    for (key, value) in old_set {
        if new_set.get(key) == Some(value) {
            continue;
        }
        if key.starts_with(APP_ARMOR) {
            faults.forbidden(
                &path.key(key),
                "may not remove or update AppArmor annotations",
            );
        }
        if key == MIRROR {
            faults.forbidden(
                &path.key(key),
                "may not remove or update mirror pod annotation",
            );
        }
    }
    for key in new_set.keys().filter(|key| !old_set.contains_key(*key)) {
        if key.starts_with(APP_ARMOR) {
            faults.forbidden(&path.key(key), "may not add AppArmor annotations");
        }
        if key == MIRROR {
            faults.forbidden(&path.key(key), "may not add mirror pod annotation");
        }
    }
    validate(faults, &new["metadata"], &new["spec"], path);
}
