//! Backups, and stores made of them.

use std::{sync::Arc, time::Duration};

use camino::Utf8PathBuf;
use transom_store::{Local, StoreError, Write, check, restore};

use crate::{
    backend::{path, small},
    support::{Shared, commit, delete, list, put, writes},
};

pub(crate) async fn a_backup_restores_to_the_same_state(store: Shared) {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder).join("backup");
    for number in 0..300 {
        put(&store, &format!("k/{number}"), &"v".repeat(number)).await;
    }
    delete(&store, "k/7").await;
    let lease = store.grant(Duration::from_mins(10)).await.unwrap();
    let leased = Write::Put {
        key: "k/leased".to_owned(),
        value: "1".into(),
        lease: Some(lease),
    };
    let revision = commit(&store, writes([leased])).await;
    assert_eq!(store.backup(&file).await.unwrap(), revision);
    let expected = list(&store, "", None).await;
    let lost = put(&store, "k/later", "1").await;

    let target = path(&folder).join("restored");
    let begun = restore(&file, &target).await.unwrap();
    assert!(begun > lost);
    let restored: Shared = Arc::new(Local::open(&target, small()).await.unwrap());
    let page = list(&restored, "", None).await;
    assert_eq!(page.entries, expected.entries);
    assert_eq!(page.revision, begun);
    // Whoever saw the store that was lost cannot go on from there.
    for seen in [revision, lost] {
        let error = restored.watch("", seen).await.err().unwrap();
        assert!(matches!(error, StoreError::Compacted { .. }), "{error:?}");
    }
    let next = put(&restored, "k/later", "1").await;
    assert_eq!(next.0, begun.0 + 1);
    restored.revoke(lease).await.unwrap();
    assert_eq!(restored.get("k/leased").await.unwrap(), None);
    drop(restored);
    assert_eq!(check(&target).await.unwrap().faults, Vec::<String>::new());
    let error = restore(&file, &target).await.unwrap_err();
    assert!(matches!(error, StoreError::NotEmpty { .. }));
    store.revoke(lease).await.unwrap();
}

async fn saved() -> (tempfile::TempDir, Utf8PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder).join("backup");
    let store = crate::backend::memory();
    for number in 0..20 {
        put(&store, &format!("k/{number}"), "value").await;
    }
    store.backup(&file).await.unwrap();
    let bytes = fs_err::read(&file).unwrap();
    (folder, file, bytes)
}

#[tokio::test]
async fn a_backup_that_was_changed_anywhere_is_refused() {
    let (folder, file, bytes) = saved().await;
    let target = path(&folder).join("restored");
    for place in (0..bytes.len()).step_by(7) {
        let mut changed = bytes.clone();
        changed[place] ^= 0x20;
        fs_err::write(&file, &changed).unwrap();
        let error = restore(&file, &target).await.unwrap_err();
        let refused = matches!(
            error,
            StoreError::Damaged { .. } | StoreError::NewerFormat { .. }
        );
        assert!(refused, "byte {place}: {error:?}");
        assert!(!target.exists());
    }
}

#[tokio::test]
async fn a_backup_that_was_cut_or_grew_is_refused() {
    let (folder, file, bytes) = saved().await;
    let target = path(&folder).join("restored");
    let mut grown = bytes.clone();
    grown.push(0);
    for changed in [&bytes[..0], &bytes[..40], &bytes[..bytes.len() - 1], &grown] {
        fs_err::write(&file, changed).unwrap();
        let error = restore(&file, &target).await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    }
    fs_err::write(&file, &bytes).unwrap();
    restore(&file, &target).await.unwrap();
}
