//! What resolving a tree needs from outside: the ids of images, and repositories of git. Invariant: a
//! program that is asked answers within a limit, or counts as not there.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use camino::Utf8Path;
use sha2::{Digest as _, Sha256};

use crate::command::{self, CommandError};
use crate::hash::hex;
use crate::recipe::Source;

/// How long a question to a runtime or to git may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The runtimes that may know an image, in the order they are asked.
const RUNTIMES: [&str; 2] = ["docker", "podman"];

/// Knows images by name.
pub trait Images: Sync {
    /// The id of an image that a runtime on this machine has.
    fn id(&self, name: &str) -> Option<String>;
}

/// Knows sources.
pub trait Sources: Sync {
    /// The commit that a repository's working folder is at. Its tracked files must be clean.
    fn commit(&self, repository: &Utf8Path) -> Result<String, SourceFailure>;
    /// Makes the source appear at `destination`, replacing what is there. Paths in it start at `base`.
    fn check_out(
        &self,
        source: &Source,
        base: &Utf8Path,
        cache: &Utf8Path,
        destination: &Utf8Path,
    ) -> Result<(), SourceFailure>;
}

/// Why a source cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceFailure {
    #[error("has changes that are not committed: {changes}")]
    Dirty { changes: String },
    #[error("is not the folder of a git repository")]
    NoRepository,
    #[error(transparent)]
    Git(#[from] CommandError),
    #[error("{0}")]
    CheckOut(String),
}

/// All of it.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub images: &'a dyn Images,
    pub sources: &'a dyn Sources,
}

/// Asks the runtimes of this machine, once for each image.
#[derive(Debug, Default)]
pub struct LocalImages {
    known: Mutex<BTreeMap<String, Option<String>>>,
}

/// Asks the git of this machine. It fetches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalSources;

/// The id that stands for an image that nobody knows.
pub(super) fn stand_in_id(image: &str) -> String {
    format!("sha256:{}", hex(&Sha256::digest(image.as_bytes())))
}

impl Images for LocalImages {
    fn id(&self, name: &str) -> Option<String> {
        let lock = || {
            self.known
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        };
        if let Some(id) = lock().get(name) {
            return id.clone();
        }
        // Not under the lock: a runtime may take its time.
        let id = RUNTIMES.iter().find_map(|runtime| ask(runtime, name));
        lock().insert(name.to_owned(), id.clone());
        id
    }
}

fn ask(runtime: &str, image: &str) -> Option<String> {
    // A name that begins with a dash would be taken for an option.
    if image.starts_with('-') {
        return None;
    }
    let arguments = ["image", "inspect", "--format", "{{.Id}}", image];
    let output = command::run(runtime, &arguments, None, PATIENCE).ok()?;
    let id = output.trim();
    // Podman leaves the algorithm out.
    match id.strip_prefix("sha256:") {
        Some(_) => Some(id.to_owned()),
        None if !id.is_empty() => Some(format!("sha256:{id}")),
        None => None,
    }
}

impl Sources for LocalSources {
    fn commit(&self, repository: &Utf8Path) -> Result<String, SourceFailure> {
        if !repository.join(".git").exists() {
            return Err(SourceFailure::NoRepository);
        }
        let git = |arguments: &[&str]| command::run("git", arguments, Some(repository), PATIENCE);
        let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
        if !changes.is_empty() {
            let changes = changes.lines().take(5).map(str::trim).collect::<Vec<_>>();
            return Err(SourceFailure::Dirty {
                changes: changes.join(", "),
            });
        }
        let commit = git(&["rev-parse", "--verify", "HEAD^{commit}"])?;
        Ok(commit.trim().to_owned())
    }

    fn check_out(
        &self,
        _source: &Source,
        _base: &Utf8Path,
        _cache: &Utf8Path,
        _destination: &Utf8Path,
    ) -> Result<(), SourceFailure> {
        Err(SourceFailure::CheckOut(
            "this command does not fetch sources".to_owned(),
        ))
    }
}
