//! Kinds of our own, under `transom.dev`. Each is described as a custom resource is and served as one is, but it
//! belongs to the program: there is no definition in the store that somebody could change or delete.

use std::sync::Arc;

use serde_json::{Value, json};
use transom_model::images;

use super::{custom, kind::Kind};

/// Every kind of our own.
pub(super) fn kinds() -> Vec<Arc<Kind>> {
    let definitions = [image()].into_iter();
    definitions
        .filter_map(|definition| custom::read(definition.to_string().as_bytes()))
        .flat_map(|(_, definition)| definition.served)
        .collect()
}

/// What is known of a container image. The status has no path of its own: only programs write these objects, and
/// they know name and content at the same moment.
fn image() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let platform = json!({
        "type": "object",
        "required": ["os", "architecture"],
        "properties": {
            "os": text("The system, as linux or windows."),
            "architecture": text("The processor, as amd64 or arm64."),
            "osVersion": text("The build of Windows that the image was made for."),
        },
    });
    let status = json!({
        "type": "object",
        "description": "What is known of the image, and since when.",
        "properties": {
            "digest": text("The digest of the manifest, or of the index of several."),
            "platforms": {"type": "array", "items": platform,
                "description": "What the image is for; several if it is an index."},
            "runsOn": text("The platforms as a text."),
            "checkedAt": {"type": "string", "format": "date-time",
                "description": "When somebody looked last."},
            "message": text("Why nothing new could be learned then."),
            "node": text("The node that told, if it was not the registry itself."),
        },
    });
    let schema = json!({
        "type": "object",
        "description": "Image is what is known of a container image. Pods are placed on nodes that can run all of their images.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "description": "Which image this is about.",
                "required": ["reference"],
                "properties": {"reference": {"type": "string", "minLength": 1,
                    "description": "The full name by which pods ask for the image: registry, path, and tag or digest."}},
            },
            "status": status,
        },
    });
    let column = |name: &str, kind: &str, path: &str, about: &str, priority: i64| json!({"name": name, "type": kind, "jsonPath": path, "description": about, "priority": priority});
    let columns = [
        column(
            "Reference",
            "string",
            ".spec.reference",
            "The name of the image.",
            0,
        ),
        column(
            "Platforms",
            "string",
            ".status.runsOn",
            "What it is for.",
            0,
        ),
        column(
            "Checked",
            "date",
            ".status.checkedAt",
            "When somebody looked last.",
            1,
        ),
        column(
            "Message",
            "string",
            ".status.message",
            "Why nothing new is known.",
            1,
        ),
        column(
            "Age",
            "date",
            ".metadata.creationTimestamp",
            "How long it is known.",
            0,
        ),
    ];
    let names = json!({"plural": images::PLURAL, "singular": "image", "kind": images::KIND,
        "listKind": format!("{}List", images::KIND), "shortNames": ["img"]});
    json!({
        // A name that no definition can have, so that one of the same kind is in conflict with ours.
        "metadata": {"name": "built in"},
        "spec": {
            "group": images::GROUP,
            "scope": "Cluster",
            "names": names,
            "versions": [{"name": images::VERSION, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": columns}],
        },
        "status": {
            "acceptedNames": names,
            "conditions": [{"type": "Established", "status": "True"}],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_of_ours_gives_a_kind() {
        let kinds = kinds();
        let names: Vec<String> = kinds.iter().map(|kind| kind.qualified()).collect();
        assert_eq!(names, ["images.transom.dev"]);
        assert!(!kinds[0].namespaced);
        assert_eq!(kinds[0].api_version(), "transom.dev/v1");
    }
}
