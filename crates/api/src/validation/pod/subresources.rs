//! Changes of a pod that have a door of their own: containers for debugging, and other resources.

use serde_json::Value;

use super::{annotations, metadata_and_spec, update::differences};
use crate::{
    field::{FieldError, Path},
    validation::{
        amounts,
        fault::{Faults, Report, same},
        metadata,
        read::Read,
    },
};

/// An update of `ephemeralContainers`: containers may come, never go or change.
pub(in crate::validation) fn ephemeral_containers(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    metadata_and_spec(faults, new);
    annotations::update(
        faults,
        new,
        old,
        &Path::new("metadata").child("annotations"),
    );
    if is_static(old) {
        *faults = vec![FieldError::forbidden(
            &Path::new(""),
            "static pods do not support ephemeral containers",
        )];
        return;
    }
    let path = Path::new("spec").child("ephemeralContainers");
    let list = new["spec"].items("ephemeralContainers");
    for container in old["spec"].items("ephemeralContainers") {
        let name = container.text("name");
        match list.iter().find(|each| each.text("name") == name) {
            None => faults.forbidden(
                &path,
                format!("existing ephemeral containers {name:?} may not be removed\n"),
            ),
            Some(other) if !same(other, container) => faults.forbidden(
                &path,
                format!(
                    "existing ephemeral containers {name:?} may not be changed\n{}",
                    differences(container, other)
                ),
            ),
            Some(_) => {}
        }
    }
}

/// A static pod belongs to its node: the object only mirrors it.
fn is_static(pod: &Value) -> bool {
    pod["metadata"]["annotations"].has(annotations::MIRROR)
}

/// An update of `resize`: only processor and memory of containers may change.
pub(in crate::validation) fn resize(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    metadata_and_spec(faults, new);
    let whole = |pod: &Value| {
        let resources = &pod["spec"]["resources"];
        !resources.entries("requests").is_empty() || !resources.entries("limits").is_empty()
    };
    let refusal = if whole(new) || whole(old) {
        Some("pods with pod-level resources cannot be resized")
    } else if is_static(old) {
        Some("static pods cannot be resized")
    } else if old["spec"]["os"].text("name") == "windows" {
        Some("windows pods cannot be resized")
    } else {
        None
    };
    if let Some(refusal) = refusal {
        *faults = vec![FieldError::forbidden(&Path::new(""), refusal)];
        return;
    }
    let path = Path::new("spec");
    let class = amounts::quality_of_service(&old["spec"]);
    if class != amounts::quality_of_service(&new["spec"]) {
        faults.invalid(
            &path,
            new["status"].text("qosClass"),
            "Pod QOS Class may not change as a result of resizing",
        );
    }
    if !node_can_resize(old) {
        faults.forbidden(&path, "Pod running on node without support for resize");
    }
    containers(faults, new, old, &path);
}

/// Whether the node reports resources of running containers, as those do that can resize.
fn node_can_resize(pod: &Value) -> bool {
    pod["status"]
        .items("containerStatuses")
        .iter()
        .find(|status| status["state"].has("running"))
        .is_none_or(|status| status.has("resources"))
}

fn containers(faults: &mut Faults, new: &Value, old: &Value, path: &Path) {
    let mut rest = new["spec"].clone();
    for list in ["initContainers", "containers"] {
        for (index, before) in old["spec"].items(list).iter().enumerate() {
            let after = &new["spec"][list][index];
            let sidecar = before.text("restartPolicy") == "Always";
            if list == "initContainers" && !sidecar {
                if !same(after, before) {
                    faults.forbidden(
                        path,
                        "resources for non-sidecar init containers are immutable",
                    );
                }
                continue;
            }
            removed(faults, after, before, &path.child(list).index(index));
            let masked = with_basic_resources_of(after, before);
            if !same(&masked, before) {
                faults.forbidden(
                    path,
                    if list == "containers" {
                        "only cpu and memory resources are mutable"
                    } else {
                        "only cpu and memory resources for sidecar containers are mutable"
                    },
                );
            }
            if let Some(place) = rest
                .get_mut(list)
                .and_then(|containers| containers.get_mut(index))
            {
                *place = masked;
            }
        }
    }
    if faults.is_empty() && !same(&rest, &old["spec"]) {
        faults.forbidden(path, "only cpu and memory resources are mutable");
    }
}

fn removed(faults: &mut Faults, after: &Value, before: &Value, path: &Path) {
    for (field, what) in [
        ("requests", "resource requests"),
        ("limits", "resource limits"),
    ] {
        let kept = after["resources"].entries(field);
        let gone = before["resources"]
            .entries(field)
            .keys()
            .any(|name| !kept.contains_key(name));
        if gone {
            faults.forbidden(
                &path.child("resources").child(field),
                format!("{what} cannot be removed"),
            );
        }
    }
}

/// A container as if its processor and memory had not changed, nor how it is told of changes.
fn with_basic_resources_of(after: &Value, before: &Value) -> Value {
    let mut masked = after.clone();
    for field in ["requests", "limits"] {
        let mut list = after["resources"].entries(field).clone();
        for name in ["cpu", "memory"] {
            list.remove(name);
            if before["resources"][field].has(name) {
                list.insert(name.to_owned(), before["resources"][field][name].clone());
            }
        }
        if let Some(resources) = masked.get_mut("resources").and_then(Value::as_object_mut) {
            resources.insert(field.to_owned(), list.into());
        }
    }
    masked
}
