//! What an archive says it is: its manifest where it has one of ours, else only its file name.

use std::io::{self, BufReader, Read};

use camino::Utf8Path;
use serde::Deserialize;
use transom_model::Os;
use transom_model::package::{IdentifierError, PackageId};

use super::Form;

const MANIFEST: &str = "manifest.json";
const LARGEST_MANIFEST: u64 = 64 << 20;
/// The largest window of a zstd frame: 2 to this many bytes.
const WINDOW_LOG: u32 = 27;

/// What an archive is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub id: PackageId,
    pub os: Os,
    pub form: Form,
    /// Whether the archive says so itself.
    pub has_manifest: bool,
}

/// Why it is not known what an archive is.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("its name does not end in tar.zst, zip or tar.xz")]
    Form,
    #[error("its name is not the id of a package")]
    Name {
        #[from]
        source: IdentifierError,
    },
    #[error("its manifest cannot be read")]
    Manifest { source: serde_json::Error },
    #[error("its manifest has more than {LARGEST_MANIFEST} bytes")]
    ManifestTooLarge,
    #[error("it cannot be read")]
    Read { source: io::Error },
}

/// The part of a manifest that matters here.
#[derive(Deserialize)]
struct Head {
    id: PackageId,
    os: Os,
}

impl Identity {
    /// Looks at an archive. Its file name counts only if it has no manifest.
    pub fn of(path: &Utf8Path) -> Result<Self, IdentityError> {
        let file_name = path.file_name().unwrap_or_default();
        let (stem, form) = Form::split(file_name).ok_or(IdentityError::Form)?;
        match manifest(path, form)? {
            Some(bytes) => {
                let head: Head = serde_json::from_slice(&bytes)
                    .map_err(|source| IdentityError::Manifest { source })?;
                Ok(Self {
                    id: head.id,
                    os: head.os,
                    form,
                    has_manifest: true,
                })
            }
            None => Ok(Self {
                id: stem.replace("!3a", ":").parse()?,
                os: form.usual_os(),
                form,
                has_manifest: false,
            }),
        }
    }
}

/// The first entry, if it is a manifest.
fn manifest(path: &Utf8Path, form: Form) -> Result<Option<Vec<u8>>, IdentityError> {
    let file = fs_err::File::open(path).map_err(read_error)?;
    let file = BufReader::new(file);
    match form {
        Form::TarXz => Ok(None),
        Form::TarZstd => {
            let mut stream = zstd::stream::read::Decoder::new(file).map_err(read_error)?;
            stream.window_log_max(WINDOW_LOG).map_err(read_error)?;
            let mut tar = tar::Archive::new(stream);
            // Raw entries: no header makes more than one block be read.
            let first = tar.entries().map_err(read_error)?.raw(true).next();
            match first.transpose().map_err(read_error)? {
                Some(entry) if *entry.path_bytes() == *MANIFEST.as_bytes() => {
                    capped(entry).map(Some)
                }
                _ => Ok(None),
            }
        }
        Form::Zip => {
            let mut zip =
                zip::ZipArchive::new(file).map_err(|error| read_error(io::Error::other(error)))?;
            match zip.by_index(0) {
                Ok(entry) if entry.name_raw() == MANIFEST.as_bytes() => capped(entry).map(Some),
                _ => Ok(None),
            }
        }
    }
}

fn capped(entry: impl Read) -> Result<Vec<u8>, IdentityError> {
    let mut bytes = Vec::new();
    entry
        .take(LARGEST_MANIFEST + 1)
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    if bytes.len() as u64 > LARGEST_MANIFEST {
        return Err(IdentityError::ManifestTooLarge);
    }
    Ok(bytes)
}

fn read_error(source: io::Error) -> IdentityError {
    IdentityError::Read { source }
}
