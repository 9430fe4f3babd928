//! Why a package was not built.

use std::error::Error;
use std::io;

use camino::Utf8PathBuf;
use transom_host::files::FileError;
use transom_host::sandbox::SandboxError;
use transom_model::Os;

use super::dependencies::DependencyError;
use super::image::ImageError;
use super::install::InstallError;
use super::sources::SourceError;
use crate::archive::{PackError, UnpackError};

/// Why a package was not built. There is no archive of it then.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Dependency(#[from] DependencyError),
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("the build script cannot be run")]
    Sandbox(#[from] SandboxError),
    #[error("the build script {end}; its output is in `{log}` and ends with:\n{tail}")]
    Script {
        end: String,
        log: Utf8PathBuf,
        tail: String,
    },
    #[error("a build script for {needed} cannot run on {host}")]
    OtherSystem { needed: Os, host: Os },
    #[error("there is no PowerShell on this machine")]
    NoPowerShell,
    #[error("`{path}` is a unit of the node itself: no package can have it")]
    ReservedUnit { path: String },
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error("the result cannot be packed")]
    Pack(#[from] PackError),
    #[error("the repository does not give it")]
    Repository(#[source] Box<dyn Error + Send + Sync>),
    #[error("what the repository gave is not the package")]
    Unpack(#[source] Box<UnpackError>),
    #[error("`{path}` cannot be found")]
    Folder {
        path: Utf8PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Files(#[from] FileError),
}
