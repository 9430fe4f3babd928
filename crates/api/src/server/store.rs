//! The care of a local store that no server has open.

use camino::Utf8Path;
use transom_store::{Local, LocalOptions, Report, Store as _, StoreError};

/// Walks over everything in a store.
pub async fn check_store(folder: &Utf8Path) -> Result<Report, StoreError> {
    transom_store::check(folder).await
}

/// Writes a store to a file; the revision is the one that the file holds.
pub async fn backup_store(folder: &Utf8Path, file: &Utf8Path) -> Result<u64, StoreError> {
    let store = Local::open(folder, LocalOptions::default()).await?;
    Ok(store.backup(file).await?.0)
}

/// Makes a store from a file.
pub async fn restore_store(file: &Utf8Path, folder: &Utf8Path) -> Result<u64, StoreError> {
    Ok(transom_store::restore(file, folder).await?.0)
}
