//! Short words for what every case does.

use std::{future::Future, sync::Arc, time::Duration};

use futures::StreamExt;
use transom_store::{
    Entry, Event, Outcome, Page, Range, Revision, Store, Transaction, Watch, Write,
};

pub(crate) type Shared = Arc<dyn Store>;

/// The longest case waits for the disk three thousand times, which takes a busy one more than a minute.
const PATIENCE: Duration = Duration::from_mins(5);

/// A case that hangs is a failure that says so.
pub(crate) async fn in_time<T>(case: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, case)
        .await
        .expect("the case did not end in time")
}

pub(crate) fn put_write(key: &str, value: &str) -> Write {
    Write::Put {
        key: key.to_owned(),
        value: value.to_owned().into(),
        lease: None,
    }
}

pub(crate) fn delete_write(key: &str) -> Write {
    Write::Delete {
        key: key.to_owned(),
    }
}

pub(crate) fn writes(writes: impl IntoIterator<Item = Write>) -> Transaction {
    Transaction {
        conditions: Vec::new(),
        writes: writes.into_iter().collect(),
    }
}

pub(crate) async fn commit(store: &Shared, transaction: Transaction) -> Revision {
    match store.commit(transaction).await.unwrap() {
        Outcome::Committed(revision) => revision,
        refused @ Outcome::Refused { .. } => panic!("{refused:?}"),
    }
}

pub(crate) async fn put(store: &Shared, key: &str, value: &str) -> Revision {
    commit(store, writes([put_write(key, value)])).await
}

pub(crate) async fn delete(store: &Shared, key: &str) -> Revision {
    commit(store, writes([delete_write(key)])).await
}

pub(crate) async fn list(store: &Shared, prefix: &str, at: Option<Revision>) -> Page {
    let range = Range {
        prefix: prefix.to_owned(),
        at,
        ..Range::default()
    };
    store.list(range).await.unwrap()
}

pub(crate) fn keys(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| &*entry.key).collect()
}

pub(crate) fn text(entry: &Entry) -> &str {
    std::str::from_utf8(&entry.value).unwrap()
}

/// Key and value of each entry.
pub(crate) fn pairs(entries: &[Entry]) -> Vec<(&str, &str)> {
    let pairs = entries.iter().map(|entry| (&*entry.key, text(entry)));
    pairs.collect()
}

/// Reads a watch until it has seen all up to a revision.
pub(crate) async fn events_until(watch: &mut Watch, revision: Revision) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let mut seen = Revision(0);
    while seen < revision {
        let batch = watch.next().await.expect("a watch does not end").unwrap();
        assert!(batch.revision > seen, "{seen} is followed by {batch:?}");
        for event in &batch.events {
            assert!(event.revision > seen && event.revision <= batch.revision);
        }
        seen = batch.revision;
        events.extend(batch.events);
    }
    events
}

/// What an event did, in short.
pub(crate) fn told(event: &Event) -> (String, Option<String>, Option<String>) {
    let value = |entry: &Option<Entry>| entry.as_ref().map(|entry| text(entry).to_owned());
    (
        event.key.to_string(),
        value(&event.previous),
        value(&event.current),
    )
}
