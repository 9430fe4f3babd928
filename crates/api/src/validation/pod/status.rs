//! What a node or a controller may say about a pod.

use serde_json::Value;

use super::{annotations, network};
use crate::{
    field::{FieldError, Path},
    validation::{
        fault::{Faults, Report},
        formats, metadata,
        read::Read,
    },
};

const STATUS_LISTS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];

pub(in crate::validation) fn status(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    let path = Path::new("metadata");
    annotations::update(faults, new, old, &path.child("annotations"));
    conditions(faults, &new["status"], &path.child("conditions"));
    let path = Path::new("status");
    if new["spec"].text("nodeName") != old["spec"].text("nodeName") {
        faults.forbidden(&path.child("nodeName"), "may not be changed directly");
    }
    let nominated = new["status"].text("nominatedNodeName");
    if !nominated.is_empty() && nominated != old["status"].text("nominatedNodeName") {
        faults.messages(
            &path.child("nominatedNodeName"),
            nominated,
            formats::subdomain(nominated),
        );
    }
    let class = |pod: &Value| pod["status"].text("qosClass").to_owned();
    if class(new) != class(old) {
        faults.invalid(
            &path.child("qosClass"),
            class(new),
            crate::validation::fault::IMMUTABLE,
        );
    }
    transitions(faults, new, old, &path);
    claim_statuses(faults, new, &path.child("resourceClaimStatuses"));
    network::addresses(faults, &new["status"]["podIPs"], &path.child("podIPs"));
    host_addresses(faults, &new["status"], &path.child("hostIPs"));
    for (list, _) in STATUS_LISTS {
        users(faults, new, list, &path.child(list));
    }
}

fn conditions(faults: &mut Faults, status: &Value, path: &Path) {
    for (index, condition) in status.items("conditions").iter().enumerate() {
        let kind = condition.text("type");
        if matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            continue;
        }
        faults.messages(
            &path.index(index).child("Type"),
            kind,
            formats::qualified_name(kind),
        );
    }
}

/// A container that ended for good does not run again.
fn transitions(faults: &mut Faults, new: &Value, old: &Value, path: &Path) {
    for (list, containers) in STATUS_LISTS {
        let policy = if list == "ephemeralContainerStatuses" {
            "Never"
        } else {
            old["spec"].text("restartPolicy")
        };
        if policy == "Always" {
            continue;
        }
        for (index, before) in old["status"].items(list).iter().enumerate() {
            let ended = &before["state"]["terminated"];
            let name = before.text("name");
            let own_policy = old["spec"]
                .items(containers)
                .iter()
                .find(|container| container.text("name") == name)
                .is_some_and(|container| {
                    container.has("restartPolicyRules")
                        || matches!(container.text("restartPolicy"), "Always" | "OnFailure")
                });
            let may_restart =
                own_policy || (ended.number("exitCode") != 0 && policy == "OnFailure");
            if ended.is_null() || may_restart {
                continue;
            }
            let runs_again = new["status"]
                .items(list)
                .iter()
                .any(|after| after.text("name") == name && !after["state"].has("terminated"));
            if runs_again {
                faults.forbidden(
                    &path.child(list).index(index).child("state"),
                    "may not be transitioned to non-terminated state",
                );
            }
        }
    }
}

fn claim_statuses(faults: &mut Faults, pod: &Value, path: &Path) {
    let claims = pod["spec"].items("resourceClaims");
    let statuses = pod["status"].items("resourceClaimStatuses");
    for (index, status) in statuses.iter().enumerate() {
        let path = path.index(index).child("name");
        let name = status.text("name");
        if !claims.iter().any(|claim| claim.text("name") == name) {
            faults.invalid(
                &path,
                name,
                "must match the name of an entry in `spec.resourceClaims`",
            );
        }
        if statuses[..index]
            .iter()
            .any(|each| each.text("name") == name)
        {
            faults.push(FieldError::duplicate(&path, name));
        }
        if let Some(claim) = status.maybe_text("resourceClaimName") {
            faults.messages(&path, claim, formats::subdomain(claim));
        }
    }
}

fn host_addresses(faults: &mut Faults, status: &Value, path: &Path) {
    if let Some(first) = status.items("hostIPs").first()
        && first.text("ip") != status.text("hostIP")
    {
        faults.invalid(
            &path.index(0).child("ip"),
            first.text("ip"),
            "must be equal to `hostIP`",
        );
    }
    network::addresses(faults, &status["hostIPs"], path);
}

fn users(faults: &mut Faults, pod: &Value, list: &str, path: &Path) {
    let windows = pod["spec"]["os"].text("name") == "windows";
    for (index, status) in pod["status"].items(list).iter().enumerate() {
        let user = &status["user"]["linux"];
        if user.is_null() {
            continue;
        }
        let path = path.index(index).child("linux");
        if windows {
            faults.forbidden(&path, "cannot be set for a windows pod");
            continue;
        }
        for field in ["uid", "gid"] {
            let id = user.number(field);
            faults.messages(&path.child(field), id, formats::unix_id(id));
        }
        for (index, group) in user.items("supplementalGroups").iter().enumerate() {
            let id = group.as_i64().unwrap_or_default();
            faults.messages(
                &path.child("supplementalGroups").index(index),
                id,
                formats::unix_id(id),
            );
        }
    }
}
