//! Why a node's software could not be read or changed. Whatever failed, the node is entirely as it was
//! or entirely as it was to be, after the next recovery at the latest.

use camino::Utf8PathBuf;
use transom_host::account::AccountError;
use transom_host::files::FileError;
use transom_model::package::{PackageId, PackageName};

use super::plan::ActivationFault;
use super::services::ServicesError;

/// Why an operation on a node failed.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error("`{path}` is not an absolute path")]
    RelativePlace { path: Utf8PathBuf },
    #[error("the places are spelled for {places}, and this machine's files are those of {files}")]
    OtherSystem {
        places: transom_model::os::Os,
        files: transom_model::os::Os,
    },
    #[error(
        "`{path}` is a folder, and should be a file: pkgpanda has installed here. Choose another \
         root, or uninstall it first"
    )]
    ForeignRoot { path: Utf8PathBuf },
    #[error("`{path}` is damaged: {reason}")]
    Damaged { path: Utf8PathBuf, reason: String },
    #[error("another command works on this node")]
    Busy { source: FileError },
    #[error("could not change the node's files")]
    Files {
        #[from]
        source: FileError,
    },
    #[error("could not make the accounts of packages")]
    Accounts {
        #[from]
        source: AccountError,
    },
    #[error("the services of the active generation did not stop: nothing was changed")]
    NotStopped { source: ServicesError },
    #[error("generation {generation} is active, but its services did not start")]
    NotStarted {
        generation: u64,
        source: ServicesError,
    },
    #[error("the packages cannot become active: {}", count(.0.len()))]
    Faults(Vec<ActivationFault>),
    #[error("nothing is active on this node")]
    NothingActive,
    #[error("there is no generation {number}")]
    NoSuchGeneration { number: u64 },
    #[error("there is no generation to return to")]
    NoPrevious,
    #[error("generation {number} cannot become active again: {reason}")]
    IncompleteGeneration { number: u64, reason: String },
    #[error("the plan was made when {} was active, and now {} is", generation(*.planned), generation(*.found))]
    OutdatedPlan {
        planned: Option<u64>,
        found: Option<u64>,
    },
    #[error("no package with the name `{name}` is active")]
    NameNotActive { name: PackageName },
    #[error("package `{id}` is active")]
    PackageActive { id: PackageId },
    #[error("package `{id}` is part of generation {generation}, which is kept")]
    PackageKept { id: PackageId, generation: u64 },
    #[error("could not unpack package `{id}`")]
    Unpack {
        id: PackageId,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("what was unpacked as package `{id}` is not a package")]
    NotAPackage {
        id: PackageId,
        source: Box<ActivationFault>,
    },
    #[error("`{path}` has {available} bytes left, and {needed} are needed")]
    NotEnoughSpace {
        path: Utf8PathBuf,
        available: u64,
        needed: u64,
    },
    #[error("`{path}` is not the root of a node: nothing was uninstalled")]
    NotANode { path: Utf8PathBuf },
}

fn count(faults: usize) -> String {
    match faults {
        1 => "1 fault".to_owned(),
        faults => format!("{faults} faults"),
    }
}

fn generation(number: Option<u64>) -> String {
    match number {
        Some(number) => format!("generation {number}"),
        None => "nothing".to_owned(),
    }
}

impl NodeError {
    /// Whether the same call could succeed later with nothing changed by the caller.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::NotEnoughSpace { .. } => true,
            Self::Files { source } => source.is_transient(),
            _ => false,
        }
    }
}
