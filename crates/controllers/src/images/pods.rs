//! A pod as far as its images are concerned.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::workloads::pods::images;

/// Where the credentials of a pod are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Secrets {
    pub(super) namespace: String,
    pub(super) account: String,
    pub(super) names: Vec<String>,
}

/// A pod that is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodFacts {
    /// Canonical names, each once.
    pub(super) images: Vec<Arc<str>>,
    /// It has no node, so its images still matter.
    pub(super) is_waiting: bool,
    pub(super) secrets: Secrets,
}

impl PodFacts {
    /// `None` for a pod that will never run again.
    pub(super) fn read(pod: &Pod) -> Option<Self> {
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return None;
        }
        let spec = pod.spec.as_ref()?;
        let mut images: Vec<Arc<str>> = images(spec).map(Into::into).collect();
        images.sort();
        images.dedup();
        let has_node = spec
            .node_name
            .as_deref()
            .is_some_and(|node| !node.is_empty());
        let names = spec.image_pull_secrets.iter().flatten();
        let account = spec.service_account_name.as_deref();
        Some(Self {
            images,
            is_waiting: !has_node && pod.metadata.deletion_timestamp.is_none(),
            secrets: Secrets {
                namespace: pod.metadata.namespace.clone().unwrap_or_default(),
                account: account.unwrap_or("default").to_owned(),
                names: names.map(|one| one.name.clone()).collect(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Option<PodFacts> {
        PodFacts::read(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_pod_has_each_image_once_and_matters_until_it_has_a_node() {
        let pod = |more: Value| {
            let mut spec = json!({"containers": [
                {"name": "a", "image": "app"}, {"name": "b", "image": "app:latest"}, {"name": "c"}],
                "initContainers": [{"name": "i", "image": "tool:1"}],
                "imagePullSecrets": [{"name": "key"}]});
            for (field, value) in more.as_object().into_iter().flatten() {
                spec[field] = value.clone();
            }
            json!({"metadata": {"namespace": "n"}, "spec": spec})
        };
        let found = read(pod(json!({}))).unwrap();
        let images: Vec<&str> = found.images.iter().map(|image| &**image).collect();
        assert_eq!(
            images,
            ["docker.io/library/app:latest", "docker.io/library/tool:1"]
        );
        assert!(found.is_waiting);
        assert_eq!(found.secrets.names, ["key"]);
        assert_eq!(found.secrets.account, "default");
        assert!(!read(pod(json!({"nodeName": "a"}))).unwrap().is_waiting);
        let over = json!({"spec": {"containers": []}, "status": {"phase": "Succeeded"}});
        assert_eq!(read(over), None);
    }
}
