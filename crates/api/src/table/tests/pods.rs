//! The state of a pod in one word.

use serde_json::{Value, json};

use super::{super::conditions, heads, line};

fn pod(spec: &Value, status: &Value) -> Value {
    json!({"metadata": {"name": "web"}, "spec": spec, "status": status})
}

/// Ready, status and restarts of a pod.
fn state(spec: &Value, status: &Value) -> String {
    let line = line("", "Pod", pod(spec, status));
    line.split(" | ")
        .skip(1)
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

fn running(restarts: i64, last: Option<&str>) -> Value {
    let mut status =
        json!({"name": "c", "ready": true, "restartCount": restarts, "state": {"running": {}}});
    if let Some(last) = last {
        status["lastState"] = json!({"terminated": {"finishedAt": last}});
    }
    status
}

#[test]
fn a_running_pod_shows_where_it_is() {
    assert_eq!(
        heads("", "Pod"),
        "Name | Ready | Status | Restarts | Age | IP* | Node* | Nominated Node* | Readiness Gates*"
    );
    let pod = pod(
        &json!({"containers": [{}], "nodeName": "n1", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}),
        &json!({"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
            "conditions": [{"type": "a", "status": "True"}, {"type": "b", "status": "False"}],
            "containerStatuses": [running(3, Some("2026-11-16T11:55:00Z"))]}),
    );
    assert_eq!(
        line("", "Pod", pod),
        "web | 1/1 | Running | 3 (5m ago) | 10m | 10.0.0.1 | n1 | <none> | 1/2"
    );
    assert_eq!(
        line("", "Pod", json!({"status": {"phase": "Pending"}})),
        "x | 0/0 | Pending | 0 | 10m | <none> | <none> | <none> | <none>"
    );
}

#[test]
fn the_status_of_a_pod_is_that_of_the_container_that_matters() {
    let two = json!({"containers": [{}, {}]});
    let with = |status: &Value| json!({"phase": "Running", "containerStatuses": [status, running(0, None)]});
    for (status, expected) in [
        (
            json!({"restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}),
            "1/2 CrashLoopBackOff 2",
        ),
        (
            json!({"state": {"terminated": {"reason": "Error", "exitCode": 1}}}),
            "1/2 Error 0",
        ),
        (
            json!({"state": {"terminated": {"exitCode": 3}}}),
            "1/2 ExitCode:3 0",
        ),
        (
            json!({"state": {"terminated": {"exitCode": 137, "signal": 9}}}),
            "1/2 Signal:9 0",
        ),
        (
            json!({"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}),
            "1/2 NotReady 0",
        ),
        (
            json!({"ready": false, "state": {"running": {}}}),
            "1/2 Running 0",
        ),
    ] {
        assert_eq!(state(&two, &with(&status)), expected);
    }
    let one = json!({"containers": [{}]});
    for (status, expected) in [
        (
            json!({"phase": "Failed", "reason": "Evicted"}),
            "0/1 Evicted 0",
        ),
        (
            json!({"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}]}),
            "0/1 Completed 0",
        ),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            "0/1 SchedulingGated 0",
        ),
        (
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}, running(0, None)]}),
            "1/1 Running 0",
        ),
    ] {
        assert_eq!(state(&one, &status), expected);
    }
}

#[test]
fn a_pod_that_is_being_deleted_says_so() {
    let mut terminating = pod(&json!({"containers": [{}]}), &json!({"phase": "Running"}));
    terminating["metadata"]["deletionTimestamp"] = json!("2026-11-16T11:59:00Z");
    assert!(line("", "Pod", terminating.clone()).contains("| Terminating |"));
    terminating["status"]["reason"] = json!("NodeLost");
    assert!(line("", "Pod", terminating.clone()).contains("| Unknown |"));
    terminating["status"] = json!({"phase": "Succeeded"});
    assert!(line("", "Pod", terminating).contains("| Succeeded |"));
}

#[test]
fn init_containers_and_sidecars_count() {
    let spec = json!({"containers": [{}], "initContainers": [{"name": "a"}, {"name": "s", "restartPolicy": "Always"}, {"name": "b"}]});
    let done = json!({"name": "a", "restartCount": 1, "state": {"terminated": {"exitCode": 0}}});
    let sidecar = json!({"name": "s", "ready": true, "started": true, "restartCount": 4, "state": {"running": {}}});
    for (statuses, expected) in [
        (json!([done]), "0/2 Pending 0"),
        (
            json!([{"name": "a", "state": {"running": {}}}]),
            "0/2 Init:0/3 0",
        ),
        (
            json!([done, {"name": "s", "state": {"waiting": {"reason": "PodInitializing"}}}]),
            "0/2 Init:1/3 1",
        ),
        (
            json!([done, sidecar, {"name": "b", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]),
            "1/2 Init:ImagePullBackOff 5",
        ),
        (
            json!([done, sidecar, {"name": "b", "state": {"terminated": {"exitCode": 2}}}]),
            "1/2 Init:ExitCode:2 5",
        ),
        (
            json!([done, sidecar, {"name": "b", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]),
            "1/2 Init:Error 5",
        ),
    ] {
        let status = json!({"phase": "Pending", "initContainerStatuses": statuses});
        assert_eq!(state(&spec, &status), expected, "{statuses}");
    }
    let status = json!({"phase": "Running", "containerStatuses": [running(1, None)],
        "initContainerStatuses": [done, sidecar, {"name": "b", "state": {"terminated": {"exitCode": 0}}}]});
    assert_eq!(state(&spec, &status), "2/2 Running 5");
}

#[test]
fn pods_that_are_done_have_a_condition_in_their_row() {
    let done = json!({"status": {"phase": "Failed"}});
    assert_eq!(
        conditions("", "Pod", &done),
        [
            json!({"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."})
        ]
    );
    assert!(conditions("", "Pod", &json!({"status": {"phase": "Running"}})).is_empty());
    assert!(conditions("batch", "Job", &done).is_empty());
}
