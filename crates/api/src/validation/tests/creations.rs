//! Tests of the rules for new objects: each row spoils a right one.

use super::*;

#[test]
fn new_objects_have_upstreams_faults() {
    let cases = [
        (
            "Service",
            json!({"spec": {"ports": []}}),
            "spec.ports: Required value",
        ),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 0, "protocol": "TCP", "targetPort": 1}]}}),
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            "Service",
            json!({"spec": {"clusterIP": "10.0.0.1"}}),
            "spec.clusterIPs: Required value",
        ),
        (
            "Service",
            json!({"spec": {"clusterIP": "x", "clusterIPs": ["x"]}}),
            "spec.clusterIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            "Service",
            json!({"spec": {"type": "ExternalName"}}),
            "spec.externalName: Required value",
        ),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 1, "protocol": "TCP", "targetPort": 1, "nodePort": 3}]}}),
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            "Service",
            json!({"spec": {"externalIPs": ["127.0.0.1"], "externalTrafficPolicy": "Cluster"}}),
            "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
        ),
        (
            "Endpoints",
            json!({"subsets": [{}]}),
            "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
        ),
        (
            "EndpointSlice",
            json!({"endpoints": [{"addresses": ["::1"]}]}),
            "endpoints[0].addresses[0]: Invalid value: \"::1\": must be a valid IPv4 address",
        ),
        (
            "ConfigMap",
            json!({"data": {"a b": ""}}),
            "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        ),
        (
            "ConfigMap",
            json!({"binaryData": {"a": "Yg=="}}),
            "data[a]: Invalid value: \"a\": duplicate of key present in binaryData",
        ),
        (
            "ConfigMap",
            json!({"data": {"a": "x".repeat(1_048_577)}}),
            "<nil>: Too long: may not be more than 1048576 bytes",
        ),
        (
            "Secret",
            json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}),
            "data[tls.key]: Required value",
        ),
        (
            "Secret",
            json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "Yg=="}}),
            "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": must be valid json",
        ),
        (
            "Node",
            json!({"spec": {"taints": [{"key": "a"}]}}),
            "metadata.taints[0].effect: Required value",
        ),
        (
            "PersistentVolume",
            json!({"spec": {"capacity": {"storage": "0"}}}),
            "spec.capacity[storage]: Invalid value: \"0\": must be greater than zero",
        ),
        (
            "PersistentVolume",
            json!({"spec": {"hostPath": null, "local": {"path": "/a"}}}),
            "spec.nodeAffinity: Required value: Local volume requires node affinity",
        ),
        (
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["Any"]}}),
            "spec.accessModes: Unsupported value: \"Any\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
        ),
        (
            "ResourceQuota",
            json!({"spec": {"hard": {"wood": "1"}}}),
            "spec.hard[wood]: Invalid value: \"wood\": must be a standard resource type or fully qualified",
        ),
        (
            "ResourceQuota",
            json!({"spec": {"hard": {"pods": "1500m"}}}),
            "spec.hard[pods]: Invalid value: \"1500m\": must be an integer",
        ),
        (
            "ResourceQuota",
            json!({"spec": {"hard": {"services": "1"}, "scopes": ["BestEffort"]}}),
            "spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource",
        ),
        (
            "LimitRange",
            json!({"spec": {"limits": [{"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}}),
            "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
        ),
        (
            "Deployment",
            json!({"spec": {"selector": {"matchLabels": {"a": "c"}}}}),
            "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`",
        ),
        (
            "Deployment",
            json!({"spec": {"selector": null}}),
            "spec.selector: Required value",
        ),
        (
            "Deployment",
            json!({"spec": {"replicas": -1}}),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "Deployment",
            json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            "Deployment",
            json!({"spec": {"strategy": {"type": "Recreate"}}}),
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            "Deployment",
            json!({"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}),
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
        ),
        (
            "DaemonSet",
            json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}}),
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
        ),
        (
            "StatefulSet",
            json!({"spec": {"podManagementPolicy": "Chaos"}}),
            "spec.podManagementPolicy: Invalid value: \"Chaos\": must be 'OrderedReady' or 'Parallel'",
        ),
        (
            "Job",
            json!({"spec": {"template": {"spec": {"restartPolicy": "Always"}}}}),
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ),
        (
            "Job",
            json!({"spec": {"completionMode": "Indexed", "completions": null}}),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            "CronJob",
            json!({"spec": {"schedule": "often"}}),
            "spec.schedule: Invalid value: \"often\": expected exactly 5 fields, found 1: [often]",
        ),
        (
            "CronJob",
            json!({"spec": {"timeZone": "Local"}}),
            "spec.timeZone: Invalid value: \"Local\": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ),
        (
            "CronJob",
            json!({"metadata": {"name": "x".repeat(53)}}),
            "metadata.name: Invalid value: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": must be no more than 52 characters",
        ),
        (
            "HorizontalPodAutoscaler",
            json!({"spec": {"minReplicas": 5}}),
            "spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`",
        ),
        (
            "NetworkPolicy",
            json!({"spec": {"ingress": [{"from": [{}]}]}}),
            "spec.ingress[0].from[0]: Required value: must specify a peer",
        ),
        (
            "NetworkPolicy",
            json!({"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}}]}]}}),
            "spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
        ),
        (
            "Ingress",
            json!({"spec": {"rules": [{"http": {"paths": [{"path": "a", "pathType": "Prefix", "backend": {"service": {"name": "a", "port": {"name": "b"}}}}]}}]}}),
            "spec.rules[0].http.paths[0].path: Invalid value: \"a\": must be an absolute path",
        ),
        (
            "Ingress",
            json!({"spec": {"rules": [{"host": "*.a.b", "http": {}}]}}),
            "spec.rules[0].http.paths: Required value",
        ),
        (
            "IngressClass",
            json!({"spec": {"controller": "c"}}),
            "spec.controller: Invalid value: \"c\": must be a domain-prefixed path (such as \"acme.io/foo\")",
        ),
        (
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": "101%"}}),
            "spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%",
        ),
        (
            "Role",
            json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/"]}]}),
            "rules[0].nonResourceURLs: Invalid value: [\"/\"]: namespaced rules cannot apply to non-resource URLs",
        ),
        (
            "RoleBinding",
            json!({"roleRef": {"kind": "Crown"}}),
            "roleRef.kind: Unsupported value: \"Crown\": supported values: \"Role\", \"ClusterRole\"",
        ),
        (
            "ClusterRoleBinding",
            json!({"subjects": [{"kind": "ServiceAccount", "name": "a"}]}),
            "subjects[0].namespace: Required value",
        ),
        (
            "PriorityClass",
            json!({"value": 2_000_000_000}),
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            "PriorityClass",
            json!({"metadata": {"name": "system-mine"}}),
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class",
        ),
        (
            "StorageClass",
            json!({"provisioner": ""}),
            "provisioner: Required value",
        ),
        (
            "Lease",
            json!({"spec": {"leaseDurationSeconds": 0}}),
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            "RuntimeClass",
            json!({"handler": "a.b"}),
            "handler: Invalid value: \"a.b\": must not contain dots",
        ),
        (
            "CustomResourceDefinition",
            json!({"metadata": {"name": "other.example.com"}}),
            "metadata.name: Invalid value: \"other.example.com\": must be spec.names.plural+\".\"+spec.group",
        ),
        (
            "CustomResourceDefinition",
            json!({"spec": {"scope": "World"}}),
            "spec.scope: Unsupported value: \"World\": supported values: \"Cluster\", \"Namespaced\"",
        ),
        (
            "Event",
            json!({"involvedObject": {"namespace": "other"}}),
            "involvedObject.namespace: Invalid value: \"other\": does not match event.namespace",
        ),
    ];
    for (kind, patch, expected) in cases {
        let (group, mut object) = object_of(kind);
        json_patch::merge(&mut object, &patch);
        let faults = texts(&create(group, kind, &object));
        assert!(
            faults.contains(&expected.to_owned()),
            "{kind} {patch}: {faults:#?}"
        );
    }
}

#[test]
fn a_definition_has_exactly_one_storage_version() {
    let (group, mut object) = object_of("CustomResourceDefinition");
    object["spec"]["versions"][0]["storage"] = json!(false);
    let faults = texts(&create(group, "CustomResourceDefinition", &object));
    assert!(
        faults.iter().any(|fault| fault.ends_with("must have exactly one version marked as storage version")),
        "{faults:?}"
    );
}

#[test]
fn a_signing_request_must_be_one() {
    let object = json!({
        "metadata": {"name": "x"},
        "spec": {"request": "Yg==", "signerName": "example.com/a", "usages": ["client auth"]},
    });
    assert_eq!(
        texts(&create(
            "certificates.k8s.io",
            "CertificateSigningRequest",
            &object
        )),
        ["spec.request: Invalid value: \"Yg==\": PEM block type must be CERTIFICATE REQUEST"]
    );
}
