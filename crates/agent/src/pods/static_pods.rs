//! Pods of the node itself: manifests in a folder, and their mirrors in the API.

use camino::Utf8Path;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, PostParams},
};
use sha2::{Digest as _, Sha256};
use transom_host::files::{FileError, Kind};

use crate::{fault::ask, site::Site};

const LARGEST: u64 = 1 << 20;
const MIRROR: &str = "kubernetes.io/config.mirror";
const HASH: &str = "kubernetes.io/config.hash";
const SOURCE: &str = "kubernetes.io/config.source";

fn annotation<'a>(pod: &'a Pod, name: &str) -> Option<&'a String> {
    pod.metadata.annotations.as_ref()?.get(name)
}

pub(crate) fn is_static(pod: &Pod) -> bool {
    annotation(pod, SOURCE).is_some_and(|source| source == "file") && !is_mirror(pod)
}

pub(crate) fn is_mirror(pod: &Pod) -> bool {
    annotation(pod, MIRROR).is_some()
}

/// Whether a pod is the node's own: one of a manifest, or the mirror of one.
pub(crate) fn is_own(pod: &Pod) -> bool {
    is_static(pod) || is_mirror(pod)
}

/// Whether a mirror shows this very manifest.
pub(crate) fn is_mirror_of(mirror: &Pod, pod: &Pod) -> bool {
    annotation(mirror, MIRROR) == annotation(pod, HASH)
        && mirror.metadata.deletion_timestamp.is_none()
}

/// The pods of a folder; `None` if it cannot be read, which is not the same as empty.
pub(crate) fn read(site: &Site, folder: &Utf8Path) -> Option<Vec<Pod>> {
    let files = site.options.files.as_ref();
    let entries = match files.list(folder) {
        Ok(entries) => entries,
        Err(FileError::NotFound { .. }) => return Some(Vec::new()),
        Err(error) => {
            tracing::warn!(%error, "the folder of static pods cannot be read");
            return None;
        }
    };
    let mut pods = Vec::new();
    for entry in entries {
        let hidden = entry.name.starts_with('.');
        if hidden || entry.metadata.kind == Kind::Dir {
            continue;
        }
        match files.read(&entry.path, LARGEST) {
            Ok(bytes) => match parse(&bytes, &site.options.node) {
                Ok(pod) => pods.push(pod),
                Err(error) => tracing::warn!(path = %entry.path, error, "this is no pod"),
            },
            Err(error) => tracing::warn!(%error, "a static pod cannot be read"),
        }
    }
    Some(pods)
}

/// A pod from a manifest, with the name, uid and annotations that static pods have.
fn parse(bytes: &[u8], node: &str) -> Result<Pod, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut pod: Pod = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let name = pod.metadata.name.clone().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| "it has no name".to_owned())?;
    let mut hash = Sha256::new();
    hash.update(node.as_bytes());
    hash.update(bytes);
    let digest = hash.finalize();
    let hash = digest
        .first_chunk::<16>()
        .map(|part| u128::from_be_bytes(*part));
    let hash = format!("{:032x}", hash.unwrap_or_default());
    let meta = &mut pod.metadata;
    meta.name = Some(format!("{name}-{}", node.to_lowercase()));
    meta.namespace.get_or_insert_with(|| "default".to_owned());
    meta.uid = Some(hash.clone());
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(HASH.to_owned(), hash);
    annotations.insert(SOURCE.to_owned(), "file".to_owned());
    let spec = pod.spec.get_or_insert_default();
    spec.node_name = Some(node.to_owned());
    for container in spec
        .containers
        .iter_mut()
        .chain(spec.init_containers.iter_mut().flatten())
    {
        let is_latest = container.image.as_deref().is_none_or(|image| {
            image.ends_with(":latest")
                || !image
                    .rsplit('/')
                    .next()
                    .unwrap_or_default()
                    .contains([':', '@'])
        });
        let policy = if is_latest { "Always" } else { "IfNotPresent" };
        container
            .image_pull_policy
            .get_or_insert_with(|| policy.to_owned());
        container
            .termination_message_path
            .get_or_insert_with(|| "/dev/termination-log".to_owned());
    }
    Ok(pod)
}

/// Makes the mirror of a static pod, in place of one that shows another manifest.
pub(crate) async fn ensure_mirror(site: &Site, pod: &Pod, mirror: Option<&Pod>) {
    if mirror.is_some_and(|mirror| is_mirror_of(mirror, pod)) {
        return;
    }
    let namespace = pod.namespace().unwrap_or_default();
    let pods = Api::<Pod>::namespaced(site.client.clone(), &namespace);
    if mirror.is_some() {
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            ..DeleteParams::default()
        };
        if let Err(fault) = ask(pods.delete(&pod.name_any(), &parameters)).await {
            tracing::debug!(%fault, "an old mirror could not be deleted");
        }
        return;
    }
    let mut copy = pod.clone();
    copy.metadata.uid = None;
    copy.metadata.owner_references = site.node().map(|node| {
        vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: node.name_any(),
            uid: node.uid().unwrap_or_default(),
            controller: Some(true),
            ..OwnerReference::default()
        }]
    });
    let hash = annotation(pod, HASH).cloned().unwrap_or_default();
    copy.metadata
        .annotations
        .get_or_insert_default()
        .insert(MIRROR.to_owned(), hash);
    match ask(pods.create(&PostParams::default(), &copy)).await {
        Ok(_) => {}
        Err(fault) if fault.is_conflict() => {}
        Err(fault) => {
            tracing::warn!(%fault, pod = pod.name_any(), "the mirror of a static pod could not be made");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  containers:\n  - name: c\n    image: x:1\n";

    #[test]
    fn a_manifest_becomes_a_pod_of_this_node_that_changes_with_its_text() {
        let pod = parse(MANIFEST.as_bytes(), "Node1").unwrap();
        assert_eq!(
            (pod.name_any().as_str(), pod.namespace().as_deref()),
            ("a-node1", Some("default"))
        );
        assert!(is_static(&pod) && !is_mirror(&pod));
        assert_eq!(
            pod.spec.as_ref().unwrap().containers[0]
                .image_pull_policy
                .as_deref(),
            Some("IfNotPresent")
        );
        let other = parse(MANIFEST.replace("x:1", "x:2").as_bytes(), "Node1").unwrap();
        assert_ne!(pod.uid(), other.uid());
        assert_eq!(
            pod.uid(),
            parse(MANIFEST.as_bytes(), "Node1").unwrap().uid()
        );
    }

    #[test]
    fn what_is_no_pod_is_refused() {
        for text in ["", "- a", "metadata: {}", "\u{0}", "spec: 1"] {
            assert!(parse(text.as_bytes(), "n").is_err(), "{text:?}");
        }
        assert!(parse(&[0xff], "n").is_err());
    }
}
