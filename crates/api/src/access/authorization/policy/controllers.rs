//! One role for each controller, bound to the service account of its name in `kube-system`.
//!
//! A controller that this cluster does not run has its role all the same: people look for them.

use super::{EVENTS, Role, role};

pub(super) const ROLES: &[Role] = &[
    role(
        "attachdetach-controller",
        &[
            "list,watch core persistentvolumeclaims persistentvolumes",
            "read core nodes",
            "patch,update core nodes/status",
            "list,watch core pods",
            EVENTS,
            "create,delete,read storage.k8s.io volumeattachments",
            "read storage.k8s.io csidrivers",
            "read storage.k8s.io csinodes",
        ],
    ),
    role(
        "certificate-controller",
        &[
            "delete,read certificates.k8s.io certificatesigningrequests",
            "update certificates.k8s.io certificatesigningrequests/approval certificatesigningrequests/status",
            "approve certificates.k8s.io signers =kubernetes.io/kube-apiserver-client-kubelet",
            "sign certificates.k8s.io signers =kubernetes.io/kube-apiserver-client =kubernetes.io/kube-apiserver-client-kubelet =kubernetes.io/kubelet-serving =kubernetes.io/legacy-unknown",
            "create authorization.k8s.io subjectaccessreviews",
            EVENTS,
        ],
    ),
    role(
        "clusterrole-aggregation-controller",
        &["escalate,patch,read,update rbac.authorization.k8s.io clusterroles"],
    ),
    role(
        "cronjob-controller",
        &[
            "read,update batch cronjobs",
            "create,delete,patch,read,update batch jobs",
            "update batch cronjobs/status",
            "update batch cronjobs/finalizers",
            "delete,list,watch core pods",
            EVENTS,
        ],
    ),
    role(
        "daemon-set-controller",
        &[
            "read apps,extensions daemonsets",
            "update apps,extensions daemonsets/status",
            "update apps,extensions daemonsets/finalizers",
            "list,watch core nodes",
            "create,delete,list,patch,watch core pods",
            "create core pods/binding",
            "create,delete,patch,read,update apps controllerrevisions",
            EVENTS,
        ],
    ),
    role(
        "deployment-controller",
        &[
            "read,update apps,extensions deployments",
            "update apps,extensions deployments/status",
            "update apps,extensions deployments/finalizers",
            "create,delete,patch,read,update apps,extensions replicasets",
            "read,update core pods",
            EVENTS,
        ],
    ),
    role(
        "device-taint-eviction-controller",
        &[
            "delete,read core pods",
            "patch,update core pods/status",
            "read resource.k8s.io resourceclaims",
            "read resource.k8s.io resourceslices",
            "read resource.k8s.io deviceclasses",
            EVENTS,
        ],
    ),
    role(
        "disruption-controller",
        &[
            "read apps,extensions deployments",
            "read apps,extensions replicasets",
            "read core replicationcontrollers",
            "read policy poddisruptionbudgets",
            "read apps statefulsets",
            "update policy poddisruptionbudgets/status",
            "patch,update core pods/status",
            "get * */scale",
            EVENTS,
        ],
    ),
    role(
        "endpoint-controller",
        &[
            "read core pods services",
            "create,delete,read,update core endpoints",
            "create core endpoints/restricted",
            EVENTS,
        ],
    ),
    role(
        "endpointslice-controller",
        &[
            "read core nodes pods services",
            "update core services/finalizers",
            "create,delete,read,update discovery.k8s.io endpointslices",
            EVENTS,
        ],
    ),
    role(
        "endpointslicemirroring-controller",
        &[
            "read core endpoints services",
            "update core services/finalizers",
            "update core endpoints/finalizers",
            "create,delete,read,update discovery.k8s.io endpointslices",
            EVENTS,
        ],
    ),
    role(
        "ephemeral-volume-controller",
        &[
            "read core pods",
            "update core pods/finalizers",
            "create,read core persistentvolumeclaims",
            EVENTS,
        ],
    ),
    role(
        "expand-controller",
        &[
            "patch,read,update core persistentvolumes",
            "patch,update core persistentvolumeclaims/status",
            "read core persistentvolumeclaims",
            EVENTS,
        ],
    ),
    role(
        "generic-garbage-collector",
        &["delete,patch,read,update * *", EVENTS],
    ),
    role(
        "horizontal-pod-autoscaler",
        &[
            "read autoscaling horizontalpodautoscalers",
            "update autoscaling horizontalpodautoscalers/status",
            "get,update * */scale",
            "list,watch core pods",
            "list,watch metrics.k8s.io pods",
            "read custom.metrics.k8s.io *",
            "read external.metrics.k8s.io *",
            EVENTS,
        ],
    ),
    role(
        "job-controller",
        &[
            "patch,read,update batch jobs",
            "update batch jobs/status",
            "update batch jobs/finalizers",
            "create,delete,list,patch,watch core pods",
            EVENTS,
        ],
    ),
    role(
        "legacy-service-account-token-cleaner",
        &[
            "get core configmaps =kube-apiserver-legacy-service-account-token-tracking",
            "delete,patch core secrets",
        ],
    ),
    role(
        "namespace-controller",
        &[
            "delete,read core namespaces",
            "update core namespaces/finalize namespaces/status",
            "delete,deletecollection,read * *",
        ],
    ),
    role(
        "node-controller",
        &[
            "delete,patch,read,update core nodes",
            "patch,update core nodes/status",
            "patch,update core pods/status",
            "delete,read core pods",
            EVENTS,
        ],
    ),
    role(
        "persistent-volume-binder",
        &[
            "create,delete,read,update core persistentvolumes",
            "update core persistentvolumes/status",
            "read,update core persistentvolumeclaims",
            "update core persistentvolumeclaims/status",
            "create,delete,read core pods",
            "read storage.k8s.io storageclasses",
            "list,watch core nodes",
            EVENTS,
            "watch core events",
        ],
    ),
    role(
        "pod-garbage-collector",
        &[
            "delete,list,watch core pods",
            "read core nodes",
            "patch core pods/status",
        ],
    ),
    role(
        "pv-protection-controller",
        &["read,update core persistentvolumes", EVENTS],
    ),
    role(
        "pvc-protection-controller",
        &[
            "read,update core persistentvolumeclaims",
            "update core persistentvolumeclaims/status",
            "read core pods",
            EVENTS,
        ],
    ),
    role(
        "replicaset-controller",
        &[
            "read,update apps,extensions replicasets",
            "update apps,extensions replicasets/status",
            "update apps,extensions replicasets/finalizers",
            "create,delete,list,patch,watch core pods",
            EVENTS,
        ],
    ),
    role(
        "replication-controller",
        &[
            "read,update core replicationcontrollers",
            "update core replicationcontrollers/status",
            "update core replicationcontrollers/finalizers",
            "create,delete,list,patch,watch core pods",
            EVENTS,
        ],
    ),
    role(
        "resource-claim-controller",
        &[
            "read core pods",
            "update core pods/finalizers",
            "create,delete,read resource.k8s.io resourceclaims",
            "patch,update resource.k8s.io resourceclaims resourceclaims/status",
            "patch,update core pods/status",
            EVENTS,
            "patch,update resource.k8s.io resourceclaims/binding",
        ],
    ),
    role(
        "resourcequota-controller",
        &[
            "list,watch * *",
            "update core resourcequotas/status",
            EVENTS,
        ],
    ),
    role(
        "root-ca-cert-publisher",
        &["create,update core configmaps", EVENTS],
    ),
    role(
        "route-controller",
        &["list,watch core nodes", "patch core nodes/status", EVENTS],
    ),
    role(
        "selinux-warning-controller",
        &[
            EVENTS,
            "read core persistentvolumes",
            "read core persistentvolumeclaims",
            "read core pods",
            "read storage.k8s.io csidrivers",
        ],
    ),
    role(
        "service-account-controller",
        &["create core serviceaccounts", EVENTS],
    ),
    role(
        "service-cidrs-controller",
        &[
            "patch,read,update networking.k8s.io servicecidrs",
            "patch,update networking.k8s.io servicecidrs/finalizers",
            "patch,update networking.k8s.io servicecidrs/status",
            "read networking.k8s.io ipaddresses",
            EVENTS,
        ],
    ),
    role(
        "service-controller",
        &[
            "read core services",
            "patch,update core services/status",
            "list,watch core nodes",
            EVENTS,
        ],
    ),
    role(
        "statefulset-controller",
        &[
            "list,watch core pods",
            "read apps statefulsets",
            "update apps statefulsets/status",
            "update apps statefulsets/finalizers",
            "create,delete,get,patch,update core pods",
            "create,delete,patch,read,update apps controllerrevisions",
            "create,read core persistentvolumeclaims",
            "delete,update core persistentvolumeclaims",
            "update core pods/finalizers",
            EVENTS,
        ],
    ),
    role(
        "ttl-after-finished-controller",
        &["delete,read batch jobs", EVENTS],
    ),
    role(
        "ttl-controller",
        &["list,patch,update,watch core nodes", EVENTS],
    ),
    role(
        "validatingadmissionpolicy-status-controller",
        &[
            "read admissionregistration.k8s.io validatingadmissionpolicies",
            "get,patch,update admissionregistration.k8s.io validatingadmissionpolicies/status",
            EVENTS,
        ],
    ),
    role(
        "volumeattributesclass-protection-controller",
        &[
            "read core persistentvolumeclaims",
            "read core persistentvolumes",
            "read,update storage.k8s.io volumeattributesclasses",
            EVENTS,
        ],
    ),
];
