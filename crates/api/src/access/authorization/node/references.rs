//! What a pod or a volume refers to.
//!
//! Every way of naming a secret or a config map that a kubelet reads is here; one that is missing would only
//! keep a pod from starting, never show too much.

use std::collections::BTreeSet;

use serde_json::Value;

/// A sort of object that nodes see through pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Sort {
    Secret,
    ConfigMap,
    Claim,
    ServiceAccount,
    ResourceClaim,
}

/// Sort and name, in the namespace of the pod.
pub(super) type References = BTreeSet<(Sort, String)>;

/// Everything that a pod refers to.
pub(super) fn of_pod(pod: &Value) -> References {
    let spec = &pod["spec"];
    let mut found = References::new();
    let mut add = |sort: Sort, name: &Value| {
        if let Some(name) = name.as_str()
            && !name.is_empty()
        {
            found.insert((sort, name.to_owned()));
        }
    };
    add(Sort::ServiceAccount, &spec["serviceAccountName"]);
    for secret in items(&spec["imagePullSecrets"]) {
        add(Sort::Secret, &secret["name"]);
    }
    for kind in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items(&spec[kind]) {
            for source in items(&container["envFrom"]) {
                add(Sort::Secret, &source["secretRef"]["name"]);
                add(Sort::ConfigMap, &source["configMapRef"]["name"]);
            }
            for variable in items(&container["env"]) {
                let from = &variable["valueFrom"];
                add(Sort::Secret, &from["secretKeyRef"]["name"]);
                add(Sort::ConfigMap, &from["configMapKeyRef"]["name"]);
            }
        }
    }
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
    for volume in items(&spec["volumes"]) {
        of_volume(volume, pod_name, &mut add);
    }
    for claim in items(&spec["resourceClaims"]) {
        add(Sort::ResourceClaim, &claim["resourceClaimName"]);
    }
    for claim in items(&pod["status"]["resourceClaimStatuses"]) {
        add(Sort::ResourceClaim, &claim["resourceClaimName"]);
    }
    found
}

fn of_volume(volume: &Value, pod_name: &str, add: &mut impl FnMut(Sort, &Value)) {
    add(Sort::Secret, &volume["secret"]["secretName"]);
    add(Sort::ConfigMap, &volume["configMap"]["name"]);
    add(Sort::Claim, &volume["persistentVolumeClaim"]["claimName"]);
    if volume["ephemeral"].is_object() {
        let volume_name = volume["name"].as_str().unwrap_or_default();
        add(Sort::Claim, &format!("{pod_name}-{volume_name}").into());
    }
    for source in items(&volume["projected"]["sources"]) {
        add(Sort::Secret, &source["secret"]["name"]);
        add(Sort::ConfigMap, &source["configMap"]["name"]);
    }
    add(Sort::Secret, &volume["azureFile"]["secretName"]);
    add(Sort::Secret, &volume["csi"]["nodePublishSecretRef"]["name"]);
    for kind in [
        "cephfs",
        "cinder",
        "flexVolume",
        "iscsi",
        "rbd",
        "scaleIO",
        "storageos",
    ] {
        add(Sort::Secret, &volume[kind]["secretRef"]["name"]);
    }
}

/// Namespace and name of the secrets that a persistent volume needs.
pub(super) fn of_persistent_volume(volume: &Value) -> BTreeSet<(String, String)> {
    let spec = &volume["spec"];
    let home = spec["claimRef"]["namespace"].as_str().unwrap_or_default();
    let mut found = BTreeSet::new();
    let mut add = |namespace: &Value, name: &Value| {
        let namespace = namespace.as_str().filter(|text| !text.is_empty());
        if let Some(name) = name.as_str()
            && !name.is_empty()
        {
            found.insert((namespace.unwrap_or(home).to_owned(), name.to_owned()));
        }
    };
    let azure = &spec["azureFile"];
    add(&azure["secretNamespace"], &azure["secretName"]);
    for kind in [
        "cephfs",
        "cinder",
        "flexVolume",
        "iscsi",
        "rbd",
        "scaleIO",
        "storageos",
    ] {
        let secret = &spec[kind]["secretRef"];
        add(&secret["namespace"], &secret["name"]);
    }
    for kind in [
        "controllerExpandSecretRef",
        "controllerPublishSecretRef",
        "nodeExpandSecretRef",
        "nodePublishSecretRef",
        "nodeStageSecretRef",
    ] {
        let secret = &spec["csi"][kind];
        add(&secret["namespace"], &secret["name"]);
    }
    found
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
