//! A store whose disk fails under it, which no test can do from outside.

use camino::Utf8Path;

use super::{tables::Sabotage, *};
use crate::{Condition, Write};

async fn open(folder: &tempfile::TempDir) -> Local {
    let folder = Utf8Path::from_path(folder.path()).unwrap();
    Local::open(folder, LocalOptions::default()).await.unwrap()
}

fn put(key: &str) -> Transaction {
    Transaction {
        conditions: vec![Condition::Absent {
            key: key.to_owned(),
        }],
        writes: vec![Write::Put {
            key: key.to_owned(),
            value: "1".into(),
            lease: None,
        }],
    }
}

fn sabotage(store: &Local, sabotage: Option<Sabotage>) {
    *store.tables.sabotage.lock().unwrap() = sabotage;
}

/// Asks for everything that writes, and is refused.
async fn expect_refusals(store: &Local, reason: &str) {
    let lease = LeaseId(1);
    let second = Duration::from_secs(1);
    let results = [
        store.commit(put("later")).await.map(|_| ()),
        store.grant(second).await.map(|_| ()),
        store.revoke(lease).await,
        store.compact(Revision(2)).await,
    ];
    for result in results {
        let error = result.unwrap_err();
        assert!(matches!(error, StoreError::Failed { .. }), "{error:?}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn after_one_failed_write_there_is_no_other_until_the_store_is_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    store.commit(put("before")).await.unwrap();
    assert_eq!(store.health().fault(), None);

    sabotage(&store, Some(Sabotage::DiskFull));
    let error = store.commit(put("failed")).await.unwrap_err();
    assert!(matches!(error, StoreError::Files { .. }), "{error:?}");
    // The disk has room again, but nobody knows what it has.
    sabotage(&store, None);
    let fault = store.health().failed().await;
    let reason = std::io::Error::from(std::io::ErrorKind::StorageFull).to_string();
    assert!(fault.contains(&reason), "{fault}");
    expect_refusals(&store, &reason).await;
    assert!(store.get("before").await.unwrap().is_some());
    drop(store);

    let store = open(&folder).await;
    assert_eq!(store.health().fault(), None);
    assert!(store.get("before").await.unwrap().is_some());
    store.commit(put("failed")).await.unwrap();
}

#[tokio::test]
async fn a_writer_that_panics_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    sabotage(&store, Some(Sabotage::Panic));
    store.commit(put("a")).await.unwrap_err();
    let fault = store.health().failed().await;
    assert!(fault.contains("panicked"), "{fault}");
    expect_refusals(&store, "panicked").await;
}
