//! Where the cluster of `transom up` lives. Invariant: everything of it is below one folder, under names that are
//! listed here, and nothing but these names is ever removed: the folder may be anybody's.

use std::time::Duration;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use transom_host::access::{Access as _, Native};
use transom_host::files::{FileError, Files as _};
use transom_host::ipc::Endpoint;
use transom_model::Os;

use crate::context::Context;
use crate::environment;
use crate::failure::{Advice as _, Exit};

#[derive(Debug, clap::Args)]
pub(super) struct PlaceArguments {
    /// The folder of the cluster [default: `up` in the state folder; for users of Linux who are not root,
    /// ~/.local/state/transom/up]
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<Utf8PathBuf>,
}

/// The folder of one such cluster.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) folder: Utf8PathBuf,
}

impl PlaceArguments {
    pub(super) fn resolve(&self, cx: &Context) -> anyhow::Result<Place> {
        let folder = match &self.data_dir {
            Some(folder) => std::path::absolute(folder)?
                .try_into()
                .context("the path of the folder is not text")?,
            None => usual(cx)?,
        };
        Ok(Place { folder })
    }
}

/// How the cluster is reached that `transom up` starts where nobody says where.
pub(crate) fn usual_kubeconfig(cx: &Context) -> anyhow::Result<Utf8PathBuf> {
    let folder = usual(cx)?;
    Ok(Place { folder }.kubeconfig())
}

fn usual(cx: &Context) -> anyhow::Result<Utf8PathBuf> {
    if cx.host == Os::Windows || Native.is_elevated().unwrap_or(false) {
        return Ok(cx.layout.state.join("up"));
    }
    let home = cx.environment.text(&environment::HOME)?;
    let home = home
        .context("there is no folder for the cluster: HOME is not set")
        .hint("name one with --data-dir")
        .exit(Exit::Configuration)?;
    Ok(Utf8Path::new(home).join(".local/state/transom/up"))
}

impl Place {
    /// The state, certificates and kubeconfig of the server.
    pub(super) fn server(&self) -> Utf8PathBuf {
        self.folder.join("server")
    }

    pub(super) fn kubeconfig(&self) -> Utf8PathBuf {
        self.server().join("admin.kubeconfig")
    }

    /// What the node keeps.
    pub(super) fn agent(&self) -> Utf8PathBuf {
        self.folder.join("agent")
    }

    /// The logs of pods.
    pub(super) fn logs(&self) -> Utf8PathBuf {
        self.folder.join("logs")
    }

    /// What the process in the background has to say.
    pub(super) fn log(&self) -> Utf8PathBuf {
        self.folder.join("up.log")
    }

    /// What was started: the runtime and the address of the demonstration.
    pub(super) fn record(&self) -> Utf8PathBuf {
        self.folder.join("up.json")
    }

    /// Whether a cluster was started here, if only for a moment.
    pub(super) fn is_ours(&self) -> bool {
        self.server().join("lock").exists() || self.record().exists()
    }

    /// Whether a process uses the folder.
    pub(super) fn is_held(&self) -> bool {
        let lock = self.server().join("lock");
        lock.exists()
            && transom_host::files::Native
                .lock(&lock, Duration::ZERO)
                .is_err()
    }

    /// Removes what is ours, and the folder if nothing else is in it. The record goes last: without it a `down` that
    /// died would not know that there is more to do.
    pub(super) fn remove(&self) -> Result<(), FileError> {
        let files = transom_host::files::Native;
        for folder in [self.agent(), self.logs(), self.server(), self.run()] {
            files.remove_tree(&folder)?;
        }
        for file in [self.log(), self.record()] {
            match files.remove_file(&file) {
                Ok(()) | Err(FileError::NotFound { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
        if files.names(&self.folder)?.is_empty() {
            files.remove_tree(&self.folder)?;
        }
        Ok(())
    }

    /// Where the process can be asked to end.
    pub(super) fn control(&self) -> Endpoint {
        Endpoint::in_directory(&self.run(), "up")
    }

    /// What belongs to a process that runs.
    pub(super) fn run(&self) -> Utf8PathBuf {
        self.folder.join("run")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_cluster_is_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place {
            folder: folder.path().to_owned().try_into().unwrap(),
        };
        fs_err::write(place.folder.join("letter"), "mine").unwrap();
        assert!(!place.is_ours());
    }

    #[test]
    fn only_what_is_ours_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place {
            folder: folder.path().to_owned().try_into().unwrap(),
        };
        fs_err::create_dir_all(place.server().join("state")).unwrap();
        fs_err::write(place.record(), "{}").unwrap();
        fs_err::write(place.folder.join("letter"), "mine").unwrap();
        assert!(place.is_ours());
        place.remove().unwrap();
        assert!(!place.is_ours());
        assert!(place.folder.join("letter").exists());
        fs_err::remove_file(place.folder.join("letter")).unwrap();
        fs_err::create_dir_all(place.agent()).unwrap();
        place.remove().unwrap();
        assert!(!place.folder.exists());
    }
}
