//! Tests of what may change in a pod.

use super::*;

#[test]
fn an_unchanged_pod_may_be_written_again() {
    let pod = with_spec(&json!({}));
    assert_eq!(update(&pod, &pod), Vec::<String>::new());
}

#[test]
fn images_deadlines_and_new_tolerations_may_change() {
    let old = with_spec(&json!({"activeDeadlineSeconds": 50}));
    let new = changed(
        old.clone(),
        &json!({"spec": {
            "containers": [{"name": "c", "image": "nginx:1"}],
            "activeDeadlineSeconds": 40,
            "tolerations": [{"key": "a", "operator": "Exists"}],
        }}),
    );
    let mut new = new;
    new["spec"]["containers"][0]["image"] = json!("nginx:2");
    assert_eq!(update(&new, &old), Vec::<String>::new());
}

#[test]
fn anything_else_is_refused_with_the_long_sentence() {
    let old = with_spec(&json!({}));
    let mut new = old.clone();
    new["spec"]["hostname"] = json!("other");
    let faults = update(&new, &old);
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].starts_with(
            "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
        ),
        "{}",
        faults[0]
    );
    assert!(faults[0].contains("+ hostname: \"other\""), "{}", faults[0]);
}

#[test]
fn small_rules_of_updates() {
    let cases = [
        (
            json!({"activeDeadlineSeconds": 5}),
            json!({"activeDeadlineSeconds": 6}),
            "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value",
        ),
        (
            json!({"tolerations": [{"key": "a", "operator": "Exists"}]}),
            json!({"tolerations": []}),
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
        ),
        (
            json!({}),
            json!({"schedulingGates": [{"name": "g"}]}),
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'",
        ),
        (
            json!({}),
            json!({"containers": [{"name": "c", "image": "a:1"}, {"name": "d", "image": "a:1"}]}),
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            json!({"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}}),
            json!({"nodeSelector": {"a": "c"}}),
            "spec.nodeSelector: Invalid value: {\"a\":\"c\"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        ),
    ];
    for (before, patch, expected) in cases {
        let old = with_spec(&before);
        let new = changed(old.clone(), &json!({"spec": patch}));
        assert_eq!(update(&new, &old), [expected], "{patch}");
    }
}

#[test]
fn a_gated_pod_may_become_choosier() {
    let old = with_spec(&json!({"schedulingGates": [{"name": "g"}]}));
    let new = changed(
        old.clone(),
        &json!({"spec": {"schedulingGates": [], "nodeSelector": {"a": "b"}}}),
    );
    assert_eq!(update(&new, &old), Vec::<String>::new());
}

#[test]
fn a_negative_grace_period_may_become_one() {
    let old = with_spec(&json!({"terminationGracePeriodSeconds": -5}));
    let new = with_spec(&json!({"terminationGracePeriodSeconds": 1}));
    assert_eq!(update(&new, &old), Vec::<String>::new());
}

#[test]
fn ephemeral_containers_come_and_stay() {
    let old = with_spec(&json!({"ephemeralContainers": [{"name": "d", "image": "a:1"}]}));
    let more = with_spec(&json!({"ephemeralContainers": [
        {"name": "d", "image": "a:1"},
        {"name": "e", "image": "a:1", "targetContainerName": "c"},
    ]}));
    let check = |new: &Value, old: &Value| {
        texts(&validation::subresource(
            "Pod",
            "ephemeralcontainers",
            new,
            old,
        ))
    };
    assert_eq!(check(&more, &old), Vec::<String>::new());
    assert_eq!(
        check(&with_spec(&json!({})), &old),
        [
            "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"d\" may not be removed\n"
        ]
    );
    let probing = with_spec(&json!({"ephemeralContainers": [
        {"name": "d", "image": "a:1", "livenessProbe": {"exec": {"command": ["a"]}}}
    ]}));
    assert!(
        check(&probing, &with_spec(&json!({}))).contains(
            &"spec.ephemeralContainers[0].livenessProbe: Forbidden: cannot be set for an Ephemeral Container".to_owned()
        )
    );
}

#[test]
fn resizing_changes_processor_and_memory_only() {
    let with = |cpu: &str| {
        with_container(&json!({"resources": {
            "requests": {"cpu": cpu, "memory": "1Gi"},
            "limits": {"cpu": "4", "memory": "2Gi"},
        }}))
    };
    let old = with("1");
    let check = |new: &Value| texts(&validation::subresource("Pod", "resize", new, &old));
    assert_eq!(check(&with("2")), Vec::<String>::new());
    let mut other = with("2");
    other["spec"]["hostname"] = json!("x");
    assert_eq!(
        check(&other),
        ["spec: Forbidden: only cpu and memory resources are mutable"]
    );
    let mut best_effort = with("2");
    best_effort["spec"]["containers"][0]["resources"] = json!({});
    assert_eq!(
        check(&best_effort),
        [
            "spec: Invalid value: \"\": Pod QOS Class may not change as a result of resizing",
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
            "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
        ]
    );
}

#[test]
fn a_container_that_ended_does_not_run_again() {
    let mut old = with_spec(&json!({"restartPolicy": "Never"}));
    old["status"] =
        json!({"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]});
    let mut new = old.clone();
    new["status"]["containerStatuses"][0]["state"] = json!({"running": {}});
    assert_eq!(
        texts(&validation::status("", "Pod", &new, &old)),
        [
            "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
        ]
    );
}

#[test]
fn a_binding_names_a_node() {
    let faults = validation::subresource(
        "Pod",
        "binding",
        &json!({"target": {"kind": "Pod"}}),
        &Value::Null,
    );
    assert_eq!(
        texts(&faults),
        [
            r#"target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>""#,
            "target.name: Required value",
        ]
    );
}
