//! Rates are of the time between two passes, or of a short life.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1;
use serde_json::json;
use transom_runtime::{
    Container, ContainerId, ContainerState, ContainerStats, Cpu, Pod, PodId, PodState, PodStats,
};

use super::{PodFigures, Work, measure::of_pod};

const SECOND: u64 = 1_000_000_000;

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_millis(milliseconds)
}

fn nanocores(work: Work) -> Option<u64> {
    work.rate.map(|rate| rate.nanocores)
}

#[test]
fn a_rate_is_what_was_done_since_the_pass_before() {
    let first = Work::counted(5 * SECOND, at(100_000), None, None);
    assert_eq!(nanocores(first), None);
    let second = Work::counted(8 * SECOND, at(110_000), None, Some(&first));
    assert_eq!(nanocores(second), Some(300_000_000));
    assert_eq!(second.rate.unwrap().window_nanoseconds, 10 * SECOND);
}

#[test]
fn who_began_a_short_while_ago_is_compared_with_nothing() {
    let young = Work::counted(SECOND, at(102_000), Some(at(100_000)), None);
    assert_eq!(nanocores(young), Some(500_000_000));
    let old = Work::counted(SECOND, at(200_000), Some(at(100_000)), None);
    assert_eq!(nanocores(old), None);
    let newborn = Work::counted(SECOND, at(100_100), Some(at(100_000)), None);
    assert_eq!(nanocores(newborn), None);
}

#[test]
fn counters_that_go_back_give_no_rate_and_passes_in_one_moment_keep_it() {
    let before = Work::counted(5 * SECOND, at(102_000), Some(at(100_000)), None);
    let back = Work::counted(SECOND, at(112_000), Some(at(60_000)), Some(&before));
    assert_eq!(nanocores(back), None);
    let same = Work::counted(6 * SECOND, at(102_000), Some(at(100_000)), Some(&before));
    assert_eq!(nanocores(same), nanocores(before));
    let behind = Work::counted(6 * SECOND, at(101_000), Some(at(100_000)), Some(&before));
    assert_eq!(nanocores(behind), nanocores(before));
}

#[test]
fn a_sum_without_one_of_its_rates_has_none() {
    let with = Work::counted(SECOND, at(2_000), Some(at(0)), None);
    let without = Work::counted(SECOND, at(2_000), None, None);
    let sum = |all: &[Work]| Work::sum(all.iter().copied());
    assert_eq!(sum(&[with, with]).and_then(nanocores), Some(SECOND));
    assert_eq!(sum(&[with, without]).and_then(nanocores), None);
    assert_eq!(sum(&[with, without]).unwrap().done, 2 * SECOND);
    assert_eq!(sum(&[]), None);
}

fn measured(id: &str, taken: i64, used: u64, before: Option<&PodFigures>) -> PodFigures {
    let object: v1::Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"memory": "1Ki"}}}]},
    }))
    .unwrap();
    let container = |id: &str, state| Container {
        id: ContainerId(id.to_owned()),
        pod: PodId("s".to_owned()),
        name: "c".to_owned(),
        attempt: 0,
        image: String::new(),
        image_name: String::new(),
        created: at(0),
        state,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        log_path: "l".into(),
    };
    let sandbox = Pod {
        id: PodId("s".to_owned()),
        uid: "u".to_owned(),
        namespace: "n".to_owned(),
        name: "p".to_owned(),
        attempt: 0,
        state: PodState::Ready,
        created: at(0),
        addresses: Vec::new(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        containers: vec![
            container("created", ContainerState::Created),
            container(id, ContainerState::Running { started: at(0) }),
        ],
    };
    let stats = |name: &str| ContainerStats {
        name: name.to_owned(),
        cpu: Some(Cpu {
            used_nanoseconds: used,
        }),
        memory: None,
        writable: None,
        logs: None,
    };
    let stats = PodStats {
        pod: PodId("s".to_owned()),
        taken: at(taken),
        containers: vec![stats("c"), stats("gone")],
        network: None,
        processes: None,
    };
    of_pod(&object, &sandbox, stats, before)
}

#[test]
fn a_container_that_was_replaced_is_not_compared_with_the_one_before() {
    let first = measured("a", 100_000, SECOND, None);
    let [one] = first.containers.as_slice() else {
        panic!("{first:?}");
    };
    assert_eq!(
        (one.memory_limit, nanocores(one.work.unwrap())),
        (Some(1024), None)
    );
    let same = measured("a", 110_000, 6 * SECOND, Some(&first));
    assert_eq!(same.work().and_then(nanocores), Some(SECOND / 2));
    let other = measured("b", 110_000, 6 * SECOND, Some(&first));
    assert_eq!(other.work().and_then(nanocores), None);
    assert_eq!(other.working_set(), None);
}
