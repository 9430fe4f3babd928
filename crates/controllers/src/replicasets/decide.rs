//! Decides how many pods a set lacks or has too many, and what its status says.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{api::core::v1::Pod, jiff::Timestamp};

use super::order::sort_for_deletion;
use crate::workloads::{pods, requests::BURST};

/// What a set wants.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) replicas: i32,
    pub(super) min_ready_seconds: i32,
    pub(super) template_labels: Option<&'a BTreeMap<String, String>>,
    pub(super) is_going: bool,
}

/// What to do about the pods of a set.
#[derive(Debug)]
pub(super) enum Step {
    Nothing,
    Create(usize),
    Delete(Vec<Arc<Pod>>),
}

/// How many pods a set has, by what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(super) replicas: i32,
    pub(super) fully_labeled: i32,
    pub(super) ready: i32,
    pub(super) available: i32,
    pub(super) terminating: i32,
}

/// What to do next. `related` gives the active pods that do the same work; it is asked only if some
/// must go.
pub(super) fn plan_step(
    wanted: &Wanted,
    owned: &[Arc<Pod>],
    related: impl FnOnce() -> Vec<Arc<Pod>>,
    now: Timestamp,
) -> Step {
    if wanted.is_going {
        return Step::Nothing;
    }
    let mut active: Vec<_> = owned
        .iter()
        .filter(|pod| pods::is_active(pod))
        .cloned()
        .collect();
    let replicas = usize::try_from(wanted.replicas).unwrap_or(0);
    if active.len() < replicas {
        return Step::Create((replicas - active.len()).min(BURST));
    }
    let surplus = (active.len() - replicas).min(BURST);
    if surplus == 0 {
        return Step::Nothing;
    }
    if surplus < active.len() {
        sort_for_deletion(&mut active, &related(), now);
    }
    active.truncate(surplus);
    Step::Delete(active)
}

pub(super) fn count(wanted: &Wanted, owned: &[Arc<Pod>], now: Timestamp) -> Counts {
    let mut counts = Counts::default();
    for pod in owned {
        counts.terminating += i32::from(pods::is_terminating(pod));
        if !pods::is_active(pod) {
            continue;
        }
        counts.replicas += 1;
        counts.fully_labeled += i32::from(has_labels(pod, wanted.template_labels));
        counts.ready += i32::from(pods::is_ready(pod));
        counts.available += i32::from(pods::is_available(pod, wanted.min_ready_seconds, now));
    }
    counts
}

/// When the next pod will have been ready for long enough.
pub(super) fn until_next_available(
    wanted: &Wanted,
    owned: &[Arc<Pod>],
    now: Timestamp,
) -> Option<Duration> {
    let waiting = owned.iter().filter(|pod| pods::is_active(pod));
    waiting
        .filter_map(|pod| pods::until_available(pod, wanted.min_ready_seconds, now))
        .filter(|left| !left.is_zero())
        .min()
}

fn has_labels(pod: &Pod, wanted: Option<&BTreeMap<String, String>>) -> bool {
    let labels = pod.metadata.labels.as_ref();
    let mut wanted = wanted.into_iter().flatten();
    wanted.all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, phase: &str, ready: Option<&str>, is_going: bool) -> Arc<Pod> {
        let conditions = ready
            .map(|since| json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]));
        let going = is_going.then_some("2026-01-01T00:00:00Z");
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": name, "labels": {"a": "1"}, "deletionTimestamp": going},
                "status": {"phase": phase, "conditions": conditions},
            }))
            .unwrap(),
        )
    }

    fn wanted(replicas: i32) -> Wanted<'static> {
        Wanted {
            replicas,
            min_ready_seconds: 10,
            template_labels: None,
            is_going: false,
        }
    }

    fn now() -> Timestamp {
        "2026-01-01T00:01:00Z".parse().unwrap()
    }

    #[test]
    fn pods_that_are_over_or_going_are_replaced() {
        let pods = [
            pod("a", "Running", None, false),
            pod("b", "Failed", None, false),
            pod("c", "Running", None, true),
        ];
        let step = plan_step(&wanted(3), &pods, Vec::new, now());
        assert!(matches!(step, Step::Create(2)), "{step:?}");
        let step = plan_step(&wanted(1), &pods, Vec::new, now());
        assert!(matches!(step, Step::Nothing), "{step:?}");
    }

    #[test]
    fn the_pod_that_is_missed_least_goes() {
        let pods = [
            pod("a", "Running", Some("2026-01-01T00:00:00Z"), false),
            pod("b", "Pending", None, false),
        ];
        let Step::Delete(victims) = plan_step(&wanted(1), &pods, || pods.to_vec(), now()) else {
            panic!();
        };
        assert_eq!(victims[0].metadata.name.as_deref(), Some("b"));
        assert_eq!(victims.len(), 1);
    }

    #[test]
    fn one_look_asks_for_a_bounded_number_of_pods() {
        let step = plan_step(&wanted(i32::MAX), &[], Vec::new, now());
        assert!(matches!(step, Step::Create(BURST)), "{step:?}");
        let step = plan_step(&wanted(-1), &[], Vec::new, now());
        assert!(matches!(step, Step::Nothing), "{step:?}");
    }

    #[test]
    fn a_set_on_its_way_out_does_nothing() {
        let wanted = Wanted {
            is_going: true,
            ..wanted(3)
        };
        assert!(matches!(
            plan_step(&wanted, &[], Vec::new, now()),
            Step::Nothing
        ));
    }

    #[test]
    fn pods_are_counted_by_what_they_are() {
        let labels = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        let wanted = Wanted {
            template_labels: Some(&labels),
            ..wanted(3)
        };
        let pods = [
            pod("a", "Running", Some("2026-01-01T00:00:00Z"), false),
            pod("b", "Running", Some("2026-01-01T00:00:58Z"), false),
            pod("c", "Pending", None, false),
            pod("d", "Running", None, true),
            pod("e", "Succeeded", None, false),
        ];
        let counts = Counts {
            replicas: 3,
            fully_labeled: 3,
            ready: 2,
            available: 1,
            terminating: 1,
        };
        assert_eq!(count(&wanted, &pods, now()), counts);
        assert_eq!(
            until_next_available(&wanted, &pods, now()),
            Some(Duration::from_secs(8))
        );
    }
}
