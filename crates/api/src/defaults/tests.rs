//! The defaults of each kind, and that they never fight with what is there.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn defaulted(group: &str, kind: &str, mut object: Value) -> Value {
    let version = if group == "autoscaling" { "v2" } else { "v1" };
    apply(group, version, kind, &mut object);
    object
}

#[test]
fn a_pod_gets_what_upstream_fills_in() {
    let pod = defaulted(
        "",
        "Pod",
        json!({"spec": {"containers": [{"name": "c", "image": "nginx"}]}}),
    );
    assert_eq!(
        pod["spec"],
        json!({
            "containers": [{
                "name": "c",
                "image": "nginx",
                "imagePullPolicy": "Always",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": true,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        })
    );
}

#[test]
fn a_grace_period_of_zero_is_a_choice() {
    let pod = defaulted(
        "",
        "Pod",
        json!({"spec": {"terminationGracePeriodSeconds": 0}}),
    );
    assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 0);
}

#[test]
fn the_parts_of_a_container_get_theirs() {
    let container = json!({
        "name": "c",
        "image": "nginx:1",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "livenessProbe": {"httpGet": {"port": 80}},
        "readinessProbe": {"grpc": {"port": 80}, "periodSeconds": 3},
        "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
    });
    let pod = defaulted(
        "",
        "Pod",
        json!({"spec": {"hostNetwork": true, "containers": [container]}}),
    );
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert_eq!(
        container["ports"],
        json!([{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}])
    );
    assert_eq!(
        container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"],
        "v1"
    );
    assert_eq!(
        container["livenessProbe"],
        json!({
            "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        })
    );
    assert_eq!(container["readinessProbe"]["periodSeconds"], 3);
    assert_eq!(container["readinessProbe"]["grpc"]["service"], "");
    assert_eq!(
        container["lifecycle"]["preStop"]["httpGet"]["scheme"],
        "HTTP"
    );
    assert_eq!(
        container["resources"]["requests"],
        json!({"cpu": "500m", "memory": "1Gi"})
    );
}

#[test]
fn a_template_does_not_get_requests_from_limits() {
    let deployment = defaulted(
        "apps",
        "Deployment",
        json!({"spec": {"template": {"spec": {"containers": [
            {"name": "c", "image": "a:1", "resources": {"limits": {"cpu": "1"}}}
        ]}}}}),
    );
    let spec = &deployment["spec"]["template"]["spec"];
    assert!(spec["containers"][0]["resources"]["requests"].is_null());
    assert!(spec["enableServiceLinks"].is_null());
    assert_eq!(spec["restartPolicy"], "Always");
}

#[test]
fn volumes_have_modes_and_kinds() {
    let pod = defaulted(
        "",
        "Pod",
        json!({"spec": {"volumes": [
            {"name": "nothing"},
            {"name": "secret", "secret": {"secretName": "s"}},
            {"name": "host", "hostPath": {"path": "/"}},
            {"name": "token", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token"}},
                {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            ]}},
            {"name": "image", "image": {"reference": "a:latest"}},
            {"name": "claim", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ]}}),
    );
    let volumes = &pod["spec"]["volumes"];
    assert_eq!(volumes[0]["emptyDir"], json!({}));
    assert_eq!(volumes[1]["secret"]["defaultMode"], 420);
    assert_eq!(volumes[2]["hostPath"]["type"], "");
    assert_eq!(
        volumes[3]["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"],
        3600
    );
    assert_eq!(
        volumes[3]["projected"]["sources"][1]["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"],
        "v1"
    );
    assert_eq!(volumes[4]["image"]["pullPolicy"], "Always");
    assert_eq!(
        volumes[5]["ephemeral"]["volumeClaimTemplate"]["spec"]["volumeMode"],
        "Filesystem"
    );
}

#[test]
fn a_service_has_a_type_and_ports_lead_to_the_same_number() {
    let service = defaulted("", "Service", json!({"spec": {"ports": [{"port": 80}]}}));
    assert_eq!(
        service["spec"],
        json!({
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        })
    );
    assert_eq!(service["status"], json!({"loadBalancer": {}}));
}

#[test]
fn a_service_with_a_load_balancer_takes_node_ports_and_outside_traffic() {
    let service = defaulted(
        "",
        "Service",
        json!({"spec": {"type": "LoadBalancer", "sessionAffinity": "ClientIP"}}),
    );
    assert_eq!(service["spec"]["allocateLoadBalancerNodePorts"], true);
    assert_eq!(service["spec"]["externalTrafficPolicy"], "Cluster");
    assert_eq!(
        service["spec"]["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"],
        10800
    );
}

#[test]
fn an_external_name_has_no_traffic_policy() {
    let service = defaulted(
        "",
        "Service",
        json!({"spec": {"type": "ExternalName", "externalName": "a.example"}}),
    );
    assert!(service["spec"]["internalTrafficPolicy"].is_null());
}

#[test]
fn a_namespace_is_labelled_with_its_name() {
    let namespace = defaulted("", "Namespace", json!({"metadata": {"name": "a"}}));
    assert_eq!(
        namespace["metadata"]["labels"],
        json!({"kubernetes.io/metadata.name": "a"})
    );
    assert_eq!(namespace["status"]["phase"], "Active");
}

#[test]
fn a_job_runs_once_and_carries_the_labels_of_its_pods() {
    let job = defaulted(
        "batch",
        "Job",
        json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
    );
    assert_eq!(job["spec"]["completions"], 1);
    assert_eq!(job["spec"]["parallelism"], 1);
    assert_eq!(job["spec"]["backoffLimit"], 6);
    assert_eq!(job["spec"]["podReplacementPolicy"], "TerminatingOrFailed");
    assert_eq!(job["metadata"]["labels"], json!({"a": "b"}));
}

#[test]
fn a_job_that_counts_only_parallelism_has_no_completions() {
    let job = defaulted("batch", "Job", json!({"spec": {"parallelism": 3}}));
    assert!(job["spec"]["completions"].is_null());
}

#[test]
fn a_stateful_set_keeps_its_claims() {
    let set = defaulted(
        "apps",
        "StatefulSet",
        json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]}}),
    );
    let spec = &set["spec"];
    assert_eq!(
        spec["persistentVolumeClaimRetentionPolicy"],
        json!({"whenDeleted": "Retain", "whenScaled": "Retain"})
    );
    assert_eq!(
        spec["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    );
    assert_eq!(
        spec["volumeClaimTemplates"][0]["kind"],
        "PersistentVolumeClaim"
    );
    assert_eq!(
        spec["volumeClaimTemplates"][0]["status"]["phase"],
        "Pending"
    );
}

#[test]
fn a_limit_range_derives_defaults_from_its_bounds() {
    let range = defaulted(
        "",
        "LimitRange",
        json!({"spec": {"limits": [
            {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Mi"}},
            {"type": "Pod", "max": {"cpu": "2"}},
        ]}}),
    );
    let limits = &range["spec"]["limits"];
    assert_eq!(limits[0]["default"], json!({"cpu": "2"}));
    assert_eq!(
        limits[0]["defaultRequest"],
        json!({"cpu": "2", "memory": "1Mi"})
    );
    assert!(limits[1]["default"].is_null());
}

#[test]
fn small_kinds_get_their_one_default() {
    let cases = [
        ("", "Secret", json!({}), "/type", json!("Opaque")),
        (
            "apps",
            "Deployment",
            json!({}),
            "/spec/strategy/rollingUpdate/maxSurge",
            json!("25%"),
        ),
        (
            "apps",
            "DaemonSet",
            json!({}),
            "/spec/updateStrategy/rollingUpdate/maxUnavailable",
            json!(1),
        ),
        ("apps", "ReplicaSet", json!({}), "/spec/replicas", json!(1)),
        (
            "batch",
            "CronJob",
            json!({}),
            "/spec/concurrencyPolicy",
            json!("Allow"),
        ),
        (
            "autoscaling",
            "HorizontalPodAutoscaler",
            json!({}),
            "/spec/minReplicas",
            json!(1),
        ),
        (
            "networking.k8s.io",
            "NetworkPolicy",
            json!({"spec": {"egress": [{}]}}),
            "/spec/policyTypes",
            json!(["Ingress", "Egress"]),
        ),
        (
            "networking.k8s.io",
            "IngressClass",
            json!({"spec": {"parameters": {}}}),
            "/spec/parameters/scope",
            json!("Cluster"),
        ),
        (
            "storage.k8s.io",
            "StorageClass",
            json!({}),
            "/volumeBindingMode",
            json!("Immediate"),
        ),
        (
            "storage.k8s.io",
            "CSIDriver",
            json!({}),
            "/spec/attachRequired",
            json!(true),
        ),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            json!({"roleRef": {}}),
            "/roleRef/apiGroup",
            json!("rbac.authorization.k8s.io"),
        ),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            json!({"subjects": [{"kind": "User"}]}),
            "/subjects/0/apiGroup",
            json!("rbac.authorization.k8s.io"),
        ),
        (
            "scheduling.k8s.io",
            "PriorityClass",
            json!({}),
            "/preemptionPolicy",
            json!("PreemptLowerPriority"),
        ),
        (
            "discovery.k8s.io",
            "EndpointSlice",
            json!({"ports": [{}]}),
            "/ports/0/protocol",
            json!("TCP"),
        ),
        (
            "authentication.k8s.io",
            "TokenRequest",
            json!({}),
            "/spec/expirationSeconds",
            json!(3600),
        ),
        (
            "",
            "PersistentVolume",
            json!({}),
            "/spec/persistentVolumeReclaimPolicy",
            json!("Retain"),
        ),
        (
            "",
            "PersistentVolumeClaim",
            json!({}),
            "/spec/volumeMode",
            json!("Filesystem"),
        ),
        (
            "",
            "Endpoints",
            json!({"subsets": [{"ports": [{"port": 1}]}]}),
            "/subsets/0/ports/0/protocol",
            json!("TCP"),
        ),
        (
            "",
            "Node",
            json!({"status": {"capacity": {"cpu": "1"}}}),
            "/status/allocatable/cpu",
            json!("1"),
        ),
        (
            "",
            "ReplicationController",
            json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
            "/spec/selector/a",
            json!("b"),
        ),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            json!({"spec": {"names": {"kind": "Boat"}}}),
            "/spec/names/listKind",
            json!("BoatList"),
        ),
    ];
    for (group, kind, object, pointer, expected) in cases {
        let object = defaulted(group, kind, object);
        assert_eq!(object.pointer(pointer), Some(&expected), "{kind} {pointer}");
    }
}

#[test]
fn texts_of_a_secret_become_data() {
    let secret = defaulted(
        "",
        "Secret",
        json!({"data": {"a": "b2xk"}, "stringData": {"a": "new"}}),
    );
    assert_eq!(secret, json!({"type": "Opaque", "data": {"a": "bmV3"}}));
}

#[test]
fn a_pod_that_limits_itself_asks_for_what_its_containers_do() {
    let pod = defaulted(
        "",
        "Pod",
        json!({"spec": {
            "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
            "containers": [
                {"name": "a", "resources": {"requests": {"cpu": "500m"}}},
                {"name": "b", "resources": {"requests": {"cpu": "1"}}},
            ],
        }}),
    );
    assert_eq!(
        pod["spec"]["resources"]["requests"],
        json!({"cpu": "1500m", "memory": "1Gi"})
    );
}

#[test]
fn an_account_is_known_by_both_names() {
    let pod = defaulted("", "Pod", json!({"spec": {"serviceAccount": "robot"}}));
    assert_eq!(pod["spec"]["serviceAccountName"], "robot");
}

#[test]
fn a_new_pod_with_gates_says_that_it_is_not_scheduled_because_of_them() {
    let mut pod =
        json!({"spec": {"schedulingGates": [{"name": "g"}], "containers": [{"name": "c"}]}});
    prepare_create("", "v1", "Pod", &mut pod);
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 1);
    for (field, value) in [
        ("type", "PodScheduled"),
        ("status", "False"),
        ("reason", "SchedulingGated"),
        (
            "message",
            "Scheduling is blocked due to non-empty scheduling gates",
        ),
    ] {
        assert_eq!(conditions[0][field], value);
    }
}

#[test]
fn a_new_pod_waits_and_has_a_quality_of_service() {
    let cases = [
        (json!({}), "BestEffort"),
        (json!({"requests": {"cpu": "1"}}), "Burstable"),
        (
            json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}),
            "Guaranteed",
        ),
        (
            json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}),
            "Burstable",
        ),
    ];
    for (resources, class) in cases {
        let mut pod = json!({
            "status": {"phase": "Running"},
            "spec": {"containers": [{"name": "c", "resources": resources}]},
        });
        prepare_create("", "v1", "Pod", &mut pod);
        assert_eq!(
            pod["status"],
            json!({"phase": "Pending", "qosClass": class})
        );
    }
}

#[test]
fn a_new_namespace_has_the_finalizer_that_empties_it() {
    let mut namespace = json!({"metadata": {"name": "a"}, "status": {"phase": "Terminating"}});
    prepare_create("", "v1", "Namespace", &mut namespace);
    assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(namespace["status"], json!({"phase": "Active"}));
}

#[test]
fn a_new_job_selects_pods_by_its_uid() {
    let mut job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {}});
    prepare_create("batch", "v1", "Job", &mut job);
    assert_eq!(
        job["spec"]["selector"]["matchLabels"],
        json!({"batch.kubernetes.io/controller-uid": "u"})
    );
    assert_eq!(
        job["spec"]["template"]["metadata"]["labels"]["job-name"],
        "j"
    );
}

#[test]
fn keys_of_labels_become_expressions() {
    let mut pod = json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["a", "absent"]}
        ]}}},
    });
    prepare_create("", "v1", "Pod", &mut pod);
    let term = &pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        [0];
    assert_eq!(
        term["labelSelector"]["matchExpressions"],
        json!([{"key": "a", "operator": "In", "values": ["b"]}])
    );
}

/// Every kind that has defaults.
const KINDS: [(&str, &str); 33] = [
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ReplicationController"),
    ("", "Service"),
    ("", "Namespace"),
    ("", "Secret"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Endpoints"),
    ("", "Node"),
    ("", "LimitRange"),
    ("", "ResourceQuota"),
    ("", "Event"),
    ("", "Binding"),
    ("apps", "Deployment"),
    ("apps", "DaemonSet"),
    ("apps", "StatefulSet"),
    ("apps", "ReplicaSet"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "Ingress"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("policy", "PodDisruptionBudget"),
    ("authentication.k8s.io", "TokenRequest"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// Field names that defaults look at, so that random objects meet them.
const FIELDS: &str = "metadata|name|labels|spec|status|template|containers|initContainers|ports|port|\
    protocol|image|volumes|projected|sources|limits|resources|requests|type|strategy|rollingUpdate|\
    updateStrategy|hostNetwork|containerPort|subsets|egress|policyTypes|parameters|roleRef|subjects|\
    kind|names|versions|storage|behavior|metrics|jobTemplate|capacity|default|max|completions";

fn any_object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..90).prop_map(Value::from),
        "|RollingUpdate|LoadBalancer|Container|nginx:latest|Webhook|User".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(FIELDS, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn defaults_twice_are_defaults_once_whatever_the_shape(object in any_object(), kind in 0..KINDS.len()) {
        let (group, kind) = KINDS[kind];
        for version in ["v1", "v2"] {
            let mut once = object.clone();
            apply(group, version, kind, &mut once);
            let mut twice = once.clone();
            apply(group, version, kind, &mut twice);
            prop_assert_eq!(&once, &twice);
        }
    }
}
