//! Stores to run the contract on.

use std::sync::Arc;

use camino::Utf8Path;
use tempfile::TempDir;
use transom_store::{Local, LocalOptions, Memory};

use crate::support::Shared;

pub(crate) fn memory() -> Shared {
    Arc::new(Memory::new())
}

/// With so little memory that the disk is used from the beginning.
pub(crate) fn small() -> LocalOptions {
    LocalOptions {
        cache_bytes: 1 << 16,
        memtable_bytes: 1 << 18,
        recent_bytes: 1 << 14,
    }
}

pub(crate) async fn local() -> (Shared, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let local = Local::open(path(&folder), small()).await.unwrap();
    (Arc::new(local), folder)
}

pub(crate) fn path(folder: &TempDir) -> &Utf8Path {
    Utf8Path::from_path(folder.path()).unwrap()
}
