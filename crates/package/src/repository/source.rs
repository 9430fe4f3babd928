//! Where metadata is read from: a server, a folder, a bundle. A source promises nothing: what it gives
//! is checked by whoever asked.

use std::collections::BTreeMap;
use std::future::Future;

use url::Url;

use super::RepositoryError;
use super::names::{self, METADATA};
use crate::download::{DownloadError, Downloader};

/// Gives files of metadata by their name.
pub(super) trait Source: Sync {
    /// `None` if there is no such file.
    fn read(
        &self,
        name: &str,
        limit: u64,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, RepositoryError>> + Send;

    /// For errors.
    fn shown(&self) -> String;
}

/// The metadata of a repository at an address.
#[derive(Debug)]
pub(super) struct Remote<'a> {
    pub(super) downloader: &'a Downloader,
    pub(super) base: &'a Url,
}

impl Source for Remote<'_> {
    async fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
        let url = names::join(self.base, &format!("{METADATA}/{name}"));
        match self.downloader.read(&url, limit).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(DownloadError::NotFound { .. }) => Ok(None),
            Err(error) => Err(RepositoryError::Unreachable {
                url: self.shown(),
                source: Box::new(error),
            }),
        }
    }

    fn shown(&self) -> String {
        crate::download::shown(self.base)
    }
}

/// Metadata in memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) shown: String,
}

impl Source for Memory {
    async fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
        match self.files.get(name) {
            Some(bytes) if bytes.len() as u64 > limit => Err(RepositoryError::invalid(
                name,
                format!("it has more than {limit} bytes"),
            )),
            found => Ok(found.cloned()),
        }
    }

    fn shown(&self) -> String {
        self.shown.clone()
    }
}
