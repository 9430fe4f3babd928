//! Downloads from `file` addresses: a copy with the same promises as one from a server.

use std::io::Read as _;

use camino::Utf8PathBuf;
use url::Url;

use super::attempt::Attempt;
use super::part::{Part, blocking};
use super::{DownloadError, Downloader, Event, Listener, Request};

const CHUNK: u64 = 1 << 20;

impl Downloader {
    /// Copies the file, from its first byte: a disk breaks off less often than a network.
    pub(super) async fn copy(
        &self,
        request: &Request,
        part: Part,
        listener: Listener<'_>,
    ) -> Attempt {
        match self.copy_all(request, part, listener).await {
            Ok(part) => Attempt::Complete(part),
            Err(error) => Attempt::Failed(error),
        }
    }

    async fn copy_all(
        &self,
        request: &Request,
        part: Part,
        listener: Listener<'_>,
    ) -> Result<Part, DownloadError> {
        let (mut source, total) = open(&request.url).await?;
        if total > request.limit {
            return Err(DownloadError::too_large(&request.url, request.limit));
        }
        if let Some(expected) = request.length.filter(|expected| *expected != total) {
            return Err(DownloadError::announced_length(
                &request.url,
                expected,
                total,
            ));
        }
        self.check_space(request, &part, total, 0).await?;
        let mut part = part.restart().await?;
        loop {
            let (returned, chunk) = next_chunk(source).await?;
            source = returned;
            if chunk.is_empty() {
                return Ok(part);
            }
            part = part.append(chunk).await?;
            if part.length() > request.limit {
                return Err(DownloadError::too_large(&request.url, request.limit));
            }
            listener(Event::Progress {
                done: part.length(),
                total: Some(total),
            });
        }
    }
}

/// Reads at most `limit` bytes.
pub(super) async fn read(url: &Url, limit: u64) -> Result<Vec<u8>, DownloadError> {
    let (source, total) = open(url).await?;
    if total > limit {
        return Err(DownloadError::too_large(url, limit));
    }
    let shown = url.clone();
    blocking(move || {
        let mut bytes = Vec::new();
        let path = source.path().to_owned();
        source
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| failed(&path, error))?;
        if bytes.len() as u64 > limit {
            return Err(DownloadError::too_large(&shown, limit));
        }
        Ok(bytes)
    })
    .await
}

async fn open(url: &Url) -> Result<(fs_err::File, u64), DownloadError> {
    let path = url
        .to_file_path()
        .ok()
        .and_then(|path| Utf8PathBuf::from_path_buf(path).ok())
        .ok_or_else(|| DownloadError::scheme(url))?;
    let url = url.clone();
    blocking(move || {
        let opened = fs_err::File::open(&path).and_then(|file| {
            let metadata = file.metadata()?;
            if metadata.is_file() {
                Ok((file, metadata.len()))
            } else {
                Err(std::io::Error::other("it is not a file"))
            }
        });
        opened.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => DownloadError::not_found(&url),
            _ => failed(path.as_std_path(), error),
        })
    })
    .await
}

async fn next_chunk(mut source: fs_err::File) -> Result<(fs_err::File, Vec<u8>), DownloadError> {
    blocking(move || {
        let mut chunk = Vec::new();
        let path = source.path().to_owned();
        (&mut source)
            .take(CHUNK)
            .read_to_end(&mut chunk)
            .map_err(|error| failed(&path, error))?;
        Ok((source, chunk))
    })
    .await
}

fn failed(path: &std::path::Path, source: std::io::Error) -> DownloadError {
    DownloadError::ReadBack {
        source: super::DigestError::Read {
            path: Utf8PathBuf::from(path.to_string_lossy().into_owned()),
            source,
        },
    }
}
