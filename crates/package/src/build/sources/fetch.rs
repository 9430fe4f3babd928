//! Files from elsewhere, kept in the cache under the digest that they must have.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{Files, Native};
use url::Url;

use super::SourceError;
use crate::download::{Digest, DownloadError, Downloader, Policy, Request};

/// No source is larger.
const LIMIT: u64 = 16 << 30;
/// Another build may fetch the same file.
const LOCK_WAIT: Duration = Duration::from_hours(1);

/// Makes sure that the file is in the cache, and says where.
pub(super) fn fetch(
    cache: &Utf8Path,
    base: &Utf8Path,
    address: &str,
    sha1: &str,
) -> Result<Utf8PathBuf, SourceError> {
    let url = resolve(base, address)?;
    let failed = |source| SourceError::Download {
        url: super::without_secrets(address),
        source: Box::new(source),
    };
    let digest = Digest::sha1(&sha1.to_ascii_lowercase())
        .map_err(|error| failed(DownloadError::from(error)))?;
    let folder = cache.join("sources/files");
    Native.create_dir_all(&folder)?;
    let request = Request {
        url,
        destination: folder.join(digest.as_str()),
        digest: Some(digest),
        length: None,
        limit: LIMIT,
    };
    let policy = Policy {
        lock_wait: LOCK_WAIT,
        ..Policy::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| SourceError::Open {
            path: folder,
            source,
        })?;
    let downloaded = Downloader::new(policy)
        .and_then(|downloader| runtime.block_on(downloader.fetch(&request, &|_| ())))
        .map_err(failed)?;
    Ok(downloaded.path)
}

/// An address as it is, but for a file: its path starts at the recipe.
fn resolve(base: &Utf8Path, address: &str) -> Result<Url, SourceError> {
    let wrong = || SourceError::Address {
        url: super::without_secrets(address),
    };
    match address.strip_prefix("file://") {
        Some(path) => {
            let path = camino::absolute_utf8(base.join(path)).map_err(|_| wrong())?;
            Url::from_file_path(path).map_err(|()| wrong())
        }
        None => Url::parse(address).map_err(|_| wrong()),
    }
}

/// What a fetched file is called: the last name of its address.
pub(super) fn file_name(address: &str) -> Result<String, SourceError> {
    let path = address.split(['?', '#']).next().unwrap_or(address);
    let name = path.rsplit('/').next().unwrap_or_default();
    let plain = !matches!(name, "" | "." | "..") && !name.contains(['\\', '\0', ':']);
    plain
        .then(|| name.to_owned())
        .ok_or_else(|| SourceError::NoName {
            path: super::without_secrets(address),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_as_its_address_ends() {
        assert_eq!(file_name("https://example.com/a/b.zip").unwrap(), "b.zip");
        assert_eq!(
            file_name("https://example.com/b.zip?x=/y").unwrap(),
            "b.zip"
        );
        assert_eq!(file_name("file://notes.txt").unwrap(), "notes.txt");
        for address in ["https://example.com/", "file://..", "file://a\\b"] {
            assert!(file_name(address).is_err(), "{address}");
        }
    }
}
