//! Nodes as daemons see them: what they are, and which images they have.

use k8s_openapi::api::core::v1::{ContainerImage, Node, NodeStatus, NodeSystemInfo};
use transom_model::images::canonical;

/// Leaves of a node's status what it is, and the names of its images: canonical, sorted, each once.
pub(super) fn trim(node: &mut Node) {
    let Some(status) = node.status.take() else {
        return;
    };
    let images = status.images.into_iter().flatten();
    let mut names: Vec<String> = images
        .flat_map(|image| image.names.into_iter().flatten())
        // A digest stands for the same everywhere, so that what registries tell of it holds for this node, too.
        .filter(|name| !name.contains('@'))
        .map(|name| canonical(&name))
        .collect();
    names.sort();
    names.dedup();
    let images = ContainerImage {
        names: Some(names),
        size_bytes: None,
    };
    node.status = Some(NodeStatus {
        node_info: status.node_info,
        images: Some(vec![images]),
        ..NodeStatus::default()
    });
}

/// What a node says it is.
pub(crate) fn info(node: &Node) -> Option<&NodeSystemInfo> {
    node.status.as_ref()?.node_info.as_ref()
}

/// The images of a node that was trimmed.
pub(crate) fn images(node: &Node) -> &[String] {
    let images = node
        .status
        .as_ref()
        .and_then(|status| status.images.as_ref());
    let names = images.and_then(|images| images.first()?.names.as_deref());
    names.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_status_only_what_decides_about_images_is_kept() {
        let mut node: Node = serde_json::from_value(json!({"status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [
                {"names": ["tool:1", "tool@sha256:00"], "sizeBytes": 5},
                {"names": ["docker.io/library/app:latest", "app"]},
            ],
        }}))
        .unwrap();
        trim(&mut node);
        assert_eq!(
            images(&node),
            ["docker.io/library/app:latest", "docker.io/library/tool:1"]
        );
        assert_eq!(node.status.unwrap().conditions, None);
        assert!(images(&Node::default()).is_empty());
    }
}
