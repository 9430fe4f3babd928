//! Packages that somebody else has built already.

use std::error::Error;

use camino::Utf8Path;
use jiff::Timestamp;
use tokio::runtime::Runtime;
use transom_model::Os;
use transom_model::package::PackageId;
use url::Url;

use crate::download::{DownloadError, Downloader, Policy};
use crate::repository::{RepositoryClient, RepositoryError, TrustedRoot};

/// A place that may have packages ready.
pub trait Repository: Sync {
    /// Puts the archive of a package at `destination`, whose folder exists. `false`: it has none. What it
    /// gives is unpacked and compared with its manifest before it is used.
    fn fetch(
        &self,
        id: &PackageId,
        os: Os,
        destination: &Utf8Path,
    ) -> Result<bool, Box<dyn Error + Send + Sync>>;
}

/// A signed repository: what it gives is what its signers meant.
#[derive(Debug)]
pub struct SignedRepository {
    runtime: Runtime,
    client: RepositoryClient,
}

/// Why a repository cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("connections cannot be made")]
    Runtime(#[source] std::io::Error),
    #[error("downloads cannot be made")]
    Downloader(#[source] DownloadError),
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl SignedRepository {
    /// Reads and checks the metadata at `base`. What was seen is remembered in the folder `datastore`.
    pub fn open(
        base: &Url,
        root: &TrustedRoot,
        datastore: &Utf8Path,
        now: Timestamp,
    ) -> Result<Self, OpenError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(OpenError::Runtime)?;
        let downloader = Downloader::new(Policy::default()).map_err(OpenError::Downloader)?;
        let client = runtime.block_on(RepositoryClient::open(
            &downloader,
            base,
            root,
            datastore,
            now,
        ))?;
        Ok(Self { runtime, client })
    }
}

impl Repository for SignedRepository {
    fn fetch(
        &self,
        id: &PackageId,
        os: Os,
        destination: &Utf8Path,
    ) -> Result<bool, Box<dyn Error + Send + Sync>> {
        if let Err(RepositoryError::NotInRepository { .. }) = self.client.find(id, os) {
            return Ok(false);
        }
        self.runtime
            .block_on(self.client.fetch(id, os, destination, &|_| ()))?;
        Ok(true)
    }
}
