//! Repositories as DC/OS has them: archives at known addresses, and no metadata. Nothing about them can
//! be checked, so there is a type of its own for them that nobody uses by accident.

use camino::Utf8Path;
use transom_model::package::PackageId;
use url::Url;

use super::client::{fetch_error, parse_list};
use super::entry::{LARGEST_ARCHIVE, LARGEST_LIST};
use super::{Form, PackageListId, RepositoryError, names};
use crate::download::{Downloaded, Downloader, Listener, Request};

/// A repository without signatures.
#[derive(Debug, Clone)]
pub struct PlainRepository {
    downloader: Downloader,
    base: Url,
}

impl PlainRepository {
    /// Whoever calls this was told by somebody to trust the server and all between it and us.
    pub fn unsigned(downloader: &Downloader, base: &Url) -> Self {
        Self {
            downloader: downloader.clone(),
            base: base.clone(),
        }
    }

    /// Fetches the archive of a package to a file.
    pub async fn fetch(
        &self,
        id: &PackageId,
        destination: &Utf8Path,
        listener: Listener<'_>,
    ) -> Result<Downloaded, RepositoryError> {
        let path = names::package_path(id, Form::TarXz);
        let request = Request {
            url: names::join(&self.base, &path),
            destination: destination.to_owned(),
            digest: None,
            length: None,
            limit: LARGEST_ARCHIVE,
        };
        self.downloader
            .fetch(&request, listener)
            .await
            .map_err(|error| fetch_error(path, error))
    }

    /// The packages of a list.
    pub async fn package_list(
        &self,
        id: &PackageListId,
    ) -> Result<Vec<PackageId>, RepositoryError> {
        let path = names::package_list_path(id);
        let bytes = self
            .downloader
            .read(&names::join(&self.base, &path), LARGEST_LIST)
            .await
            .map_err(|error| fetch_error(path.clone(), error))?;
        parse_list(&path, &bytes)
    }
}
