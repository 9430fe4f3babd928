//! What a path may write: everything else of an object stays as it is, whatever the client sent.
//!
//! A client that may write one part cannot change another by way of it.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    apply::{ANY, Scope},
    object,
    registry::Kind,
    validation::read::Read as _,
};

/// The part of an object that a path writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status, where that has a path of its own.
    Main,
    Status,
    /// Whether a certificate may be signed.
    Approval,
    /// The finalizers in the specification of a namespace.
    Finalize,
    /// The containers that were put into a running pod.
    EphemeralContainers,
    /// What the containers of a pod may use.
    Resize,
    /// How many replicas there are: the caller has put it in already.
    Scale,
}

impl Part {
    /// The part behind the last word of a path.
    pub(crate) fn of(subresource: &str) -> Self {
        match subresource {
            "status" => Self::Status,
            "approval" => Self::Approval,
            "finalize" => Self::Finalize,
            "ephemeralcontainers" => Self::EphemeralContainers,
            "resize" => Self::Resize,
            "scale" => Self::Scale,
            _ => Self::Main,
        }
    }

    /// What can be owned by way of a path: upstream's fields that are not reset there.
    pub(crate) fn scope(self, kind: &Kind) -> Scope {
        match self {
            // What a certificate was asked for never changes: nobody owns it.
            Self::Main if is_signing_request(kind) => Scope::all_but(&[&["spec"], &["status"]]),
            Self::Main if kind.has_status() => Scope::all_but(&[&["status"]]),
            // A custom kind may have other parts, which are kept.
            Self::Status if kind.custom.is_some() => Scope::Only(&[&["status"]]),
            Self::Status => status_scope(kind),
            Self::Approval => Scope::all_but(&[&["spec"], &["status", "certificate"]]),
            Self::Finalize => Scope::all_but(&[&["status"]]),
            Self::EphemeralContainers => Scope::Only(&[&["spec", "ephemeralContainers"]]),
            Self::Resize => Scope::Only(&[
                &["spec", "containers", ANY, "resources"],
                &["spec", "containers", ANY, "resizePolicy"],
                &["spec", "initContainers", ANY, "resources"],
                &["spec", "initContainers", ANY, "resizePolicy"],
            ]),
            Self::Main | Self::Scale => Scope::everything(),
        }
    }
}

fn status_scope(kind: &Kind) -> Scope {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => Scope::all_but(&[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "finalizers"],
            &["metadata", "ownerReferences"],
        ]),
        ("apps", "Deployment") => Scope::all_but(&[&["spec"], &["metadata", "labels"]]),
        // Upstream lets the metadata of a definition be written here, but be owned by nobody.
        ("apiextensions.k8s.io", _) => Scope::all_but(&[&["spec"], &["metadata"]]),
        _ if kind.status_keeps_metadata() => Scope::all_but(&[&["spec"], &["metadata"]]),
        _ if is_signing_request(kind) => Scope::all_but(&[&["spec"], &["status", "conditions"]]),
        _ => Scope::all_but(&[&["spec"]]),
    }
}

/// What of the metadata is for people and controllers to write, on the path of the object itself.
const METADATA: &[&str] = &[
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "generateName",
];

/// What of the metadata a write of the status leaves as it is.
fn kept_by_status(kind: &Kind) -> &'static [&'static str] {
    match (kind.group.as_str(), kind.kind.as_str()) {
        _ if kind.status_keeps_metadata() => METADATA,
        ("", "Pod") => &["finalizers", "ownerReferences"],
        ("apps", "Deployment") => &["labels"],
        _ => &[],
    }
}

/// Takes what the path does not write from the current object.
pub(super) fn restrict(
    kind: &Kind,
    part: Part,
    current: &Value,
    wanted: &mut Value,
    now: Timestamp,
) {
    match part {
        Part::Main => main(kind, current, wanted),
        Part::Status | Part::Approval => {
            keep_all_but(current, wanted, "status");
            keep_metadata(current, wanted, kept_by_status(kind));
        }
        Part::Finalize => {
            let finalizers = wanted["spec"].get("finalizers").cloned();
            keep_all_but(current, wanted, "metadata");
            set_in(wanted, "spec", "finalizers", finalizers);
        }
        Part::EphemeralContainers => {
            let containers = wanted["spec"].get("ephemeralContainers").cloned();
            keep_all_but(current, wanted, "metadata");
            keep_metadata(current, wanted, METADATA);
            set_in(wanted, "spec", "ephemeralContainers", containers);
        }
        Part::Resize => resize(current, wanted),
        Part::Scale => {}
    }
    if is_signing_request(kind) {
        signing_request(part, current, wanted, now);
    }
}

/// Sets or removes a field.
fn set(holder: &mut Value, field: &str, value: Option<Value>) {
    let map = object::as_map(holder);
    match value {
        Some(value) => map.insert(field.to_owned(), value),
        None => map.remove(field),
    };
}

/// Sets or removes a field of a part, which comes to be if there is something to set.
fn set_in(object: &mut Value, part: &str, field: &str, value: Option<Value>) {
    if value.is_some() || object.get(part).is_some_and(Value::is_object) {
        set(&mut object[part], field, value);
    }
}

fn keep(current: &Value, wanted: &mut Value, field: &str) {
    set(wanted, field, current.get(field).cloned());
}

/// Keeps all fields of an object but one, and its metadata.
fn keep_all_but(current: &Value, wanted: &mut Value, written: &str) {
    let names = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .map(|map| map.keys().cloned().collect())
            .unwrap_or_default()
    };
    for field in names(wanted).into_iter().chain(names(current)) {
        if field != written && !matches!(field.as_str(), "metadata" | "kind" | "apiVersion") {
            keep(current, wanted, &field);
        }
    }
}

fn keep_metadata(current: &Value, wanted: &mut Value, fields: &[&str]) {
    for field in fields {
        object::set_metadata(wanted, field, current["metadata"].get(*field).cloned());
    }
}

fn main(kind: &Kind, current: &Value, wanted: &mut Value) {
    if kind.group.is_empty() && kind.kind == "Namespace" {
        // These go through `finalize` only.
        let finalizers = current["spec"].get("finalizers").cloned();
        set_in(wanted, "spec", "finalizers", finalizers);
    }
    if kind.has_status() {
        keep(current, wanted, "status");
    }
}

/// Resources of containers, and how they are told of a change. Where the containers are not the same ones, all
/// is left for the validation to refuse.
fn resize(current: &Value, wanted: &mut Value) {
    let lists = ["initContainers", "containers"];
    let names = |pod: &Value, list: &str| -> Vec<String> {
        let items = pod["spec"].items(list).iter();
        items.map(|each| each.text("name").to_owned()).collect()
    };
    let is_same = lists
        .iter()
        .all(|list| names(current, list) == names(wanted, list));
    let asked = wanted["spec"].take();
    keep_all_but(current, wanted, "metadata");
    keep_metadata(current, wanted, METADATA);
    if !is_same {
        wanted["spec"] = asked;
        return;
    }
    for list in lists {
        let containers = wanted["spec"].get_mut(list).and_then(Value::as_array_mut);
        for (container, asked) in containers
            .into_iter()
            .flatten()
            .zip(asked[list].as_array().into_iter().flatten())
        {
            for field in ["resources", "resizePolicy"] {
                set(container, field, asked.get(field).cloned());
            }
        }
    }
}

fn is_signing_request(kind: &Kind) -> bool {
    kind.group == "certificates.k8s.io" && kind.kind == "CertificateSigningRequest"
}

/// What was asked for, and by whom, never changes: an approval would else be for something else. Who approves does
/// not sign, and who signs does not approve.
fn signing_request(part: Part, current: &Value, wanted: &mut Value, now: Timestamp) {
    keep(current, wanted, "spec");
    match part {
        Part::Approval => {
            let certificate = current["status"].get("certificate").cloned();
            set_in(wanted, "status", "certificate", certificate);
        }
        Part::Status => keep_decisions(current, wanted),
        _ => return,
    }
    let Some(conditions) = wanted
        .get_mut("status")
        .and_then(|status| status.get_mut("conditions"))
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        date(condition, current["status"].items("conditions"), now);
    }
}

/// Decisions that a signer leaves out are kept.
fn keep_decisions(current: &Value, wanted: &mut Value) {
    for decision in ["Approved", "Denied"] {
        let of = |request: &Value| -> Vec<Value> {
            let all = request["status"].items("conditions").iter();
            all.filter(|each| each.text("type") == decision)
                .cloned()
                .collect()
        };
        let missing: Vec<Value> = of(current).into_iter().skip(of(wanted).len()).collect();
        if missing.is_empty() {
            continue;
        }
        let status = object::as_map(&mut wanted["status"]);
        let conditions = status
            .entry("conditions")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Some(list) = conditions.as_array_mut() {
            list.extend(missing);
        }
    }
}

/// Says when a condition came, where its writer did not.
fn date(condition: &mut Map<String, Value>, before: &[Value], now: Timestamp) {
    condition
        .entry("lastUpdateTime")
        .or_insert_with(|| object::time(now));
    let same = |old: &&Value| {
        Some(&old["type"]) == condition.get("type")
            && Some(&old["status"]) == condition.get("status")
            && old.has("lastTransitionTime")
    };
    let since = before.iter().find(same).map_or_else(
        || object::time(now),
        |old| old["lastTransitionTime"].clone(),
    );
    condition.entry("lastTransitionTime").or_insert(since);
}
