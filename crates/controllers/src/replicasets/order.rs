//! Which of several pods goes first when there are too many.

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::{ContainerStatus, Pod},
    jiff::Timestamp,
};

use crate::workloads::pods;

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Sorts pods so that those which are missed least come first. `related` are the active pods that do
/// the same work, on whatever node.
pub(crate) fn sort_for_deletion(victims: &mut [Arc<Pod>], related: &[Arc<Pod>], now: Timestamp) {
    let mut crowds: HashMap<&str, usize> = HashMap::new();
    for pod in related {
        *crowds.entry(node(pod)).or_default() += 1;
    }
    victims.sort_by_cached_key(|pod| {
        let crowd = crowds.get(node(pod)).copied().unwrap_or(0);
        rank(pod, crowd, now)
    });
}

/// What pods are compared by, one after the other. A key, and not a comparison: only so is it sure to be an order
/// for any number of pods.
fn rank(pod: &Pod, crowd: usize, now: Timestamp) -> impl Ord + use<> {
    let born = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (
        (is_assigned(pod), progress(pod), pods::is_ready(pod)),
        cost(pod),
        Reverse(crowd),
        pods::ready_since(pod).map(|since| magnitude(since, now)),
        Reverse(restarts(pod)),
        born.map(|since| magnitude(since, now)),
        pod.metadata.uid.clone(),
    )
}

fn node(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.node_name.as_deref())
        .unwrap_or_default()
}

fn is_assigned(pod: &Pod) -> bool {
    !node(pod).is_empty()
}

fn progress(pod: &Pod) -> u8 {
    match pods::phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    }
}

fn cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    let cost = annotations.and_then(|annotations| annotations.get(COST));
    cost.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Ages count by their order of magnitude only, so that who goes among equals is left to chance. The young come first.
fn magnitude(since: Timestamp, now: Timestamp) -> Option<u32> {
    pods::elapsed(since, now).as_nanos().checked_ilog2()
}

fn restarts(pod: &Pod) -> (i32, i32) {
    let most = |statuses: Option<&Vec<ContainerStatus>>| {
        let counts = statuses.into_iter().flatten().map(|one| one.restart_count);
        counts.max().unwrap_or(0)
    };
    let status = pod.status.as_ref();
    (
        most(status.and_then(|status| status.container_statuses.as_ref())),
        most(status.and_then(|status| status.init_container_statuses.as_ref())),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, node: Option<&str>, phase: &str, more: &[(&str, Value)]) -> Arc<Pod> {
        let mut value = json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [], "nodeName": node},
            "status": {"phase": phase},
        });
        for (pointer, more) in more {
            match *pointer {
                "cost" => value["metadata"]["annotations"] = json!({COST: more}),
                "ready" => {
                    value["status"]["conditions"] =
                        json!([{"type": "Ready", "status": "True", "lastTransitionTime": more}]);
                }
                "restarts" => {
                    value["status"]["containerStatuses"] = json!([
                        {"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": more},
                    ]);
                }
                "born" => value["metadata"]["creationTimestamp"] = more.clone(),
                other => panic!("{other}"),
            }
        }
        Arc::new(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn many_pods_of_about_the_same_age_have_an_order_too() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let mut pods: Vec<_> = (0..200)
            .map(|number| {
                let time = |second: u32| json!(format!("2026-01-01T00:00:{:02}Z", second % 60));
                let more = [
                    ("born", time(number * 7)),
                    ("ready", time(number * 11)),
                    ("restarts", json!(number % 3)),
                ];
                pod(
                    &format!("{:03}", number * 37 % 200),
                    Some("a"),
                    "Running",
                    &more,
                )
            })
            .collect();
        sort_for_deletion(&mut pods, &[], now);
        let once = pods.clone();
        pods.reverse();
        sort_for_deletion(&mut pods, &[], now);
        assert!(once == pods, "the order depends on the order before");
    }

    #[test]
    fn those_that_are_missed_least_go_first() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let ready = |since: &str| ("ready", json!(since));
        let old = "2026-01-01T00:00:00Z";
        let in_order = [
            pod("unassigned", None, "Pending", &[]),
            pod("pending", Some("b"), "Pending", &[]),
            pod("unknown", Some("b"), "Unknown", &[]),
            pod("restarted", Some("b"), "Running", &[("restarts", json!(3))]),
            pod(
                "young",
                Some("b"),
                "Running",
                &[("born", json!("2026-01-01T23:59:00Z"))],
            ),
            pod("unready", Some("b"), "Running", &[]),
            pod(
                "cheap",
                Some("b"),
                "Running",
                &[ready(old), ("cost", json!("-5"))],
            ),
            pod("crowded", Some("a"), "Running", &[ready(old)]),
            pod(
                "fresh",
                Some("b"),
                "Running",
                &[ready("2026-01-01T23:59:00Z")],
            ),
            pod("settled", Some("b"), "Running", &[ready(old)]),
            pod(
                "dear",
                Some("b"),
                "Running",
                &[ready(old), ("cost", json!("9"))],
            ),
        ];
        let names = |pods: &[Arc<Pod>]| -> Vec<_> {
            pods.iter()
                .map(|pod| pod.metadata.name.clone().unwrap())
                .collect()
        };
        let crowd: Vec<_> = (0..20)
            .map(|_| pod("x", Some("a"), "Running", &[]))
            .chain(in_order.clone())
            .collect();
        let mut pods: Vec<_> = in_order.iter().rev().cloned().collect();
        sort_for_deletion(&mut pods, &crowd, now);
        assert_eq!(names(&pods), names(&in_order));
    }
}
