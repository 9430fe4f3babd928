//! What only a store on a disk can be: opened again, in use, too new, damaged.

use std::{sync::Arc, time::Duration};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use transom_store::{Local, Revision, StoreError, Write, check};

use crate::{
    backend::{path, small},
    support::{
        Shared, commit, delete, events_until, in_time, keys, list, pairs, put, text, writes,
    },
};

async fn open(folder: &Utf8Path) -> Shared {
    Arc::new(Local::open(folder, small()).await.unwrap())
}

#[tokio::test]
async fn a_store_is_the_same_after_it_was_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(path(&folder)).await;
    assert_eq!(store.revision().await.unwrap(), Revision::EMPTY);
    let first = put(&store, "a", "1").await;
    put(&store, "b", "2").await;
    let last = delete(&store, "a").await;
    drop(store);
    let store = open(path(&folder)).await;
    assert_eq!(store.revision().await.unwrap(), last);
    let now = list(&store, "", None).await;
    assert_eq!(pairs(&now.entries), [("b", "2")]);
    let then = list(&store, "", Some(first)).await;
    assert_eq!(pairs(&then.entries), [("a", "1")]);
    let mut watch = store.watch("", Revision(0)).await.unwrap();
    assert_eq!(events_until(&mut watch, last).await.len(), 3);
    let next = put(&store, "a", "3").await;
    assert_eq!(next.0, last.0 + 1);
}

#[tokio::test]
async fn a_lease_begins_again_when_its_store_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(path(&folder)).await;
    let lease = store.grant(Duration::from_secs(5)).await.unwrap();
    let leased = Write::Put {
        key: "leased".to_owned(),
        value: "1".into(),
        lease: Some(lease),
    };
    let revision = commit(&store, writes([leased])).await;
    drop(store);
    let store = open(path(&folder)).await;
    store.renew(lease).await.unwrap();
    let mut watch = store.watch("", revision).await.unwrap();
    let events = in_time(events_until(&mut watch, Revision(revision.0 + 1))).await;
    assert_eq!(&*events[0].key, "leased");
    assert!(events[0].current.is_none());
    let other = store.grant(Duration::from_secs(1)).await.unwrap();
    assert_ne!(lease, other, "an ended lease is never granted again");
}

#[tokio::test]
async fn a_watch_ends_when_its_store_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(path(&folder)).await;
    let revision = store.revision().await.unwrap();
    let mut watch = store.watch("", revision).await.unwrap();
    drop(store);
    let ended = in_time(futures::StreamExt::next(&mut watch)).await;
    assert!(matches!(ended, Some(Err(StoreError::Closed))));
    // It does not keep the folder either.
    open(path(&folder)).await;
}

#[tokio::test]
async fn compaction_gives_its_space_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(path(&folder)).await;
    let mut last = Revision(0);
    for number in 0..3000 {
        last = put(&store, &format!("k{}", number % 10), "value").await;
    }
    last = last.max(delete(&store, "k3").await);
    store.compact(last).await.unwrap();
    // Closing waits for the writer, but not for all that it would remove between later groups.
    drop(store);
    let report = check(path(&folder)).await.unwrap();
    assert!(report.is_clean(), "{:?}", report.faults);
    assert_eq!((report.entries, report.changes), (9, 0));
    let store = open(path(&folder)).await;
    assert_eq!(keys(&list(&store, "", Some(last)).await.entries).len(), 9);
    for _ in 0..20 {
        put(&store, "k0", "value").await;
    }
    drop(store);
    let report = check(path(&folder)).await.unwrap();
    assert!(report.is_clean(), "{:?}", report.faults);
    assert!(report.versions < 100, "{report:?}");
}

#[tokio::test]
async fn one_folder_is_for_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(path(&folder)).await;
    let error = Local::open(path(&folder), small()).await.unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    let error = check(path(&folder)).await.unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    drop(store);
    open(path(&folder)).await;
}

#[tokio::test]
async fn a_newer_format_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(path(&folder)).await);
    fs::write(path(&folder).join("format"), "2\n").unwrap();
    let error = Local::open(path(&folder), small()).await.unwrap_err();
    let newer = matches!(
        error,
        StoreError::NewerFormat {
            found: 2,
            known: 1,
            ..
        }
    );
    assert!(newer, "{error:?}");
}

#[tokio::test]
async fn a_store_that_lost_its_format_file_is_not_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(path(&folder)).await;
    put(&store, "a", "1").await;
    drop(store);
    let format = path(&folder).join("format");
    for content in [None, Some("what"), Some("1 what"), Some("")] {
        match content {
            Some(content) => fs::write(&format, content).unwrap(),
            None => fs::remove_file(&format).unwrap(),
        }
        let error = Local::open(path(&folder), small()).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    }
    fs::write(&format, "1\n").unwrap();
    let store = open(path(&folder)).await;
    assert!(store.get("a").await.unwrap().is_some());
}

#[tokio::test]
async fn a_store_that_was_never_complete_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(path(&folder).join("format"), "1 making\n").unwrap();
    fs::create_dir(path(&folder).join("data")).unwrap();
    fs::write(path(&folder).join("data").join("0.jnl"), "half").unwrap();
    let store = open(path(&folder)).await;
    assert_eq!(store.revision().await.unwrap(), Revision::EMPTY);
}

/// Three values that can be found in the journal, and where it is.
async fn written(folder: &Utf8Path) -> (Utf8PathBuf, Vec<u8>) {
    let store = open(folder).await;
    for value in ["first ", "middle ", "last "] {
        put(&store, "a", &value.repeat(300)).await;
    }
    drop(store);
    let journal = folder.join("data").join("0.jnl");
    let content = fs::read(&journal).unwrap();
    (journal, content)
}

/// Writes zeros where a value was, as a page that never reached the disk has them.
fn lose(journal: &Utf8Path, content: &[u8], value: &str) {
    let value = value.repeat(50).into_bytes();
    let place = content
        .windows(value.len())
        .position(|bytes| bytes == value)
        .expect("the value is in the journal");
    let mut content = content.to_vec();
    content[place..place + value.len()].fill(0);
    fs::write(journal, content).unwrap();
}

#[tokio::test]
async fn a_group_that_a_power_loss_tore_is_as_if_it_never_was() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, content) = written(path(&folder)).await;
    lose(&journal, &content, "last ");
    let store = open(path(&folder)).await;
    let entry = store.get("a").await.unwrap().unwrap();
    assert!(text(&entry).starts_with("middle "));
    assert_eq!(store.revision().await.unwrap(), entry.modified);
    put(&store, "a", "again").await;
    drop(store);
    assert!(check(path(&folder)).await.unwrap().is_clean());
}

#[tokio::test]
async fn damage_before_what_was_acknowledged_is_told_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, content) = written(path(&folder)).await;
    lose(&journal, &content, "middle ");
    let damaged = fs::read(&journal).unwrap();
    let error = Local::open(path(&folder), small()).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert!(
        fs::read(&journal).unwrap() == damaged,
        "the journal was changed"
    );
}

#[tokio::test]
async fn there_is_nothing_to_check_where_no_store_is() {
    let folder = tempfile::tempdir().unwrap();
    let error = check(path(&folder)).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
}
