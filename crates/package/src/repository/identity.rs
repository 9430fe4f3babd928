//! What an archive says it is: its manifest where it has one of ours, else only its file name.

use camino::Utf8Path;
use transom_model::Os;
use transom_model::package::{IdentifierError, PackageId};

use super::{Form, names};
use crate::archive::{UnpackError, VerifyError, read_manifest};

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
    Manifest { source: Box<UnpackError> },
}

impl Identity {
    /// Looks at an archive. Its file name counts only if it has no manifest.
    pub fn of(path: &Utf8Path) -> Result<Self, IdentityError> {
        let file_name = path.file_name().unwrap_or_default();
        let (stem, form) = Form::split(file_name).ok_or(IdentityError::Form)?;
        let named = || -> Result<Self, IdentityError> {
            Ok(Self {
                id: names::unstored(stem).parse()?,
                os: form.usual_os(),
                form,
                has_manifest: false,
            })
        };
        // What DC/OS makes says nothing about itself.
        if form == Form::TarXz {
            return named();
        }
        match read_manifest(path) {
            Ok(manifest) => Ok(Self {
                id: manifest.id,
                os: manifest.os,
                form,
                has_manifest: true,
            }),
            Err(UnpackError::Verify { source, .. })
                if matches!(*source, VerifyError::NoManifest) =>
            {
                named()
            }
            Err(error) => Err(IdentityError::Manifest {
                source: Box::new(error),
            }),
        }
    }
}
