//! The kinds that are built in, one entry each.

use std::sync::Arc;

use super::kind::{Kind, SelectableField, Subresource, Verb, Verbs};
use crate::{convert, schema};

const ALL: Verbs = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
const CREATE: Verbs = &[Verb::Create];
const GET: Verbs = &[Verb::Get];
const LOOK: Verbs = &[Verb::Get, Verb::List];
const CONNECT: Verbs = &[Verb::Create, Verb::Get];
const PROXY: Verbs = &[
    Verb::Create,
    Verb::Delete,
    Verb::Get,
    Verb::Patch,
    Verb::Update,
];
const CHANGE: Verbs = &[Verb::Get, Verb::Patch, Verb::Update];

const STATUS: Subresource = Subresource {
    name: "status",
    wire: None,
    verbs: CHANGE,
};
const SCALE: Subresource = Subresource {
    name: "scale",
    wire: Some(("autoscaling", "v1", "Scale")),
    verbs: CHANGE,
};

/// The beginning of an entry.
struct Entry {
    kind: Kind,
}

fn entry(group: &str, version: &str, kind: &str, plural: &str) -> Entry {
    let schema = Arc::clone(schema::builtin());
    let type_id = schema.find(&schema::builtin_name(group, version, kind));
    Entry {
        kind: Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            verbs: ALL,
            subresources: Vec::new(),
            fields: Vec::new(),
            counts_generations: false,
            orphans_by_default: false,
            unconditional_updates: true,
            created_by_updates: false,
            schema,
            type_id,
            storage: (group.to_owned(), plural.to_owned()),
            conversion: None,
            ephemeral: false,
            secret: false,
            custom: None,
        },
    }
}

impl Entry {
    fn cluster(mut self) -> Self {
        self.kind.namespaced = false;
        self
    }

    fn short(mut self, names: &[&str]) -> Self {
        self.kind.short_names = names.iter().map(ToString::to_string).collect();
        self
    }

    fn in_all(mut self) -> Self {
        self.kind.categories.push("all".to_owned());
        self
    }

    fn sub(mut self, subresource: Subresource) -> Self {
        self.kind.subresources.push(subresource);
        self
    }

    fn status(self) -> Self {
        self.sub(STATUS)
    }

    fn counted(mut self) -> Self {
        self.kind.counts_generations = true;
        self
    }

    /// Who replaces such an object must say which version of it they have seen.
    fn versioned(mut self) -> Self {
        self.kind.unconditional_updates = false;
        self
    }

    /// A first update is as good as a create.
    fn put_creates(mut self) -> Self {
        self.kind.created_by_updates = true;
        self
    }

    fn fields(mut self, names: &[&str]) -> Self {
        self.kind.fields = names.iter().map(|name| selectable(name, name)).collect();
        self
    }

    fn measured(mut self) -> Self {
        self.kind.verbs = LOOK;
        self.kind.ephemeral = true;
        self.kind.singular = String::new();
        self
    }

    fn review(mut self) -> Self {
        self.kind.verbs = CREATE;
        self.kind.ephemeral = true;
        self
    }
}

fn selectable(name: &str, path: &str) -> SelectableField {
    let default = match name {
        "spec.unschedulable" | "spec.hostNetwork" => "false",
        "status.replicas" | "status.successful" => "0",
        _ => "",
    };
    SelectableField {
        name: name.to_owned(),
        path: path.split('.').map(ToOwned::to_owned).collect(),
        default: default.to_owned(),
        offered: true,
    }
}

fn connect(name: &'static str, kind: &'static str) -> Subresource {
    Subresource {
        name,
        wire: Some(("", "v1", kind)),
        verbs: if name == "proxy" { PROXY } else { CONNECT },
    }
}

fn core() -> Vec<Entry> {
    let mut secret = entry("", "v1", "Secret", "secrets").fields(&["type"]);
    secret.kind.secret = true;
    let mut controller = entry("", "v1", "ReplicationController", "replicationcontrollers")
        .short(&["rc"])
        .in_all()
        .status()
        .sub(SCALE)
        .counted()
        .fields(&["status.replicas"]);
    controller.kind.orphans_by_default = true;
    vec![
        pod(),
        entry("", "v1", "Namespace", "namespaces")
            .cluster()
            .short(&["ns"])
            .status()
            .sub(Subresource {
                name: "finalize",
                wire: None,
                verbs: &[Verb::Update],
            })
            .fields(&["status.phase"]),
        entry("", "v1", "Node", "nodes")
            .cluster()
            .short(&["no"])
            .status()
            .sub(connect("proxy", "NodeProxyOptions"))
            .fields(&["spec.unschedulable"]),
        entry("", "v1", "Service", "services")
            .put_creates()
            .short(&["svc"])
            .in_all()
            .status()
            .sub(connect("proxy", "ServiceProxyOptions"))
            .fields(&["spec.clusterIP", "spec.type"]),
        entry("", "v1", "Endpoints", "endpoints")
            .short(&["ep"])
            .put_creates(),
        entry("", "v1", "ConfigMap", "configmaps").short(&["cm"]),
        secret,
        entry("", "v1", "PersistentVolume", "persistentvolumes")
            .cluster()
            .short(&["pv"])
            .status(),
        entry("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
            .short(&["pvc"])
            .status(),
        entry("", "v1", "ServiceAccount", "serviceaccounts")
            .short(&["sa"])
            .sub(Subresource {
                name: "token",
                wire: Some(("authentication.k8s.io", "v1", "TokenRequest")),
                verbs: CREATE,
            }),
        events(""),
        entry("", "v1", "ResourceQuota", "resourcequotas")
            .short(&["quota"])
            .status(),
        entry("", "v1", "LimitRange", "limitranges")
            .short(&["limits"])
            .put_creates(),
        entry("", "v1", "PodTemplate", "podtemplates"),
        controller,
    ]
}

fn pod() -> Entry {
    entry("", "v1", "Pod", "pods")
        .short(&["po"])
        .in_all()
        .counted()
        .status()
        .sub(Subresource {
            name: "log",
            wire: None,
            verbs: GET,
        })
        .sub(connect("exec", "PodExecOptions"))
        .sub(connect("attach", "PodAttachOptions"))
        .sub(connect("portforward", "PodPortForwardOptions"))
        .sub(connect("proxy", "PodProxyOptions"))
        .sub(Subresource {
            name: "binding",
            wire: Some(("", "v1", "Binding")),
            verbs: CREATE,
        })
        .sub(Subresource {
            name: "eviction",
            wire: Some(("policy", "v1", "Eviction")),
            verbs: CREATE,
        })
        .sub(Subresource {
            name: "ephemeralcontainers",
            wire: None,
            verbs: CHANGE,
        })
        .sub(Subresource {
            name: "resize",
            wire: None,
            verbs: CHANGE,
        })
        .fields(&[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ])
}

/// Events have two versions of one object, in two groups.
fn events(group: &str) -> Entry {
    let is_core = group.is_empty();
    let mut event = entry(group, "v1", "Event", "events")
        .short(&["ev"])
        .put_creates();
    // The name in each group, and where the value stands in the stored object.
    event.kind.fields = [
        (
            "involvedObject.name",
            "regarding.name",
            "involvedObject.name",
        ),
        (
            "involvedObject.kind",
            "regarding.kind",
            "involvedObject.kind",
        ),
        (
            "involvedObject.namespace",
            "regarding.namespace",
            "involvedObject.namespace",
        ),
        ("involvedObject.uid", "regarding.uid", "involvedObject.uid"),
        (
            "involvedObject.apiVersion",
            "regarding.apiVersion",
            "involvedObject.apiVersion",
        ),
        (
            "involvedObject.resourceVersion",
            "regarding.resourceVersion",
            "involvedObject.resourceVersion",
        ),
        (
            "involvedObject.fieldPath",
            "regarding.fieldPath",
            "involvedObject.fieldPath",
        ),
        ("reason", "reason", "reason"),
        (
            "reportingComponent",
            "reportingController",
            "reportingComponent",
        ),
        ("source", "source", "source.component"),
        ("type", "type", "type"),
    ]
    .into_iter()
    .map(|(core, new, path)| selectable(if is_core { core } else { new }, path))
    .collect();
    event.kind.storage = (String::new(), "events".to_owned());
    if !is_core {
        event.kind.conversion = Some((convert::event_from_core, convert::event_to_core));
    }
    event
}

fn workloads() -> Vec<Entry> {
    vec![
        entry("apps", "v1", "Deployment", "deployments")
            .short(&["deploy"])
            .in_all()
            .status()
            .sub(SCALE)
            .counted(),
        entry("apps", "v1", "ReplicaSet", "replicasets")
            .short(&["rs"])
            .in_all()
            .status()
            .sub(SCALE)
            .counted()
            .fields(&["status.replicas"]),
        entry("apps", "v1", "StatefulSet", "statefulsets")
            .short(&["sts"])
            .in_all()
            .status()
            .sub(SCALE)
            .counted(),
        entry("apps", "v1", "DaemonSet", "daemonsets")
            .short(&["ds"])
            .in_all()
            .status()
            .counted(),
        entry("apps", "v1", "ControllerRevision", "controllerrevisions"),
        entry("batch", "v1", "Job", "jobs")
            .in_all()
            .status()
            .counted()
            .fields(&["status.successful"]),
        entry("batch", "v1", "CronJob", "cronjobs")
            .short(&["cj"])
            .in_all()
            .status()
            .counted(),
        entry(
            "autoscaling",
            "v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        )
        .short(&["hpa"])
        .in_all()
        .status()
        .counted(),
        autoscaler_v1(),
        entry(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
        )
        .versioned()
        .short(&["pdb"])
        .status()
        .counted(),
    ]
}

fn autoscaler_v1() -> Entry {
    let mut autoscaler = entry(
        "autoscaling",
        "v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    )
    .short(&["hpa"])
    .in_all()
    .status()
    .counted();
    autoscaler.kind.conversion = Some((convert::autoscaler_from_v2, convert::autoscaler_to_v2));
    autoscaler
}

fn cluster() -> Vec<Entry> {
    vec![
        entry("networking.k8s.io", "v1", "Ingress", "ingresses")
            .short(&["ing"])
            .status()
            .counted(),
        entry("networking.k8s.io", "v1", "IngressClass", "ingressclasses")
            .cluster()
            .counted(),
        entry(
            "networking.k8s.io",
            "v1",
            "NetworkPolicy",
            "networkpolicies",
        )
        .short(&["netpol"])
        .counted(),
        entry("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices").counted(),
        entry("coordination.k8s.io", "v1", "Lease", "leases")
            .versioned()
            .put_creates(),
        entry("storage.k8s.io", "v1", "StorageClass", "storageclasses")
            .cluster()
            .short(&["sc"]),
        entry(
            "storage.k8s.io",
            "v1",
            "VolumeAttachment",
            "volumeattachments",
        )
        .versioned()
        .cluster()
        .status(),
        entry(
            "storage.k8s.io",
            "v1",
            "VolumeAttributesClass",
            "volumeattributesclasses",
        )
        .cluster()
        .short(&["vac"]),
        entry("storage.k8s.io", "v1", "CSIDriver", "csidrivers")
            .cluster()
            .versioned(),
        entry("storage.k8s.io", "v1", "CSINode", "csinodes")
            .cluster()
            .versioned(),
        entry(
            "storage.k8s.io",
            "v1",
            "CSIStorageCapacity",
            "csistoragecapacities",
        )
        .versioned(),
        entry(
            "scheduling.k8s.io",
            "v1",
            "PriorityClass",
            "priorityclasses",
        )
        .put_creates()
        .cluster()
        .short(&["pc"])
        .counted(),
        entry("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
            .cluster()
            .versioned()
            .put_creates(),
        events("events.k8s.io"),
        entry(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        )
        .versioned()
        .cluster()
        .short(&["crd", "crds"])
        .status()
        .counted(),
    ]
}

fn access() -> Vec<Entry> {
    let rbac = "rbac.authorization.k8s.io";
    let authorization = "authorization.k8s.io";
    let authentication = "authentication.k8s.io";
    vec![
        entry(rbac, "v1", "Role", "roles").put_creates(),
        entry(rbac, "v1", "RoleBinding", "rolebindings").put_creates(),
        entry(rbac, "v1", "ClusterRole", "clusterroles")
            .cluster()
            .put_creates(),
        entry(rbac, "v1", "ClusterRoleBinding", "clusterrolebindings")
            .cluster()
            .put_creates(),
        entry(
            "certificates.k8s.io",
            "v1",
            "CertificateSigningRequest",
            "certificatesigningrequests",
        )
        .cluster()
        .short(&["csr"])
        .status()
        .sub(Subresource {
            name: "approval",
            wire: None,
            verbs: CHANGE,
        })
        .fields(&["spec.signerName"]),
        entry(authentication, "v1", "TokenReview", "tokenreviews")
            .cluster()
            .review(),
        entry(
            authentication,
            "v1",
            "SelfSubjectReview",
            "selfsubjectreviews",
        )
        .cluster()
        .review(),
        entry(
            authorization,
            "v1",
            "SubjectAccessReview",
            "subjectaccessreviews",
        )
        .cluster()
        .review(),
        entry(
            authorization,
            "v1",
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
        )
        .cluster()
        .review(),
        entry(
            authorization,
            "v1",
            "SelfSubjectRulesReview",
            "selfsubjectrulesreviews",
        )
        .cluster()
        .review(),
        entry(
            authorization,
            "v1",
            "LocalSubjectAccessReview",
            "localsubjectaccessreviews",
        )
        .review(),
    ]
}

/// What is in use now; agents know it.
fn measured() -> Vec<Entry> {
    let group = crate::metrics::GROUP;
    vec![
        entry(group, "v1beta1", "NodeMetrics", "nodes")
            .cluster()
            .measured(),
        entry(group, "v1beta1", "PodMetrics", "pods").measured(),
    ]
}

/// Every built-in kind.
pub(super) fn kinds() -> Vec<Arc<Kind>> {
    [core(), workloads(), cluster(), access(), measured()]
        .into_iter()
        .flatten()
        .map(|entry| Arc::new(entry.kind))
        .collect()
}
