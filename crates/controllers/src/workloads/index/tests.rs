//! What the watch tells and what we did ourselves, in all orders.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::*;

fn pod(name: &str, version: u64, owner: Option<&str>) -> Pod {
    let owners = owner.map(|uid| {
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": uid, "controller": true}])
    });
    let metadata = json!({
        "namespace": "n", "name": name, "uid": name, "resourceVersion": version.to_string(),
        "ownerReferences": owners,
    });
    serde_json::from_value(json!({"metadata": metadata})).unwrap()
}

fn names(pods: &[Arc<Pod>]) -> Vec<String> {
    pods.iter().map(|pod| pod.name_any()).collect()
}

#[test]
fn what_we_made_is_known_before_the_watch_tells_it() {
    let index = Index::new();
    index.take(Event::Apply(pod("a", 5, Some("u"))));
    index.note(pod("b", 6, Some("u")));
    assert_eq!(names(&index.owned_by("u")), ["a", "b"]);
}

#[test]
fn an_answer_that_comes_after_the_watch_told_the_end_is_nothing() {
    let index = Index::new();
    index.take(Event::Apply(pod("a", 5, Some("u"))));
    index.take(Event::Delete(pod("a", 6, Some("u"))));
    index.note(pod("a", 5, Some("u")));
    assert_eq!(names(&index.owned_by("u")), [""; 0]);
}

#[test]
fn what_we_deleted_stays_terminating_though_old_news_come() {
    let index = Index::new();
    let key = Key::new("n", "a");
    index.take(Event::Apply(pod("a", 5, Some("u"))));
    index.note_deletion(&key, Some("other"), Timestamp::UNIX_EPOCH);
    assert!(
        index
            .get(&key)
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
    );
    index.note_deletion(&key, Some("a"), Timestamp::UNIX_EPOCH);
    index.take(Event::Apply(pod("a", 6, Some("u"))));
    assert!(
        index
            .get(&key)
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_some()
    );
}

#[test]
fn an_object_changes_its_owner() {
    let index = Index::new();
    index.take(Event::Apply(pod("a", 5, None)));
    assert_eq!(names(&index.ownerless("n")), ["a"]);
    index.take(Event::Apply(pod("a", 6, Some("u"))));
    assert_eq!(names(&index.ownerless("n")), [""; 0]);
    assert_eq!(names(&index.owned_by("u")), ["a"]);
    assert_eq!(names(&index.within("n")), ["a"]);
}

#[test]
fn a_new_list_takes_away_what_it_lacks_but_not_what_we_just_made() {
    let index = Index::new();
    index.take(Event::Apply(pod("a", 5, None)));
    index.take(Event::Apply(pod("b", 6, None)));
    index.note(pod("c", 9, None));
    index.take(Event::Init);
    index.take(Event::InitApply(pod("b", 6, None)));
    let gone = index.take(Event::InitDone);
    assert_eq!(gone.len(), 1);
    assert_eq!(names(&index.within("n")), ["b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_watch_never_confirms_is_forgotten() {
    let index = Index::new();
    index.note(pod("a", 5, None));
    assert!(index.get(&Key::new("n", "a")).is_some());
    tokio::time::advance(UNCONFIRMED + Duration::from_secs(1)).await;
    assert!(index.get(&Key::new("n", "a")).is_none());
}
