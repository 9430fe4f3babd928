//! What nodes see, and what they may change.

use serde_json::{Value, json};

use super::{restriction::*, *};
use crate::access::{
    authentication::{User, group},
    authorization::{Attributes, Resource, review::narrowed_fields},
};

fn node(name: &str) -> User {
    User::authenticated(format!("system:node:{name}"), vec![group::NODES.to_owned()])
}

/// A question like `get secrets ns/name`.
fn asked(node_name: &str, question: &str) -> Attributes {
    let mut words = question.split(' ');
    let verb = words.next().unwrap();
    let what = words.next().unwrap();
    let (group, what) = what.split_once(':').unwrap_or(("", what));
    let (resource, subresource) = what.split_once('/').unwrap_or((what, ""));
    let place = words.next().unwrap_or_default();
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    let about = Resource {
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        fields: narrowed_fields(words.next().unwrap_or_default()),
        ..Resource::default()
    };
    Attributes::resource(node(node_name), verb, about)
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": name, "uid": "pod-uid"},
        "spec": {
            "nodeName": node,
            "serviceAccountName": "sa",
            "imagePullSecrets": [{"name": "pull"}],
            "containers": [{
                "envFrom": [{"secretRef": {"name": "env-from"}}, {"configMapRef": {"name": "env-map"}}],
                "env": [{"valueFrom": {"secretKeyRef": {"name": "env-key"}}}],
            }],
            "initContainers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "init-map"}}}]}],
            "volumes": [
                {"name": "a", "secret": {"secretName": "volume"}},
                {"name": "b", "projected": {"sources": [
                    {"secret": {"name": "projected"}}, {"configMap": {"name": "root-ca"}},
                    {"serviceAccountToken": {"path": "token"}},
                    {"serviceAccountToken": {"path": "other", "audience": "vault"}},
                ]}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}},
                {"name": "d", "ephemeral": {}},
                {"name": "e", "csi": {"driver": "inline.example", "nodePublishSecretRef": {"name": "csi"}}},
            ],
        },
    })
}

fn volume() -> Value {
    json!({
        "metadata": {"name": "volume-1"},
        "spec": {
            "claimRef": {"namespace": "ns", "name": "claim"},
            "csi": {"nodeStageSecretRef": {"namespace": "storage", "name": "stage"}},
        },
    })
}

fn graph() -> NodeGraph {
    let mut graph = NodeGraph::default();
    graph.put_pod(&pod("p", "one"));
    graph.put_persistent_volume(&volume());
    graph.put_volume_attachment(&json!({"metadata": {"name": "va"}, "spec": {"nodeName": "one"}}));
    graph
}

const THROUGH_PODS: [&str; 18] = [
    "get serviceaccounts ns/sa",
    "get secrets ns/pull",
    "get secrets ns/env-from",
    "list secrets ns/env-key",
    "watch secrets ns/volume",
    "get secrets ns/projected",
    "get secrets ns/csi",
    "get configmaps ns/env-map",
    "get configmaps ns/init-map",
    "watch configmaps ns/root-ca",
    "get persistentvolumeclaims ns/claim",
    "get persistentvolumeclaims ns/p-d",
    "patch persistentvolumeclaims/status ns/claim",
    "get persistentvolumes volume-1",
    "get secrets storage/stage",
    "create serviceaccounts/token ns/sa",
    "get pods ns/p",
    "watch pods ns/p",
];

#[test]
fn a_node_sees_what_its_pods_use_and_another_does_not() {
    let graph = graph();
    for question in THROUGH_PODS {
        assert!(
            graph.authorize(&asked("one", question)).is_allowed(),
            "{question}"
        );
        let other = graph.authorize(&asked("two", question));
        assert_eq!(
            other.reason, "no relationship found between node 'two' and this object",
            "{question}"
        );
    }
}

#[test]
fn what_a_node_saw_is_hidden_once_the_pod_is_gone() {
    let mut graph = graph();
    graph.put_pod(&pod("q", "one"));
    graph.remove_pod("ns", "p");
    for question in THROUGH_PODS {
        let still = question != "get pods ns/p"
            && question != "watch pods ns/p"
            && !question.contains("p-d");
        let found = graph.authorize(&asked("one", question)).is_allowed();
        assert_eq!(found, still, "{question}");
    }
    graph.put_pod(&pod("q", "two"));
    for question in ["get secrets ns/pull", "get secrets storage/stage"] {
        assert!(!graph.authorize(&asked("one", question)).is_allowed());
        assert!(graph.authorize(&asked("two", question)).is_allowed());
    }
    graph.remove_pod("ns", "q");
    graph.remove_persistent_volume("volume-1");
    graph.remove_volume_attachment("va");
    assert_eq!(graph.size(), 0);
}

#[test]
fn a_pod_without_a_node_or_made_by_one_shows_nothing() {
    let mut graph = NodeGraph::default();
    graph.put_pod(&pod("p", ""));
    assert_eq!(graph.size(), 0);
    let mut mirror = pod("m", "one");
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    graph.put_pod(&mirror);
    assert!(graph.authorize(&asked("one", "get pods ns/m")).is_allowed());
    assert!(
        !graph
            .authorize(&asked("one", "get secrets ns/pull"))
            .is_allowed()
    );
    graph.put_pod(&json!({"spec": {"nodeName": "one", "volumes": 7, "containers": {}}}));
    graph.put_persistent_volume(&json!(null));
}

#[test]
fn a_node_has_its_own_things_and_some_for_all() {
    let graph = graph();
    for question in [
        "get nodes one",
        "watch nodes one",
        "create nodes",
        "patch nodes/status one",
        "get coordination.k8s.io:leases kube-node-lease/one",
        "create coordination.k8s.io:leases kube-node-lease/",
        "update storage.k8s.io:csinodes one",
        "get storage.k8s.io:volumeattachments va",
        "list pods ns/ spec.nodeName=one",
        "watch pods / spec.nodeName=one",
        "create pods ns/",
        "create pods/eviction ns/p",
        "update pods/status ns/p",
        "list services",
        "create events ns/",
        "create events.k8s.io:events ns/",
        "create certificates.k8s.io:certificatesigningrequests",
        "list node.k8s.io:runtimeclasses",
    ] {
        let verdict = graph.authorize(&asked("one", question));
        assert!(verdict.is_allowed(), "{question} {verdict:?}");
    }
}

#[test]
fn a_node_is_refused_with_upstreams_reasons() {
    let graph = graph();
    let mut lines = Vec::new();
    for question in [
        "list secrets ns/",
        "list secrets",
        "delete secrets ns/pull",
        "get secrets/x ns/pull",
        "list persistentvolumes",
        "update persistentvolumeclaims ns/claim",
        "get persistentvolumeclaims/status ns/claim",
        "list serviceaccounts ns/",
        "create serviceaccounts ns/sa",
        "list coordination.k8s.io:leases kube-node-lease/",
        "get coordination.k8s.io:leases default/one",
        "get coordination.k8s.io:leases kube-node-lease/two",
        "list storage.k8s.io:csinodes",
        "get storage.k8s.io:csinodes two",
        "list nodes",
        "get nodes two",
        "delete nodes one",
        "list pods ns/",
        "list pods ns/ spec.nodeName!=one",
        "list pods ns/ spec.nodeName=two",
        "get pods",
        "patch pods ns/p",
        "create pods/exec ns/p",
        "list resource.k8s.io:resourceslices",
        "list apps:deployments",
        "get namespaces ns",
    ] {
        let verdict = graph.authorize(&asked("one", question));
        assert!(!verdict.is_allowed(), "{question}");
        lines.push(format!("{question}: {}", verdict.reason));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    list secrets ns/: No Object name found
    list secrets: can only read namespaced object of this type
    delete secrets ns/pull: can only read resources of this type
    get secrets/x ns/pull: cannot read subresource
    list persistentvolumes: can only get individual resources of this type
    update persistentvolumeclaims ns/claim: can only get individual resources of this type
    get persistentvolumeclaims/status ns/claim: can only get/update/patch this type
    list serviceaccounts ns/: can only create tokens for individual service accounts
    create serviceaccounts ns/sa: can only create token subresource of serviceaccount
    list coordination.k8s.io:leases kube-node-lease/: can only get, create, update, patch, or delete a node lease
    get coordination.k8s.io:leases default/one: can only access leases in the "kube-node-lease" system namespace
    get coordination.k8s.io:leases kube-node-lease/two: can only access node lease with the same name as the requesting node
    list storage.k8s.io:csinodes: can only get, create, update, patch, or delete a CSINode
    get storage.k8s.io:csinodes two: can only access CSINode with the same name as the requesting node
    list nodes: node 'one' cannot read all nodes, only its own Node object
    get nodes two: node 'one' cannot read 'two', only its own Node object
    delete nodes one: 
    list pods ns/: can only list/watch pods with spec.nodeName field selector
    list pods ns/ spec.nodeName!=one: can only list/watch pods with spec.nodeName field selector
    list pods ns/ spec.nodeName=two: can only list/watch pods with spec.nodeName field selector
    get pods: No Object name found
    patch pods ns/p: 
    create pods/exec ns/p: 
    list resource.k8s.io:resourceslices: can only list/watch/deletecollection resourceslices with nodeName field selector
    list apps:deployments: 
    get namespaces ns:
    "#);
}

struct Cluster;

impl Known for Cluster {
    fn pod(&self, namespace: &str, name: &str) -> Option<Value> {
        (namespace == "ns" && name != "gone")
            .then(|| pod(name, if name == "p" { "one" } else { "two" }))
    }
    fn node_uid(&self, name: &str) -> Option<String> {
        (name == "one").then(|| "node-uid".to_owned())
    }
    fn driver_audiences(&self, driver: &str) -> Vec<String> {
        vec![format!("of {driver}")]
    }
    fn claim_driver(&self, _: &str, claim: &str) -> Option<String> {
        (claim == "claim").then(|| "disk.example".to_owned())
    }
    fn may_ask_for(&self, audience: &str, account: &str) -> bool {
        (audience, account) == ("registry", "sa")
    }
}

/// What comes of a change like `create pods ns/p`.
fn change(what: &str, object: &Value, old: &Value) -> String {
    let attributes = asked("one", what);
    let crate::access::authorization::Target::Resource(about) = attributes.target else {
        panic!("no resource");
    };
    let operation = match attributes.verb.as_str() {
        "create" => Operation::Create,
        "update" => Operation::Update,
        _ => Operation::Delete,
    };
    let change = Change {
        operation,
        resource: &about,
        object,
        old,
    };
    match check_node(&node("one"), &change, &Cluster) {
        Ok(()) => "ok".to_owned(),
        Err(error) => error.message,
    }
}

fn mirror() -> Value {
    json!({
        "metadata": {
            "name": "m",
            "annotations": {"kubernetes.io/config.mirror": "x"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "one", "uid": "node-uid", "controller": true}],
        },
        "spec": {"nodeName": "one"},
    })
}

#[test]
fn a_node_makes_only_mirror_pods_that_refer_to_nothing() {
    let make = |edit: &dyn Fn(&mut Value)| {
        let mut object = mirror();
        edit(&mut object);
        change("create pods ns/", &object, &Value::Null)
    };
    assert_eq!(make(&|_| {}), "ok");
    let owner = "ownerReferences";
    let lines = [
        make(&|pod| pod["metadata"]["annotations"] = Value::Null),
        make(&|pod| pod["spec"]["nodeName"] = "two".into()),
        make(&|pod| pod["metadata"][owner] = json!([])),
        make(&|pod| pod["metadata"][owner] = json!([{}, {}])),
        make(&|pod| pod["metadata"][owner][0]["name"] = "two".into()),
        make(&|pod| pod["metadata"][owner][0]["controller"] = false.into()),
        make(&|pod| pod["metadata"][owner][0]["blockOwnerDeletion"] = true.into()),
        make(&|pod| pod["metadata"][owner][0]["uid"] = "other".into()),
        make(&|pod| pod["spec"]["serviceAccountName"] = "sa".into()),
        make(&|pod| pod["spec"]["volumes"] = json!([{"secret": {"secretName": "s"}}])),
        make(&|pod| pod["spec"]["volumes"] = json!([{"configMap": {"name": "s"}}])),
        make(&|pod| {
            pod["spec"]["volumes"] = json!([{"persistentVolumeClaim": {"claimName": "s"}}]);
        }),
        make(&|pod| {
            pod["spec"]["volumes"] =
                json!([{"projected": {"sources": [{"clusterTrustBundle": {}}]}}]);
        }),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    pods "m" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "one" can only create mirror pods
    pods "m" is forbidden: node "one" can only create pods with spec.nodeName set to itself
    pods "m" is forbidden: node "one" can only create pods with an owner reference set to itself
    pods "m" is forbidden: node "one" can only create pods with a single owner reference set to itself
    pods "m" is forbidden: node "one" can only create pods with an owner reference set to itself
    pods "m" is forbidden: node "one" can only create pods with a controller owner reference set to itself
    pods "m" is forbidden: node "one" must not set blockOwnerDeletion on an owner reference
    pods "m" is forbidden: node one UID mismatch: expected other got node-uid
    pods "m" is forbidden: node "one" can not create pods that reference a service account
    pods "m" is forbidden: node "one" can not create pods that reference secrets
    pods "m" is forbidden: node "one" can not create pods that reference configmaps
    pods "m" is forbidden: node "one" can not create pods that reference persistentvolumeclaims
    pods "m" is forbidden: node "one" can not create pods that reference clustertrustbundles
    "#);
}

#[test]
fn a_node_changes_only_itself_and_its_pods() {
    let null = &Value::Null;
    let mine = pod("p", "one");
    let mut relabelled = mine.clone();
    relabelled["metadata"]["labels"] = json!({"a": "b"});
    let this = |labels: Value| json!({"metadata": {"name": "one", "labels": labels}, "spec": {}});
    let plain = this(json!({"kubernetes.io/os": "windows"}));
    let mut tainted = plain.clone();
    tainted["spec"]["taints"] = json!([{"key": "a"}]);
    let token = |name: &str, uid: &str| json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}}});
    let mut claim = json!({"metadata": {"name": "c", "resourceVersion": "1"}, "spec": {}, "status": {"phase": "Bound"}});
    let old_claim = claim.clone();
    claim["metadata"]["resourceVersion"] = "2".into();
    claim["status"]["capacity"] = json!({"storage": "1Gi"});
    let mut grown = claim.clone();
    grown["spec"] = json!({"volumeName": "other"});
    for right in [
        change("delete pods ns/p", null, null),
        change("update pods/status ns/p", &mine, &mine),
        change("create pods/eviction ns/p", &json!({}), null),
        change("create nodes", &plain, null),
        change(
            "update nodes one",
            &this(json!({"kubernetes.io/os": "linux", "mine": "x", "node.kubernetes.io/a": "b"})),
            &plain,
        ),
        change("update nodes/status one", &plain, &plain),
        change(
            "create coordination.k8s.io:leases kube-node-lease/",
            &plain,
            null,
        ),
        change("update storage.k8s.io:csinodes one", &plain, &plain),
        change(
            "update persistentvolumeclaims/status ns/c",
            &claim,
            &old_claim,
        ),
        change(
            "create serviceaccounts/token ns/sa",
            &token("p", "pod-uid"),
            null,
        ),
        change("create events ns/", &json!({}), null),
    ] {
        assert_eq!(right, "ok");
    }
    let lines = [
        change("delete pods ns/q", null, null),
        change("delete pods ns/gone", null, null),
        change("update pods ns/p", &mine, &mine),
        change(
            "update pods/status ns/q",
            &pod("q", "one"),
            &pod("q", "two"),
        ),
        change("update pods/status ns/p", &relabelled, &mine),
        change("create pods/eviction ns/q", &json!({}), null),
        change("create pods/binding ns/p", &json!({}), null),
        change("update nodes two", &plain, &plain),
        change(
            "create nodes",
            &this(
                json!({"node-restriction.kubernetes.io/a": "b", "node-role.kubernetes.io/master": ""}),
            ),
            null,
        ),
        change(
            "update nodes one",
            &this(json!({"x.k8s.io/a": "b"})),
            &plain,
        ),
        change("update nodes one", &plain, &tainted),
        change("create coordination.k8s.io:leases default/", &plain, null),
        change(
            "update coordination.k8s.io:leases kube-node-lease/two",
            &plain,
            &plain,
        ),
        change(
            "create storage.k8s.io:csinodes",
            &json!({"metadata": {"name": "two"}}),
            null,
        ),
        change(
            "update persistentvolumeclaims/status ns/c",
            &grown,
            &old_claim,
        ),
        change("update persistentvolumeclaims ns/c", &claim, &old_claim),
        change("create serviceaccounts/token ns/sa", &json!({}), null),
        change("create serviceaccounts/token ns/sa", &token("p", ""), null),
        change(
            "create serviceaccounts/token ns/sa",
            &token("p", "old"),
            null,
        ),
        change(
            "create serviceaccounts/token ns/sa",
            &token("q", "pod-uid"),
            null,
        ),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    pods "q" is forbidden: node "one" can only delete pods with spec.nodeName set to itself
    pods "gone" not found
    pods "p" is forbidden: unexpected operation "UPDATE", node "one" can only create and delete mirror pods
    pods "q" is forbidden: node "one" can only update pod status for pods with spec.nodeName set to itself
    pods "p" is forbidden: node "one" cannot update labels through pod status
    pods "q" is forbidden: node one can only evict pods with spec.nodeName set to itself
    pods "p" is forbidden: unexpected pod subresource "binding", only 'status' and 'eviction' are allowed
    nodes "two" is forbidden: node "one" is not allowed to modify node "two"
    nodes "one" is forbidden: node "one" is not allowed to set the following labels: node-restriction.kubernetes.io/a, node-role.kubernetes.io/master
    nodes "one" is forbidden: is not allowed to modify labels: x.k8s.io/a
    nodes "one" is forbidden: node "one" is not allowed to modify taints
    leases.coordination.k8s.io "one" is forbidden: can only access leases in the "kube-node-lease" system namespace
    leases.coordination.k8s.io "two" is forbidden: can only access node lease with the same name as the requesting node
    csinodes.storage.k8s.io "two" is forbidden: can only access CSINode with the same name as the requesting node
    persistentvolumeclaims "c" is forbidden: node "one" is not allowed to update fields other than status.capacity and status.conditions
    persistentvolumeclaims "c" is forbidden: may only update PVC status
    serviceaccounts "sa" is forbidden: node requested token not bound to a pod
    serviceaccounts "sa" is forbidden: node requested token with a pod binding without a uid
    serviceaccounts "sa" is forbidden: the UID in the bound object reference (old) does not match the UID in record. The object might have been deleted and then recreated
    serviceaccounts "sa" is forbidden: node requested token bound to a pod scheduled on a different node
    "#);
    let admin = User::authenticated("admin", Vec::new());
    let about = Resource::default();
    let other = Change {
        operation: Operation::Delete,
        resource: &about,
        object: null,
        old: null,
    };
    assert!(check_node(&admin, &other, &Cluster).is_ok());
}

#[test]
fn a_node_tells_of_images_and_takes_nothing_back() {
    let graph = graph();
    for (question, is_right) in [
        ("get transom.dev:images app", true),
        ("create transom.dev:images", true),
        ("update transom.dev:images app", true),
        ("patch transom.dev:images app", true),
        ("update transom.dev:images", false),
        ("list transom.dev:images", false),
        ("watch transom.dev:images", false),
        ("delete transom.dev:images app", false),
        ("create transom.dev:others", false),
        ("create other.dev:images", false),
    ] {
        let verdict = graph.authorize(&asked("one", question));
        assert_eq!(verdict.is_allowed(), is_right, "{question} {verdict:?}");
    }
}

#[test]
fn a_node_speaks_of_images_for_itself_and_not_over_a_registry() {
    let null = &Value::Null;
    let image = |reference: &str, node: Value, platforms: Value| {
        json!({"metadata": {"name": "app"}, "spec": {"reference": reference},
            "status": {"node": node, "platforms": platforms}})
    };
    let linux = json!([{"os": "linux", "architecture": "amd64"}]);
    let mine = image("a:1", "one".into(), linux.clone());
    let of_another = image("a:1", "two".into(), linux.clone());
    let of_registry = image("a:1", Value::Null, linux.clone());
    let failed = image("a:1", Value::Null, Value::Null);
    for right in [
        change("create transom.dev:images", &mine, null),
        change("update transom.dev:images app", &mine, &of_another),
        change("update transom.dev:images app", &mine, &failed),
    ] {
        assert_eq!(right, "ok");
    }
    let moved = image("b:1", "one".into(), linux);
    let lines = [
        change("create transom.dev:images", &of_another, null),
        change("update transom.dev:images app", &mine, &of_registry),
        change("update transom.dev:images app", &moved, &of_another),
        change("delete transom.dev:images app", null, &mine),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    images.transom.dev "app" is forbidden: node "one" can only tell of images with status.node set to itself
    images.transom.dev "app" is forbidden: a registry told what this image is for
    images.transom.dev "app" is forbidden: an object stays about the same image
    images.transom.dev "app" is forbidden: nodes cannot delete images
    "#);
}

#[test]
fn a_node_gets_tokens_for_whom_its_pods_speak_to() {
    let ask = |audiences: Value| {
        let reference = json!({"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "pod-uid"});
        let request = json!({"spec": {"audiences": audiences, "boundObjectRef": reference}});
        change("create serviceaccounts/token ns/sa", &request, &Value::Null)
    };
    for fine in [
        json!(null),
        json!([]),
        json!([""]),
        json!(["vault"]),
        json!(["of inline.example"]),
        json!(["of disk.example"]),
        json!(["registry"]),
    ] {
        assert_eq!(ask(fine.clone()), "ok", "{fine}");
    }
    insta::assert_snapshot!([ask(json!(["bank"])), ask(json!(["vault", ""]))].join("\n"), @r#"
    serviceaccounts "sa" is forbidden: audience "bank" not found in pod spec volume, the node is not authorized to request tokens for this audience
    serviceaccounts "sa" is forbidden: node may only request 0 or 1 audiences
    "#);
}
