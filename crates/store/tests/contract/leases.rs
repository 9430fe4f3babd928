//! Keys that go when somebody does not come back.

use std::time::Duration;

use transom_store::{LeaseId, Revision, StoreError, Transaction, Watch, Write};

use crate::support::{Shared, commit, delete, events_until, keys, list, put, put_write, writes};

const SHORT: Duration = Duration::from_secs(6);
const LONG: Duration = Duration::from_mins(10);

fn put_under(lease: LeaseId, key: &str) -> Write {
    Write::Put {
        key: key.to_owned(),
        value: "leased".into(),
        lease: Some(lease),
    }
}

fn under(lease: LeaseId, keys: &[&str]) -> Transaction {
    writes(keys.iter().map(|key| put_under(lease, key)))
}

async fn deleted(watch: &mut Watch, revision: Revision) -> Vec<String> {
    let events = events_until(watch, revision).await;
    assert!(events.iter().all(|event| event.current.is_none()));
    assert!(events.iter().all(|event| event.previous.is_some()));
    assert!(events.iter().all(|event| event.revision == revision));
    let mut keys: Vec<_> = events.iter().map(|event| event.key.to_string()).collect();
    keys.sort();
    keys
}

pub(crate) async fn keys_go_with_their_lease(store: Shared) {
    put(&store, "l/stays", "1").await;
    let lease = store.grant(SHORT).await.unwrap();
    let revision = commit(&store, under(lease, &["l/a", "l/b"])).await;
    let entry = store.get("l/a").await.unwrap().unwrap();
    assert_eq!(entry.lease, Some(lease));
    let mut watch = store.watch("l/", revision).await.unwrap();
    let gone = deleted(&mut watch, Revision(revision.0 + 1)).await;
    assert_eq!(gone, ["l/a", "l/b"]);
    assert_eq!(keys(&list(&store, "l/", None).await.entries), ["l/stays"]);
    let error = store.renew(lease).await.unwrap_err();
    assert!(matches!(error, StoreError::NoLease(ended) if ended == lease));
}

pub(crate) async fn a_renewed_lease_stays(store: Shared) {
    let renewed = store.grant(SHORT).await.unwrap();
    let revision = commit(&store, under(renewed, &["r/renewed"])).await;
    for _ in 0..4 {
        tokio::time::sleep(SHORT / 3).await;
        store.renew(renewed).await.unwrap();
    }
    assert!(store.get("r/renewed").await.unwrap().is_some());
    let mut watch = store.watch("r/", revision).await.unwrap();
    let gone = deleted(&mut watch, Revision(revision.0 + 1)).await;
    assert_eq!(gone, ["r/renewed"]);
}

pub(crate) async fn a_revoked_lease_takes_its_keys_at_once(store: Shared) {
    let lease = store.grant(LONG).await.unwrap();
    let other = store.grant(LONG).await.unwrap();
    assert_ne!(lease, other);
    commit(&store, under(lease, &["v/a", "v/b"])).await;
    let revision = commit(&store, under(other, &["v/other"])).await;
    let mut watch = store.watch("v/", revision).await.unwrap();
    store.revoke(lease).await.unwrap();
    assert_eq!(keys(&list(&store, "v/", None).await.entries), ["v/other"]);
    let gone = deleted(&mut watch, Revision(revision.0 + 1)).await;
    assert_eq!(gone, ["v/a", "v/b"]);
    store.revoke(other).await.unwrap();
}

pub(crate) async fn a_key_leaves_its_lease_when_it_is_written_again(store: Shared) {
    let lease = store.grant(LONG).await.unwrap();
    let other = store.grant(LONG).await.unwrap();
    commit(
        &store,
        under(lease, &["k/free", "k/moved", "k/gone", "k/kept"]),
    )
    .await;
    put(&store, "k/free", "free").await;
    commit(&store, under(other, &["k/moved"])).await;
    delete(&store, "k/gone").await;
    put(&store, "k/gone", "again").await;
    commit(&store, under(lease, &["k/kept"])).await;
    store.revoke(lease).await.unwrap();
    let page = list(&store, "k/", None).await;
    assert_eq!(keys(&page.entries), ["k/free", "k/gone", "k/moved"]);
    store.revoke(other).await.unwrap();
    let page = list(&store, "k/", None).await;
    assert_eq!(keys(&page.entries), ["k/free", "k/gone"]);
}

pub(crate) async fn an_ended_lease_cannot_be_used(store: Shared) {
    let lease = store.grant(LONG).await.unwrap();
    store.revoke(lease).await.unwrap();
    let before = store.revision().await.unwrap();
    let transaction = writes([put_write("e/a", "1"), put_under(lease, "e/b")]);
    let errors = [
        store.commit(transaction).await.unwrap_err(),
        store.renew(lease).await.unwrap_err(),
        store.revoke(lease).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, StoreError::NoLease(ended) if ended == lease));
    }
    assert_eq!(store.revision().await.unwrap(), before);
    assert!(list(&store, "e/", None).await.entries.is_empty());
}
