//! The ledger is true to what the watch tells, in whatever order that is.

use serde_json::{Value, json};

use super::*;

fn ledger(nodes: usize) -> Ledger {
    Ledger::new((0..nodes).map(|number| format!("n{number}")))
}

fn pod(name: &str, uid: &str, more: &Value) -> SeenPod {
    let mut pod = json!({"metadata": {"name": name, "uid": uid}});
    for (key, value) in more.as_object().into_iter().flatten() {
        if key == "metadata" {
            for (key, value) in value.as_object().into_iter().flatten() {
                pod["metadata"][key] = value.clone();
            }
        } else {
            pod[key] = value.clone();
        }
    }
    serde_json::from_value(pod).unwrap()
}

fn bound() -> Value {
    json!({"spec": {"nodeName": "n0"}})
}

fn running() -> Value {
    json!({"spec": {"nodeName": "n0"}, "status": {"phase": "Running"}})
}

fn going() -> Value {
    json!({
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeName": "n0"},
        "status": {"phase": "Running"},
    })
}

fn kind(errand: Option<Errand>) -> Option<ErrandKind> {
    errand.map(|errand| errand.kind)
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_started_once_and_stopped_once_and_its_times_are_kept() {
    let ledger = ledger(1);
    let see = |state: &Value| kind(ledger.see(&pod("a", "1", state), Instant::now()));
    assert_eq!(see(&json!({})), None);
    tokio::time::advance(Duration::from_millis(5)).await;
    assert_eq!(see(&bound()), Some(ErrandKind::Start));
    assert_eq!(see(&bound()), None);
    tokio::time::advance(Duration::from_millis(7)).await;
    assert_eq!(see(&running()), None);
    assert_eq!(ledger.counts().running, 1);
    assert_eq!(see(&going()), Some(ErrandKind::Stop));
    assert_eq!(see(&going()), None);
    let wanted = Counts {
        going: 1,
        ..Counts::default()
    };
    assert_eq!(ledger.counts(), wanted);
    ledger.forget(&pod("a", "1", &json!({})));
    assert_eq!(ledger.counts(), Counts::default());
    let times = ledger.take_times();
    assert_eq!(times.to_bound, [Duration::from_millis(5)]);
    assert_eq!(times.to_running, [Duration::from_millis(12)]);
    assert!(ledger.take_times().to_bound.is_empty());
}

#[test]
fn another_pod_of_the_same_name_is_another_pod() {
    let ledger = ledger(1);
    ledger.see(&pod("a", "1", &running()), Instant::now());
    let errand = ledger.see(&pod("a", "2", &bound()), Instant::now());
    assert_eq!(errand.map(|errand| errand.uid).as_deref(), Some("2"));
    let counts = ledger.counts();
    assert_eq!((counts.pods, counts.bound, counts.running), (1, 1, 0));
}

#[test]
fn who_is_not_on_the_list_is_gone() {
    let ledger = ledger(1);
    ledger.begin_list();
    for name in ["a", "b"] {
        ledger.see(&pod(name, name, &running()), Instant::now());
    }
    ledger.end_list();
    assert_eq!(ledger.counts().pods, 2);
    ledger.begin_list();
    ledger.see(&pod("b", "b", &running()), Instant::now());
    ledger.end_list();
    assert_eq!(ledger.counts().pods, 1);
    assert_eq!(ledger.choose(17).as_deref(), Some("b"));
}

#[test]
fn a_node_that_fell_does_nothing_until_it_is_back() {
    let ledger = ledger(2);
    ledger.see(&pod("a", "1", &running()), Instant::now());
    ledger.see(&pod("b", "2", &running()), Instant::now());
    ledger.lose(&[0]);
    assert_eq!(ledger.counts().running, 0);
    assert_eq!(
        kind(ledger.see(&pod("a", "1", &going()), Instant::now())),
        None
    );
    assert_eq!(ledger.on_nodes(&[0]), ["b"]);
    assert!(ledger.on_nodes(&[1]).is_empty());
    let mut errands = ledger.revive(&[0]);
    errands.sort_by(|one, other| one.name.cmp(&other.name));
    let errands: Vec<_> = errands
        .iter()
        .map(|errand| (&*errand.name, errand.kind))
        .collect();
    assert_eq!(errands, [("a", ErrandKind::Stop), ("b", ErrandKind::Start)]);
    assert_eq!(ledger.counts().running, 1);
}

#[test]
fn those_to_choose_from_are_those_that_run_and_each_is_chosen_once() {
    let ledger = ledger(1);
    assert_eq!(ledger.choose(3), None);
    for name in ["a", "b", "c"] {
        ledger.see(&pod(name, name, &running()), Instant::now());
    }
    ledger.see(&pod("a", "a", &going()), Instant::now());
    ledger.forget(&pod("c", "c", &json!({})));
    ledger.see(&pod("d", "d", &running()), Instant::now());
    assert_eq!(ledger.choose(2).as_deref(), Some("b"));
    ledger.see(&pod("b", "b", &running()), Instant::now());
    assert_eq!(ledger.choose(6).as_deref(), Some("d"));
    assert_eq!(ledger.choose(6), None);
    // Those that were chosen are as good as gone, also if their watch does not know it yet.
    let counts = ledger.counts();
    assert_eq!((counts.running, counts.going), (0, 3));
}

#[test]
fn pods_of_the_new_revision_are_counted_apart() {
    let ledger = ledger(1);
    let new = json!({
        "metadata": {"labels": {REVISION: "new"}},
        "spec": {"nodeName": "n0"},
        "status": {"phase": "Running"},
    });
    ledger.see(&pod("a", "1", &new), Instant::now());
    ledger.see(&pod("b", "2", &running()), Instant::now());
    let counts = ledger.counts();
    assert_eq!((counts.running, counts.upgraded), (2, 1));
}
