//! Roles inside `kube-system` and `kube-public`, and who gets them.
//!
//! What is allowed here is allowed in that namespace only.

use super::EVENTS;

/// Namespace, name and rules.
pub(super) const ROLES: &[(&str, &str, &[&str])] = &[
    (
        "kube-public",
        "system:controller:bootstrap-signer",
        &[
            "read core configmaps",
            "update core configmaps =cluster-info",
            EVENTS,
        ],
    ),
    (
        "kube-system",
        "extension-apiserver-authentication-reader",
        &["read core configmaps =extension-apiserver-authentication"],
    ),
    (
        "kube-system",
        "system::leader-locking-kube-controller-manager",
        LEADER,
    ),
    (
        "kube-system",
        "system::leader-locking-kube-scheduler",
        LEADER,
    ),
    (
        "kube-system",
        "system:controller:bootstrap-signer",
        &["read core secrets"],
    ),
    (
        "kube-system",
        "system:controller:cloud-provider",
        &["create,read core configmaps"],
    ),
    (
        "kube-system",
        "system:controller:token-cleaner",
        &["delete,read core secrets", EVENTS],
    ),
];

const LEADER: &[&str] = &[
    "create,read,update coordination.k8s.io leases",
    "create,read,update coordination.k8s.io leasecandidates",
];

/// Namespace, name, role and subjects.
pub(super) const BINDINGS: &[(&str, &str, &str, &[&str])] = &[
    (
        "kube-public",
        "system:controller:bootstrap-signer",
        "system:controller:bootstrap-signer",
        &["account:kube-system:bootstrap-signer"],
    ),
    (
        "kube-system",
        "system::extension-apiserver-authentication-reader",
        "extension-apiserver-authentication-reader",
        &[
            "user:system:kube-controller-manager",
            "user:system:kube-scheduler",
        ],
    ),
    (
        "kube-system",
        "system::leader-locking-kube-controller-manager",
        "system::leader-locking-kube-controller-manager",
        &[
            "user:system:kube-controller-manager",
            "account:kube-system:kube-controller-manager",
            "account:kube-system:leader-election-controller",
        ],
    ),
    (
        "kube-system",
        "system::leader-locking-kube-scheduler",
        "system::leader-locking-kube-scheduler",
        &[
            "user:system:kube-scheduler",
            "account:kube-system:kube-scheduler",
        ],
    ),
    (
        "kube-system",
        "system:controller:bootstrap-signer",
        "system:controller:bootstrap-signer",
        &["account:kube-system:bootstrap-signer"],
    ),
    (
        "kube-system",
        "system:controller:cloud-provider",
        "system:controller:cloud-provider",
        &["account:kube-system:cloud-provider"],
    ),
    (
        "kube-system",
        "system:controller:token-cleaner",
        "system:controller:token-cleaner",
        &["account:kube-system:token-cleaner"],
    ),
];
