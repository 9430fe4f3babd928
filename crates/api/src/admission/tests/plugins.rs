//! Tests of the plugins that have few rules.

use super::*;

#[test]
fn nothing_is_made_in_a_namespace_that_is_not_there() {
    let mut request = pod(&json!({}));
    request.namespace = "nowhere".to_owned();
    let error = World::new().run(&mut request).expect_err("no namespace");
    assert_eq!(error.code, 404);
    assert_eq!(error.message, "namespaces \"nowhere\" not found");
}

#[test]
fn nothing_new_is_made_in_a_namespace_that_ends() {
    let mut world = World::new();
    world.add(
        "",
        "Namespace",
        &json!({"metadata": {"name": "default"}, "status": {"phase": "Terminating"}}),
    );
    let error = world.run(&mut pod(&json!({}))).expect_err("it ends");
    assert_eq!(
        error.message,
        "pods \"p\" is forbidden: unable to create new content in namespace default because it is being terminated"
    );
    let cause = &error.details.expect("details").causes[0];
    assert_eq!(cause.reason, "NamespaceTerminating");
    let mut update = pod(&json!({}));
    update.operation = Operation::Update;
    update.old = Some(Arc::new(update.object.clone()));
    assert!(world.run(&mut update).is_ok());
}

#[test]
fn some_namespaces_are_there_for_good() {
    let world = World::new();
    for (name, stays) in [
        ("default", true),
        ("kube-system", true),
        ("kube-public", true),
        ("mine", false),
    ] {
        let mut request = request(
            Operation::Delete,
            "",
            "Namespace",
            "namespaces",
            json!({"metadata": {"name": name}}),
        );
        let result = world.run(&mut request);
        assert_eq!(result.is_err(), stays, "{name}");
        if let Err(error) = result {
            assert_eq!(
                error.message,
                format!("namespaces {name:?} is forbidden: this namespace may not be deleted")
            );
        }
    }
}

#[test]
fn a_pod_gets_an_account_and_its_token() {
    let mut request = pod(&json!({}));
    World::new().run(&mut request).expect("accepted");
    let spec = &request.object["spec"];
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(spec["volumes"][0]["name"], "kube-api-access-abcd1");
    assert_eq!(
        spec["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"],
        json!({"expirationSeconds": 3607, "path": "token"})
    );
    assert_eq!(
        spec["containers"][0]["volumeMounts"],
        json!([{
            "name": "kube-api-access-abcd1",
            "readOnly": true,
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        }])
    );
}

#[test]
fn a_pod_may_do_without_a_token() {
    let mut request = pod(&json!({"automountServiceAccountToken": false}));
    World::new().run(&mut request).expect("accepted");
    assert!(request.object["spec"]["volumes"].is_null());
}

#[test]
fn an_account_that_is_not_there_is_refused() {
    let message = World::new().refused(&mut pod(&json!({"serviceAccountName": "ghost"})));
    assert_eq!(
        message,
        "pods \"p\" is forbidden: error looking up service account default/ghost: serviceaccount \"ghost\" not found"
    );
}

#[test]
fn a_pod_pulls_images_with_the_secrets_of_its_account() {
    let mut world = World::new();
    world.add(
        "",
        "ServiceAccount",
        &json!({
            "metadata": {"name": "default", "namespace": "default"},
            "imagePullSecrets": [{"name": "registry"}],
        }),
    );
    let mut request = pod(&json!({}));
    world.run(&mut request).expect("accepted");
    assert_eq!(
        request.object["spec"]["imagePullSecrets"],
        json!([{"name": "registry"}])
    );
}

#[test]
fn priorities_come_from_classes() {
    let mut world = World::new();
    let group = "scheduling.k8s.io";
    world.add(
        group,
        "PriorityClass",
        &json!({"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"}),
    );
    world.add(
        group,
        "PriorityClass",
        &json!({"metadata": {"name": "usual"}, "value": 3, "globalDefault": true}),
    );
    let cases = [
        (json!({"priorityClassName": "high"}), "high", 7, "Never"),
        (json!({}), "usual", 3, "PreemptLowerPriority"),
        (
            json!({"priorityClassName": "system-node-critical"}),
            "system-node-critical",
            2_000_001_000,
            "PreemptLowerPriority",
        ),
    ];
    for (spec, name, value, policy) in cases {
        let mut request = pod(&spec);
        world.run(&mut request).expect("accepted");
        let spec = &request.object["spec"];
        assert_eq!(spec["priorityClassName"], name);
        assert_eq!(spec["priority"], value);
        assert_eq!(spec["preemptionPolicy"], policy);
    }
    assert_eq!(
        world.refused(&mut pod(&json!({"priorityClassName": "none"}))),
        "pods \"p\" is forbidden: no PriorityClass with name none was found"
    );
    assert_eq!(
        world.refused(&mut pod(
            &json!({"priorityClassName": "high", "priority": 1})
        )),
        "pods \"p\" is forbidden: the integer value of priority (1) must not be provided in pod spec; priority admission controller computed 7 from the given PriorityClass name"
    );
    let mut second = create(
        group,
        "PriorityClass",
        "priorityclasses",
        json!({"metadata": {"name": "new"}, "globalDefault": true}),
    );
    assert_eq!(
        world.refused(&mut second),
        "priorityclasses.scheduling.k8s.io \"new\" is forbidden: PriorityClass usual is already marked as default. Only one default can exist"
    );
}

#[test]
fn without_classes_a_pod_has_priority_zero() {
    let mut request = pod(&json!({}));
    World::new().run(&mut request).expect("accepted");
    assert_eq!(request.object["spec"]["priority"], 0);
    assert!(request.object["spec"]["priorityClassName"].is_null());
}

#[test]
fn an_update_that_leaves_out_the_priority_keeps_it() {
    let mut request = pod(&json!({}));
    request.operation = Operation::Update;
    let mut old = request.object.clone();
    old["spec"]["priority"] = json!(7);
    old["spec"]["preemptionPolicy"] = json!("Never");
    request.old = Some(Arc::new(old));
    World::new().run(&mut request).expect("accepted");
    assert_eq!(request.object["spec"]["priority"], 7);
    assert_eq!(request.object["spec"]["preemptionPolicy"], "Never");
}

#[test]
fn pods_stay_five_minutes_on_a_node_that_fails() {
    let mut request = pod(
        &json!({"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]}),
    );
    World::new().run(&mut request).expect("accepted");
    assert_eq!(
        request.object["spec"]["tolerations"],
        json!([
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        ])
    );
}

#[test]
fn a_runtime_class_brings_overhead_and_places() {
    let mut world = World::new();
    world.add("node.k8s.io", "RuntimeClass", &json!({
        "metadata": {"name": "windows-2025"},
        "handler": "runhcs",
        "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": {
            "nodeSelector": {"kubernetes.io/os": "windows"},
            "tolerations": [{"key": "os", "operator": "Equal", "value": "windows", "effect": "NoSchedule"}],
        },
    }));
    let mut request = pod(&json!({"runtimeClassName": "windows-2025"}));
    world.run(&mut request).expect("accepted");
    let spec = &request.object["spec"];
    assert_eq!(spec["overhead"], json!({"cpu": "100m"}));
    assert_eq!(spec["nodeSelector"], json!({"kubernetes.io/os": "windows"}));
    assert!(
        spec["tolerations"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|each| each["key"] == "os")
    );
    assert_eq!(
        world.refused(&mut pod(&json!({"runtimeClassName": "windows-2025", "nodeSelector": {"kubernetes.io/os": "linux"}}))),
        "pods \"p\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[kubernetes.io/os] = windows; pod.spec.nodeSelector[kubernetes.io/os] = linux"
    );
    assert_eq!(
        world.refused(&mut pod(&json!({"runtimeClassName": "none"}))),
        "pods \"p\" is forbidden: pod rejected: RuntimeClass \"none\" not found"
    );
    assert_eq!(
        world.refused(&mut pod(&json!({"overhead": {"cpu": "1"}}))),
        "pods \"p\" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    );
}

fn claim(spec: &Value) -> Attributes {
    let object = json!({"metadata": {"name": "data", "namespace": "default"}, "spec": spec});
    create(
        "",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        object,
    )
}

#[test]
fn a_claim_gets_the_newest_default_class_and_is_protected() {
    let mut world = World::new();
    for (name, time, marked) in [
        ("old", "2020-01-01T00:00:00Z", "true"),
        ("new", "2021-01-01T00:00:00Z", "true"),
        ("newer", "2022-01-01T00:00:00Z", "false"),
    ] {
        world.add(
            "storage.k8s.io",
            "StorageClass",
            &json!({"metadata": {
                "name": name, "creationTimestamp": time,
                "annotations": {"storageclass.kubernetes.io/is-default-class": marked},
            }}),
        );
    }
    let mut request = claim(&json!({}));
    world.run(&mut request).expect("accepted");
    assert_eq!(request.object["spec"]["storageClassName"], "new");
    assert_eq!(
        request.object["metadata"]["finalizers"],
        json!(["kubernetes.io/pvc-protection"])
    );
    let mut chosen = claim(&json!({"storageClassName": ""}));
    world.run(&mut chosen).expect("accepted");
    assert_eq!(chosen.object["spec"]["storageClassName"], "");
}

#[test]
fn only_a_class_that_can_grow_lets_claims_grow() {
    let mut world = World::new();
    world.add(
        "storage.k8s.io",
        "StorageClass",
        &json!({"metadata": {"name": "fixed"}}),
    );
    world.add(
        "storage.k8s.io",
        "StorageClass",
        &json!({"metadata": {"name": "elastic"}, "allowVolumeExpansion": true}),
    );
    let resized = |class: &str| {
        let size = |amount: &str| json!({"storageClassName": class, "resources": {"requests": {"storage": amount}}});
        let mut request = claim(&size("2Gi"));
        request.operation = Operation::Update;
        request.old = Some(Arc::new(
            json!({"spec": size("1Gi"), "status": {"phase": "Bound"}}),
        ));
        request
    };
    assert!(world.run(&mut resized("elastic")).is_ok());
    assert_eq!(
        world.refused(&mut resized("fixed")),
        "persistentvolumeclaims \"data\" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
    );
}

#[test]
fn an_ingress_gets_the_default_class() {
    let mut world = World::new();
    world.add(
        "networking.k8s.io",
        "IngressClass",
        &json!({"metadata": {
            "name": "proxy", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"},
        }}),
    );
    let mut request = create(
        "networking.k8s.io",
        "Ingress",
        "ingresses",
        json!({"metadata": {"name": "i", "namespace": "default"}}),
    );
    world.run(&mut request).expect("accepted");
    assert_eq!(request.object["spec"]["ingressClassName"], "proxy");
}

#[test]
fn a_new_node_gets_no_pods_before_it_is_ready() {
    let mut request = create("", "Node", "nodes", json!({"metadata": {"name": "n"}}));
    World::new().run(&mut request).expect("accepted");
    assert_eq!(
        request.object["spec"]["taints"],
        json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    );
}

#[test]
fn a_node_changes_only_itself() {
    let mut request = create("", "Node", "nodes", json!({"metadata": {"name": "other"}}));
    request.user = "system:node:one".to_owned();
    request.user_groups = vec!["system:nodes".to_owned()];
    assert_eq!(
        World::new().refused(&mut request),
        "nodes \"other\" is forbidden: node \"one\" is not allowed to modify node \"other\""
    );
}

#[test]
fn approving_and_signing_need_rights_on_the_signer() {
    let mut world = World::new();
    let old = json!({"metadata": {"name": "r"}, "spec": {"signerName": "example.com/a"}});
    let mut signed = old.clone();
    signed["status"] = json!({"certificate": "x"});
    let step = |subresource: &str| {
        let mut request = request(
            Operation::Update,
            "certificates.k8s.io",
            "CertificateSigningRequest",
            "certificatesigningrequests",
            signed.clone(),
        );
        request.subresource = subresource.to_owned();
        request.old = Some(Arc::new(old.clone()));
        request
    };
    assert_eq!(
        world.refused(&mut step("approval")),
        "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: user not permitted to approve requests with signerName \"example.com/a\""
    );
    assert_eq!(
        world.refused(&mut step("status")),
        "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: user not permitted to sign requests with signerName \"example.com/a\""
    );
    world.rights = vec![("approve", "example.com/*"), ("sign", "example.com/a")];
    assert!(world.run(&mut step("approval")).is_ok());
    assert!(world.run(&mut step("status")).is_ok());
}

#[test]
fn nobody_becomes_master_by_certificate() {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let for_group = |group: &str| {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut parameters = rcgen::CertificateParams::default();
        parameters
            .distinguished_name
            .push(rcgen::DnType::OrganizationName, group);
        let text = parameters
            .serialize_request(&key)
            .expect("a request")
            .pem()
            .expect("its text");
        create(
            "certificates.k8s.io",
            "CertificateSigningRequest",
            "certificatesigningrequests",
            json!({
                "metadata": {"name": "r"},
                "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "request": BASE64_STANDARD.encode(text)},
            }),
        )
    };
    let world = World::new();
    assert!(world.run(&mut for_group("people")).is_ok());
    assert_eq!(
        world.refused(&mut for_group("system:masters")),
        "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    );
}
