//! Tests of limit ranges and quotas.

use super::*;

fn with_range(limit: &Value) -> World {
    let mut world = World::new();
    world.add(
        "",
        "LimitRange",
        &json!({
            "metadata": {"name": "range", "namespace": "default"},
            "spec": {"limits": [limit]},
        }),
    );
    world
}

fn resources(resources: &Value) -> Attributes {
    pod(&json!({"containers": [{"name": "c", "image": "i:1", "resources": resources}]}))
}

#[test]
fn a_container_that_asks_for_nothing_gets_the_default() {
    let world = with_range(&json!({
        "type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1", "memory": "1Gi"},
    }));
    let mut request = resources(&json!({"requests": {"memory": "2Gi"}}));
    world.run(&mut request).expect("accepted");
    assert_eq!(
        request.object["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "2Gi"}})
    );
    assert_eq!(
        request.object["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
}

#[test]
fn bounds_have_upstreams_sentences() {
    let cases = [
        (
            json!({"type": "Container", "max": {"cpu": "1"}}),
            json!({"limits": {"cpu": "2"}}),
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            json!({"type": "Container", "max": {"cpu": "1"}}),
            json!({}),
            "maximum cpu usage per Container is 1.  No limit is specified",
        ),
        (
            json!({"type": "Container", "min": {"memory": "1Gi"}}),
            json!({"requests": {"memory": "100Mi"}}),
            "minimum memory usage per Container is 1Gi, but request is 100Mi",
        ),
        (
            json!({"type": "Pod", "max": {"cpu": "1"}}),
            json!({"limits": {"cpu": "2"}}),
            "maximum cpu usage per Pod is 1, but limit is 2",
        ),
        (
            json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}),
            json!({"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            json!({"type": "Container", "min": {"cpu": "1"}, "max": {"memory": "1"}}),
            json!({}),
            "[minimum cpu usage per Container is 1.  No request is specified, maximum memory usage per Container is 1.  No limit is specified]",
        ),
    ];
    for (limit, asked, expected) in cases {
        assert_eq!(
            with_range(&limit).refused(&mut resources(&asked)),
            format!("pods \"p\" is forbidden: {expected}")
        );
    }
}

#[test]
fn storage_has_bounds_too() {
    let world = with_range(&json!({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}));
    let mut request = create(
        "",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        json!({
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"resources": {"requests": {"storage": "2Gi"}}},
        }),
    );
    assert_eq!(
        world.refused(&mut request),
        "persistentvolumeclaims \"data\" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    );
}

fn with_quota(spec: &Value, status: &Value) -> World {
    let mut world = World::new();
    world.add(
        "",
        "ResourceQuota",
        &json!({
            "metadata": {"name": "q", "namespace": "default", "resourceVersion": "41"},
            "spec": spec,
            "status": status,
        }),
    );
    world
}

#[test]
fn a_full_quota_refuses_with_upstreams_sentence() {
    let world = with_quota(
        &json!({"hard": {"pods": "2"}}),
        &json!({"hard": {"pods": "2"}, "used": {"pods": "2"}}),
    );
    assert_eq!(
        world.refused(&mut pod(&json!({}))),
        "pods \"p\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
    );
}

#[test]
fn what_is_accepted_counts_on_the_version_that_was_seen() {
    let world = with_quota(
        &json!({"hard": {"pods": "2", "requests.cpu": "2"}}),
        &json!({"used": {"pods": "1", "requests.cpu": "500m"}}),
    );
    let outcome = world
        .run(&mut resources(&json!({"requests": {"cpu": "1"}})))
        .expect("accepted");
    let change = &outcome.quotas[0];
    assert_eq!(
        (change.name.as_str(), change.resource_version.as_str()),
        ("q", "41")
    );
    assert_eq!(
        change.status,
        json!({
            "hard": {"pods": "2", "requests.cpu": "2"},
            "used": {"pods": "2", "requests.cpu": "1500m"},
        })
    );
}

#[test]
fn a_trial_counts_nothing() {
    let world = with_quota(&json!({"hard": {"pods": "2"}}), &json!({}));
    let mut request = pod(&json!({}));
    request.dry_run = true;
    assert_eq!(world.run(&mut request).expect("accepted").quotas, []);
}

#[test]
fn a_quota_that_was_never_counted_is_counted_now() {
    let mut world = with_quota(&json!({"hard": {"pods": "1"}}), &json!({}));
    world.add(
        "",
        "Pod",
        &json!({"metadata": {"name": "other", "namespace": "default"}}),
    );
    world.add("", "Pod", &json!({"metadata": {"name": "done", "namespace": "default"}, "status": {"phase": "Succeeded"}}));
    assert_eq!(
        world.refused(&mut pod(&json!({}))),
        "pods \"p\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    );
}

#[test]
fn where_resources_are_limited_pods_must_say_what_they_need() {
    let world = with_quota(
        &json!({"hard": {"limits.cpu": "2", "memory": "1Gi"}}),
        &json!({}),
    );
    assert_eq!(
        world.refused(&mut pod(&json!({}))),
        "pods \"p\" is forbidden: failed quota: q: must specify limits.cpu for: c; memory for: c"
    );
}

#[test]
fn scopes_choose_pods() {
    let spec = |scope: &str| json!({"hard": {"pods": "0"}, "scopes": [scope]});
    let guaranteed = json!({"limits": {"cpu": "1", "memory": "1"}});
    let cases = [
        ("BestEffort", resources(&json!({})), true),
        ("BestEffort", resources(&guaranteed), false),
        ("NotBestEffort", resources(&guaranteed), true),
        (
            "Terminating",
            pod(&json!({"activeDeadlineSeconds": 5})),
            true,
        ),
        ("Terminating", pod(&json!({})), false),
        ("NotTerminating", pod(&json!({})), true),
    ];
    for (scope, mut request, refused) in cases {
        let result = with_quota(&spec(scope), &json!({})).run(&mut request);
        assert_eq!(result.is_err(), refused, "{scope}");
    }
}

#[test]
fn a_scope_can_name_priorities() {
    let spec = json!({"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]},
    ]}});
    let world = with_quota(&spec, &json!({}));
    assert!(world.run(&mut pod(&json!({}))).is_ok());
    assert!(
        world
            .run(&mut pod(
                &json!({"priorityClassName": "system-node-critical"})
            ))
            .is_err()
    );
}

#[test]
fn any_kind_can_be_counted() {
    let world = with_quota(
        &json!({"hard": {"count/deployments.apps": "0", "configmaps": "0"}}),
        &json!({}),
    );
    let mut deployment = create(
        "apps",
        "Deployment",
        "deployments",
        json!({"metadata": {"name": "d", "namespace": "default"}}),
    );
    assert_eq!(
        world.refused(&mut deployment),
        "deployments.apps \"d\" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, used: count/deployments.apps=0, limited: count/deployments.apps=0"
    );
    let mut map = create(
        "",
        "ConfigMap",
        "configmaps",
        json!({"metadata": {"name": "m", "namespace": "default"}}),
    );
    assert!(world.run(&mut map).is_err());
    let mut secret = create(
        "",
        "Secret",
        "secrets",
        json!({"metadata": {"name": "s", "namespace": "default"}}),
    );
    assert!(world.run(&mut secret).is_ok());
}

#[test]
fn a_service_that_changes_its_type_counts_the_difference() {
    let world = with_quota(
        &json!({"hard": {"services": "1", "services.nodeports": "1"}}),
        &json!({"used": {"services": "1", "services.nodeports": "0"}}),
    );
    let service = |kind: &str, ports: &Value| json!({"metadata": {"name": "s", "namespace": "default"}, "spec": {"type": kind, "ports": ports}});
    let change = |ports: &Value| {
        let mut request = request(
            Operation::Update,
            "",
            "Service",
            "services",
            service("NodePort", ports),
        );
        request.old = Some(Arc::new(service("ClusterIP", ports)));
        request
    };
    let outcome = world
        .run(&mut change(&json!([{"port": 1}])))
        .expect("accepted");
    assert_eq!(
        outcome.quotas[0].status["used"],
        json!({"services": "1", "services.nodeports": "1"})
    );
    assert!(
        world
            .run(&mut change(&json!([{"port": 1}, {"port": 2}])))
            .is_err()
    );
}
