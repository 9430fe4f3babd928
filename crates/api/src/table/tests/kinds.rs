//! Every other kind, and the age of all.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{super::human_duration, heads, line};

#[test]
fn durations_are_as_short_as_they_can_be() {
    for (seconds, text) in [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (10_860, "3h1m"),
        (28_799, "7h59m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (691_199, "7d23h"),
        (691_200, "8d"),
        (63_071_999, "729d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (252_288_000, "8y"),
        (400_000_000, "12y"),
    ] {
        assert_eq!(human_duration(SignedDuration::from_secs(seconds)), text);
    }
}

#[test]
fn nodes_show_roles_versions_and_addresses() {
    assert_eq!(
        heads("", "Node"),
        "Name | Status | Roles | Age | Version | Internal-IP* | External-IP* | OS-Image* | Kernel-Version* | Container-Runtime*"
    );
    let node = json!({
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "worker"}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.36.4", "osImage": "Windows Server 2025", "kernelVersion": "10.0.26100"}},
    });
    assert_eq!(
        line("", "Node", node),
        "n | Ready,SchedulingDisabled | control-plane,worker | 10m | v1.36.4 | 10.0.0.1 | <none> | Windows Server 2025 | 10.0.26100 | <unknown>"
    );
    assert_eq!(
        line(
            "",
            "Node",
            json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
        ),
        "x | NotReady | <none> | 10m |  | <none> | <none> | <unknown> | <unknown> | <unknown>"
    );
}

#[test]
fn workloads_show_how_far_they_are() {
    let template = json!({"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}], "nodeSelector": {"disk": "ssd"}}});
    let selector = json!({"matchLabels": {"app": "web"}, "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["b", "a"]}, {"key": "env", "operator": "NotIn", "values": ["dev"]},
        {"key": "old", "operator": "DoesNotExist"}, {"key": "new", "operator": "Exists"}]});
    let selected = "app=web,env notin (dev),new,!old,tier in (a,b)";
    let object = json!({
        "spec": {"replicas": 3, "selector": selector, "template": template},
        "status": {"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1,
            "desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3, "updatedNumberScheduled": 2, "numberAvailable": 1},
    });
    for (kind, expected) in [
        (
            "Deployment",
            format!("x | 1/3 | 2 | 1 | 10m | a,b | a:1,b:1 | {selected}"),
        ),
        (
            "ReplicaSet",
            format!("x | 3 | 2 | 1 | 10m | a,b | a:1,b:1 | {selected}"),
        ),
        ("StatefulSet", "x | 1/3 | 10m | a,b | a:1,b:1".to_owned()),
        (
            "DaemonSet",
            format!("x | 5 | 4 | 3 | 2 | 1 | disk=ssd | 10m | a,b | a:1,b:1 | {selected}"),
        ),
    ] {
        assert_eq!(line("apps", kind, object.clone()), expected);
    }
    let mut controller = object;
    controller["spec"]["selector"] = json!({"b": "2", "a": "1"});
    assert_eq!(
        line("", "ReplicationController", controller),
        "x | 3 | 2 | 1 | 10m | a,b | a:1,b:1 | a=1,b=2"
    );
    assert_eq!(
        line(
            "apps",
            "ControllerRevision",
            json!({"revision": 4, "metadata": {"ownerReferences": [
            {"kind": "StatefulSet", "apiVersion": "apps/v1", "name": "web", "controller": true}]}})
        ),
        "x | statefulset.apps/web | 4 | 10m"
    );
    assert_eq!(
        line(
            "",
            "PodTemplate",
            json!({"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}})
        ),
        "x | c | i | a=b"
    );
}

#[test]
fn jobs_show_their_status_and_how_long_they_take() {
    let job =
        |spec: Value, status: Value| line("batch", "Job", json!({"spec": spec, "status": status}));
    assert_eq!(
        job(
            json!({"completions": 3}),
            json!({"succeeded": 1, "startTime": "2026-11-16T11:58:00Z"})
        ),
        "x | Running | 1/3 | 2m | 10m |  |  | <none>"
    );
    assert_eq!(
        job(
            json!({"parallelism": 2}),
            json!({"startTime": "2026-11-16T11:50:00Z", "completionTime": "2026-11-16T11:50:07Z", "conditions": [{"type": "Complete", "status": "True"}]})
        ),
        "x | Complete | 0/1 of 2 | 7s | 10m |  |  | <none>"
    );
    for (condition, status) in [
        ("Failed", "Failed"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
    ] {
        let line = job(
            json!({}),
            json!({"conditions": [{"type": condition, "status": "True"}]}),
        );
        assert!(
            line.starts_with(&format!("x | {status} | 0/1 |  |")),
            "{line}"
        );
    }
    assert_eq!(
        line(
            "batch",
            "CronJob",
            json!({"spec": {"schedule": "* * * * *", "suspend": false}, "status": {"active": [{}], "lastScheduleTime": "2026-11-16T11:59:30Z"}})
        ),
        "x | * * * * * | <none> | False | 1 | 30s | 10m |  |  | <none>"
    );
}

#[test]
fn services_show_where_they_are_reached() {
    let service =
        |spec: Value, status: Value| line("", "Service", json!({"spec": spec, "status": status}));
    assert_eq!(
        service(
            json!({"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "protocol": "TCP"}], "selector": {"a": "b"}}),
            json!({})
        ),
        "x | ClusterIP | 10.0.0.1 | <none> | 80/TCP | 10m | a=b"
    );
    assert_eq!(
        service(
            json!({"type": "NodePort", "clusterIPs": ["None"], "externalIPs": ["1.2.3.4"], "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}),
            json!({})
        ),
        "x | NodePort | None | 1.2.3.4 | 80:30080/TCP,53/UDP | 10m | <none>"
    );
    let balancer = json!({"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"]});
    assert_eq!(
        service(balancer.clone(), json!({})),
        "x | LoadBalancer | 10.0.0.1 | <pending> | <none> | 10m | <none>"
    );
    assert_eq!(
        service(
            balancer,
            json!({"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "a.example"}]}})
        ),
        "x | LoadBalancer | 10.0.0.1 | 9.9.9.9,a.example | <none> | 10m | <none>"
    );
    assert_eq!(
        service(
            json!({"type": "ExternalName", "externalName": "db.example"}),
            json!({})
        ),
        "x | ExternalName | <none> | db.example | <none> | 10m | <none>"
    );
}

#[test]
fn endpoints_show_the_first_three() {
    let addresses: Vec<Value> = (1..=4)
        .map(|n| json!({"ip": format!("10.0.0.{n}")}))
        .collect();
    assert_eq!(
        line(
            "",
            "Endpoints",
            json!({"subsets": [{"addresses": addresses, "ports": [{"port": 80}]}]})
        ),
        "x | 10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 1 more... | 10m"
    );
    assert_eq!(line("", "Endpoints", json!({})), "x | <none> | 10m");
    assert_eq!(
        line(
            "",
            "Endpoints",
            json!({"subsets": [{"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}]}]})
        ),
        "x | [fd00::1]:80 | 10m"
    );
    assert_eq!(
        line(
            "discovery.k8s.io",
            "EndpointSlice",
            json!({"addressType": "IPv4", "ports": [{"port": 80}, {"name": "any"}, {}],
            "endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}]})
        ),
        "x | IPv4 | 80,any,* | 10.0.0.1,10.0.0.2 | 10m"
    );
    assert_eq!(
        line(
            "discovery.k8s.io",
            "EndpointSlice",
            json!({"addressType": "IPv4"})
        ),
        "x | IPv4 | <unset> | <unset> | 10m"
    );
}

#[test]
fn ingresses_and_policies_show_what_they_are_for() {
    let rules: Vec<Value> = (0..5)
        .map(|n| json!({"host": format!("{n}.example")}))
        .collect();
    assert_eq!(
        line(
            "networking.k8s.io",
            "Ingress",
            json!({"spec": {"ingressClassName": "nginx", "rules": rules, "tls": [{}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}}})
        ),
        "x | nginx | 0.example,1.example,2.example + 2 more... | 1.1.1.1 | 80, 443 | 10m"
    );
    assert_eq!(
        line("networking.k8s.io", "Ingress", json!({})),
        "x | <none> | * |  | 80 | 10m"
    );
    assert_eq!(
        line(
            "networking.k8s.io",
            "IngressClass",
            json!({"spec": {"controller": "c", "parameters": {"kind": "P", "apiGroup": "g", "name": "n"}}})
        ),
        "x | c | P.g/n | 10m"
    );
    assert_eq!(
        line(
            "networking.k8s.io",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}}})
        ),
        "x | <none> | 10m"
    );
    assert_eq!(
        line(
            "policy",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}})
        ),
        "x | 50% | N/A | 2 | 10m"
    );
}

#[test]
fn volumes_show_what_they_are_bound_to() {
    assert_eq!(
        line(
            "",
            "PersistentVolume",
            json!({
            "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": "ns", "name": "c"}, "storageClassName": "fast", "volumeMode": "Filesystem"},
            "status": {"phase": "Bound"}})
        ),
        "x | 5Gi | RWO,RWX | Retain | Bound | ns/c | fast | <unset> |  | 10m | Filesystem"
    );
    assert_eq!(
        line(
            "",
            "PersistentVolumeClaim",
            json!({"spec": {"volumeName": "v", "storageClassName": "fast"},
            "status": {"phase": "Bound", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOncePod"]}})
        ),
        "x | Bound | v | 5Gi | RWOP | fast | <unset> | 10m | <unset>"
    );
    assert_eq!(
        line(
            "",
            "PersistentVolumeClaim",
            json!({"status": {"phase": "Pending"}})
        ),
        "x | Pending |  |  |  |  | <unset> | 10m | <unset>"
    );
    assert_eq!(
        line(
            "storage.k8s.io",
            "StorageClass",
            json!({"provisioner": "p", "metadata": {"name": "s", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}})
        ),
        "s (default) | p | Delete | Immediate | false | 10m"
    );
    assert_eq!(
        line(
            "storage.k8s.io",
            "CSINode",
            json!({"spec": {"drivers": [{}, {}]}})
        ),
        "x | 2 | 10m"
    );
    assert_eq!(
        line(
            "storage.k8s.io",
            "CSIDriver",
            json!({"spec": {"volumeLifecycleModes": ["Persistent", "Ephemeral"], "tokenRequests": [{"audience": "a"}]}})
        ),
        "x | true | false | false | a | false | Persistent,Ephemeral | 10m"
    );
}

#[test]
fn small_kinds_show_what_counts() {
    for (group, kind, object, expected) in [
        (
            "",
            "Namespace",
            json!({"status": {"phase": "Active"}}),
            "x | Active | 10m",
        ),
        (
            "",
            "ConfigMap",
            json!({"data": {"a": ""}, "binaryData": {"b": ""}}),
            "x | 2 | 10m",
        ),
        (
            "",
            "Secret",
            json!({"type": "Opaque", "data": {"a": ""}}),
            "x | Opaque | 1 | 10m",
        ),
        ("", "ServiceAccount", json!({}), "x | 0 | 10m"),
        (
            "",
            "ResourceQuota",
            json!({"status": {"hard": {"pods": "10", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "3"}}}),
            "x | cpu: 0/1, pods: 3/10 | limits.cpu: 0/2 | 10m",
        ),
        (
            "coordination.k8s.io",
            "Lease",
            json!({"spec": {"holderIdentity": "me"}}),
            "x | me | 10m",
        ),
        (
            "scheduling.k8s.io",
            "PriorityClass",
            json!({"value": 1000, "preemptionPolicy": "Never"}),
            "x | 1000 | false | 10m | Never",
        ),
        (
            "node.k8s.io",
            "RuntimeClass",
            json!({"handler": "runc"}),
            "x | runc | 10m",
        ),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [
            {"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "namespace": "n", "name": "s"}]}),
            "x | Role/r | 10m | u | g | n/s",
        ),
        (
            "certificates.k8s.io",
            "CertificateSigningRequest",
            json!({"spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
            "status": {"certificate": "x", "conditions": [{"type": "Approved", "status": "True"}]}}),
            "x | 10m | s | u | 60m | Approved,Issued",
        ),
        (
            "autoscaling",
            "Scale",
            json!({"spec": {"replicas": 3}, "status": {"replicas": 2}}),
            "x | 3 | 2 | 10m",
        ),
        (
            "rbac.authorization.k8s.io",
            "ClusterRole",
            json!({}),
            "x | 2026-11-16T11:50:00Z",
        ),
        ("", "LimitRange", json!({}), "x | 2026-11-16T11:50:00Z"),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            json!({}),
            "x | 2026-11-16T11:50:00Z",
        ),
    ] {
        assert_eq!(line(group, kind, object), expected, "{kind}");
    }
    assert_eq!(heads("some.group", "Unknown"), "Name | Created At");
}

#[test]
fn events_of_both_apis_look_the_same() {
    let old = json!({"firstTimestamp": "2026-11-16T11:00:00Z", "lastTimestamp": "2026-11-16T11:59:00Z", "count": 7, "type": "Warning", "reason": "Failed",
        "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec"}, "source": {"component": "kubelet", "host": "n1"}, "message": " oh no \n"});
    let new = json!({"deprecatedFirstTimestamp": "2026-11-16T11:00:00Z", "deprecatedLastTimestamp": "2026-11-16T11:59:00Z", "deprecatedCount": 7, "type": "Warning",
        "reason": "Failed", "regarding": {"kind": "Pod", "name": "web", "fieldPath": "spec"}, "reportingController": "kubelet", "reportingInstance": "n1", "note": "oh no"});
    let expected = "60s | Warning | Failed | pod/web | spec | kubelet, n1 | oh no | 60m | 7 | x";
    assert_eq!(line("", "Event", old), expected);
    assert_eq!(line("events.k8s.io", "Event", new), expected);
    let series = json!({"eventTime": "2026-11-16T11:00:00.000000Z", "series": {"count": 3, "lastObservedTime": "2026-11-16T11:58:00.000000Z"}});
    assert_eq!(
        line("events.k8s.io", "Event", series),
        "2m |  |  |  |  |  |  | 60m | 3 | x"
    );
}

#[test]
fn autoscalers_show_what_is_measured() {
    let scaler = |metrics: Value, current: Value| {
        line(
            "autoscaling",
            "HorizontalPodAutoscaler",
            json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 5, "minReplicas": 2, "metrics": metrics},
            "status": {"currentReplicas": 3, "currentMetrics": current}}),
        )
    };
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}});
    assert_eq!(
        scaler(
            json!([cpu]),
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40}}}])
        ),
        "x | Deployment/web | cpu: 40%/80% | 2 | 5 | 3 | 10m"
    );
    assert_eq!(
        scaler(
            json!([cpu, {"type": "Pods", "pods": {"target": {"averageValue": "10"}}}, {"type": "Other"}]),
            json!([])
        ),
        "x | Deployment/web | cpu: <unknown>/80%, <unknown>/10 + 1 more... | 2 | 5 | 3 | 10m"
    );
    assert_eq!(
        scaler(
            json!([{"type": "External", "external": {"target": {"averageValue": "5"}}}, {"type": "Object", "object": {"target": {"value": "7"}}}]),
            json!([{"external": {"current": {"averageValue": "4"}}}, {"object": {"current": {"value": "6"}}}])
        ),
        "x | Deployment/web | 4/5 (avg), 6/7 | 2 | 5 | 3 | 10m"
    );
    assert_eq!(
        scaler(json!([]), json!([])),
        "x | Deployment/web | <none> | 2 | 5 | 3 | 10m"
    );
}
