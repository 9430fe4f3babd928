//! The folder of keys and certificates, which only its owner reads.
//!
//! Each file is written in one instant and is whole by itself; what is derived is remade when it is missing
//! or damaged, and what cannot be remade is never overwritten because it could not be read.

use std::{fmt, sync::Arc};

use camino::{Utf8Path, Utf8PathBuf};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use transom_host::{
    access::{Access as Permissions, Restricted},
    files::{Access, FileError, Files, path},
};

use super::{Identity, PkiError};

/// The key and certificate of the authority that issues.
pub(super) const AUTHORITY: &str = "authority.pem";
/// Certificates of other authorities that are trusted too: the one before, the one to come.
pub(super) const TRUSTED: &str = "trusted.pem";
/// All trusted authorities, for clients. Derived, and not secret.
pub(super) const BUNDLE: &str = "ca.pem";
pub(super) const SERVER: &str = "server.pem";
pub(super) const ADMIN: &str = "admin.pem";
/// Private keys that sign the tokens of service accounts, the newest first.
pub(super) const SERVICE_ACCOUNT: &str = "service-account.pem";

const LONGEST_FILE: u64 = 1 << 20;

pub(super) struct Folder {
    files: Arc<dyn Files>,
    path: Utf8PathBuf,
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Folder").field(&self.path).finish()
    }
}

impl Folder {
    /// Makes the folder private, and removes what a crash left in it.
    pub(super) fn prepare(
        files: Arc<dyn Files>,
        permissions: &dyn Permissions,
        path: &Utf8Path,
    ) -> Result<Self, PkiError> {
        files.create_dir_all(path)?;
        if let Restricted::NotVerified { why } = permissions.restrict_to_owner(path)? {
            tracing::warn!(folder = %path, why, "could not verify that the keys are private");
        }
        for leftover in files.sweep_temporaries(path)? {
            tracing::info!(path = %leftover, "removed what an earlier start left unfinished");
        }
        Ok(Self {
            files,
            path: path.to_owned(),
        })
    }

    pub(super) fn path_of(&self, name: &str) -> Utf8PathBuf {
        path::join(self.files.os(), &self.path, name)
    }

    /// The text of a file, or `None` if there is no such file.
    pub(super) fn read(&self, name: &str) -> Result<Option<String>, PkiError> {
        let path = self.path_of(name);
        match self.files.read(&path, LONGEST_FILE) {
            Ok(bytes) => String::from_utf8(bytes)
                .map(Some)
                .map_err(|_| PkiError::Damaged { path }),
            Err(FileError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn write(&self, name: &str, text: &str, access: Access) -> Result<(), PkiError> {
        let path = self.path_of(name);
        Ok(self.files.write_durable(&path, text.as_bytes(), access)?)
    }

    /// A pair that can be made again. `None` if there is none, or none that can be read.
    pub(super) fn derived_identity(&self, name: &str) -> Result<Option<Identity>, PkiError> {
        let text = match self.read(name) {
            Err(PkiError::Damaged { .. }) => None,
            other => other?,
        };
        Ok(text.as_deref().and_then(Identity::of_file))
    }

    /// A pair that cannot be made again.
    pub(super) fn precious_identity(&self, name: &str) -> Result<Option<Identity>, PkiError> {
        let Some(text) = self.read(name)? else {
            return Ok(None);
        };
        let damaged = || PkiError::Damaged {
            path: self.path_of(name),
        };
        Identity::of_file(&text).map(Some).ok_or_else(damaged)
    }

    /// The certificates in a file; none if there is no such file.
    pub(super) fn certificates(
        &self,
        name: &str,
    ) -> Result<Vec<CertificateDer<'static>>, PkiError> {
        let text = self.read(name)?.unwrap_or_default();
        CertificateDer::pem_slice_iter(text.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|_| PkiError::Damaged {
                path: self.path_of(name),
            })
    }
}
