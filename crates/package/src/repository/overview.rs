//! What a repository is at one moment: its roles with their keys and expiry, and what it lists. For
//! those who own the folder: its first root is taken for granted.

use camino::Utf8Path;
use jiff::Timestamp;
use tough::schema::{RoleType, Root};
use transom_host::files::{Files as _, Native};
use transom_model::package::PackageId;

use super::client::parse_list;
use super::editor::{folder_url, read};
use super::entry::LARGEST_LIST;
use super::names::{MIRROR, PENDING, PENDING_ROOT, below};
use super::trust::root_name;
use super::{Entry, ListEntry, RepositoryError};
use crate::download::{Downloader, digest_file};

/// A repository at one moment.
#[derive(Debug, Clone)]
pub struct Overview {
    pub roles: Vec<RoleOverview>,
    /// The digest of the first root, which nodes can pin.
    pub root_sha256: String,
    pub entries: Vec<Entry>,
    /// Whether a root waits for signatures.
    pub pending_root: bool,
    /// Whether it is a mirror of another repository.
    pub mirror: bool,
}

/// One kind of metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleOverview {
    pub role: RoleType,
    pub version: u64,
    pub expires: Timestamp,
    /// How many keys must sign.
    pub threshold: u64,
    /// The ids of the keys that can.
    pub keys: Vec<String>,
}

impl Overview {
    /// Reads a repository that is a folder. Takes no lock: a change is seen completely or not at all.
    pub async fn read(folder: &Utf8Path, downloader: &Downloader) -> Result<Self, RepositoryError> {
        let trusted = read(downloader, &folder_url(folder)?).await?;
        let root = &trusted.root.signed.signed;
        let role = |role, version, expires| {
            let (threshold, keys) = holders(root, role);
            RoleOverview {
                role,
                version,
                expires,
                threshold,
                keys,
            }
        };
        let first = below(folder, super::names::METADATA).join(root_name(1));
        let digests = digest_file(&first).map_err(|error| RepositoryError::Invalid {
            file: first.to_string(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            roles: vec![
                role(RoleType::Root, trusted.root.version(), root.expires),
                role(
                    RoleType::Targets,
                    trusted.targets.version(),
                    trusted.targets.signed.signed.expires,
                ),
                role(
                    RoleType::Snapshot,
                    trusted.snapshot.version(),
                    trusted.snapshot.signed.signed.expires,
                ),
                role(
                    RoleType::Timestamp,
                    trusted.timestamp.version(),
                    trusted.timestamp.signed.signed.expires,
                ),
            ],
            root_sha256: digests.sha256,
            pending_root: Native
                .metadata(&folder.join(PENDING).join(PENDING_ROOT))
                .is_ok(),
            mirror: Native.metadata(&folder.join(MIRROR)).is_ok(),
            entries: trusted.entries,
        })
    }

    /// The packages of a list of this repository.
    pub fn packages_of(
        &self,
        folder: &Utf8Path,
        list: &ListEntry,
    ) -> Result<Vec<PackageId>, RepositoryError> {
        let path = super::names::package_list_path(&list.id);
        let bytes = Native.read(&below(folder, &path), LARGEST_LIST)?;
        parse_list(&path, &bytes)
    }
}

fn holders(root: &Root, role: RoleType) -> (u64, Vec<String>) {
    root.roles.get(&role).map_or((0, Vec::new()), |keys| {
        let ids = keys.keyids.iter().map(|id| crate::hash::hex(id)).collect();
        (keys.threshold.get(), ids)
    })
}
