//! What is kept about an image. Invariant: a record is written after all that it names is there, and
//! removed before any of it goes.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

use transom_host::files::{Access, Files, Native};

use super::digest::Digest;
use crate::{Image, RuntimeError};

const LARGEST_RECORD: u64 = 4 << 20;

/// An image that is here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The digest of its configuration.
    pub(super) id: Digest,
    /// The manifest it came with.
    pub(super) manifest: Digest,
    /// From the lowest to the highest.
    pub(super) layers: Vec<Layer>,
    pub(super) tags: Vec<String>,
    pub(super) digests: Vec<String>,
    pub(super) settings: ImageSettings,
    pub(super) os: String,
    pub(super) architecture: String,
    pub(super) os_version: Option<String>,
    pub(super) pinned: bool,
    pub(super) last_used: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Layer {
    pub(super) blob: Digest,
    pub(super) diff_id: Digest,
    pub(super) size: u64,
}

/// What an image says about the programs that start from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSettings {
    pub user: String,
    pub environment: Vec<String>,
    pub entrypoint: Vec<String>,
    pub arguments: Vec<String>,
    pub working_directory: String,
    pub stop_signal: Option<String>,
    pub labels: BTreeMap<String, String>,
}

impl Record {
    pub(super) fn describe(&self) -> Image {
        Image {
            id: self.id.to_string(),
            tags: self.tags.clone(),
            digests: self.digests.clone(),
            size: self.layers.iter().map(|layer| layer.size).sum(),
            user: self.settings.user.clone(),
            os: self.os.clone(),
            architecture: self.architecture.clone(),
            os_version: self.os_version.clone(),
            pinned: self.pinned,
        }
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.id.as_str() == name
            || self.id.hex() == name
            || self
                .tags
                .iter()
                .chain(&self.digests)
                .any(|known| known == name)
    }

    pub(super) fn save(&self, folder: &Utf8Path) -> Result<(), RuntimeError> {
        let bytes =
            serde_json::to_vec(self).map_err(|error| RuntimeError::Other(error.to_string()))?;
        Native
            .write_durable(&path_of(folder, &self.id), &bytes, Access::Public)
            .map_err(|error| {
                RuntimeError::io(
                    format!("record the image {}", self.id),
                    io::Error::other(error),
                )
            })
    }

    pub(super) fn forget(folder: &Utf8Path, id: &Digest) -> Result<(), RuntimeError> {
        Native
            .remove_file(&path_of(folder, id))
            .and_then(|()| Native.sync_dir(folder))
            .map_err(|error| {
                RuntimeError::io(format!("forget the image {id}"), io::Error::other(error))
            })
    }

    /// All records of a folder. One that cannot be read is as good as none: its image is pulled again.
    pub(super) fn load_all(folder: &Utf8Path) -> io::Result<Vec<Self>> {
        let mut records = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = Utf8PathBuf::try_from(entry?.path()).map_err(io::Error::other)?;
            if path.extension() != Some("json") {
                continue;
            }
            let parsed = Native
                .read(&path, LARGEST_RECORD)
                .map_err(|error| error.to_string())
                .and_then(|bytes| {
                    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
                });
            match parsed {
                Ok(record) => records.push(record),
                Err(error) => tracing::warn!(%path, error, "the record of an image cannot be read"),
            }
        }
        Ok(records)
    }
}

fn path_of(folder: &Utf8Path, id: &Digest) -> Utf8PathBuf {
    folder.join(format!("{}.json", id.hex()))
}
