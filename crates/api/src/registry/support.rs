//! How much of what upstream does with a kind happens here: one line for each kind or path that lacks something.
//!
//! Whatever is not named here is full. The compatibility page is written from this table, so it says what is true.

/// How much of upstream's behaviour there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    Full,
    /// All but what the text says.
    Partial(&'static str),
    /// Objects can be written and read, and nothing acts on them.
    None(&'static str),
}

/// Group, kind, path below the object, and what there is.
const LACKS: &[(&str, &str, &str, Support)] = &[
    (
        "",
        "Pod",
        "",
        Support::Partial(
            "`runtimeClassName` is checked and no runtime is chosen by it; of volumes the agent has `emptyDir`, `hostPath`, `configMap`, `secret`, `downwardAPI` and `projected`",
        ),
    ),
    (
        "",
        "PersistentVolume",
        "",
        Support::Partial("bound to claims and released; the agent mounts none yet"),
    ),
    (
        "",
        "PersistentVolumeClaim",
        "",
        Support::Partial(
            "bound to volumes that are there; nothing provisions or expands them; the agent mounts none yet",
        ),
    ),
    (
        "",
        "Service",
        "",
        Support::Partial(
            "addresses, node ports and endpoints are kept and pods get the variables; nothing forwards to them, no name service, no load balancers yet",
        ),
    ),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "",
        Support::Partial(
            "rules in CEL (`x-kubernetes-validations`) are kept and not evaluated; conversion changes the version alone, no webhooks",
        ),
    ),
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        "",
        Support::Partial(
            "metrics of type `Resource` and `ContainerResource`; not `Pods`, `Object`, `External`",
        ),
    ),
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
        "",
        Support::Partial(
            "requests for `kubernetes.io/kube-apiserver-client`, `-client-kubelet` and `kubelet-serving` are signed; not `legacy-unknown`",
        ),
    ),
    (
        "networking.k8s.io",
        "Ingress",
        "",
        Support::None("kept and checked; nothing acts on it yet"),
    ),
    (
        "networking.k8s.io",
        "IngressClass",
        "",
        Support::None(
            "kept, and the default one is put into new ingresses; nothing acts on it yet",
        ),
    ),
    (
        "networking.k8s.io",
        "NetworkPolicy",
        "",
        Support::None("kept and checked; nothing enforces it yet"),
    ),
    (
        "node.k8s.io",
        "RuntimeClass",
        "",
        Support::Partial("overhead and placement are put into pods; agents ignore the handler"),
    ),
    (
        "storage.k8s.io",
        "StorageClass",
        "",
        Support::Partial(
            "claims get the default one and wait for their first consumer; no class provisions volumes",
        ),
    ),
    (
        "storage.k8s.io",
        "VolumeAttachment",
        "",
        Support::None("kept and checked; nothing attaches volumes"),
    ),
    (
        "storage.k8s.io",
        "VolumeAttributesClass",
        "",
        Support::None("kept and checked; nothing changes volumes by it"),
    ),
    (
        "storage.k8s.io",
        "CSIDriver",
        "",
        Support::None("kept and checked; the agent speaks to no driver"),
    ),
    (
        "storage.k8s.io",
        "CSINode",
        "",
        Support::None("kept and checked; the agent registers no driver"),
    ),
    (
        "storage.k8s.io",
        "CSIStorageCapacity",
        "",
        Support::None("kept and checked; nothing places pods by it"),
    ),
];

/// What there is of a kind, or of a path below its objects.
pub(super) fn of(group: &str, kind: &str, subresource: &str) -> Support {
    LACKS
        .iter()
        .find(|row| (row.0, row.1, row.2) == (group, kind, subresource))
        .map_or(Support::Full, |row| row.3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn what_is_said_to_be_lacking_is_something_that_is_served() {
        let kinds = Registry::builtin().kinds();
        for (group, kind, subresource, _) in LACKS {
            let found = kinds
                .iter()
                .find(|found| found.group == *group && found.kind == *kind)
                .unwrap_or_else(|| panic!("no kind {kind} in {group:?}"));
            let is_served = subresource.is_empty() || found.subresource(subresource).is_some();
            assert!(is_served, "{kind} has no {subresource}");
        }
    }
}
