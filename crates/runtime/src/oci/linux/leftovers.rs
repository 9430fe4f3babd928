//! Taking away what pods had: processes that attend to them, cgroups, networks and folders.
//!
//! Invariant: all of it may be repeated, and what is gone already is no error.

use std::io;
use std::sync::Arc;

use camino::Utf8Path;
use fs_err as fs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::client::ShimConnection;
use super::protocol::Call;
use super::records::PodFolder;
use super::runtime::OciRuntime;
use crate::{PodSpec, RuntimeError};

/// The group of the shims, beside those of the pods.
const SHIMS: &str = "shims";

impl OciRuntime {
    pub(super) fn shims_group(&self) -> String {
        format!("/{}/{SHIMS}", self.settings.cgroup)
    }

    /// Takes away a pod that was not made completely.
    pub(super) async fn discard_pod(
        self: &Arc<Self>,
        id: &str,
        folder: &PodFolder,
        spec: Option<&PodSpec>,
    ) -> Result<(), RuntimeError> {
        if let Ok(mut connection) = ShimConnection::open(folder).await
            && let Err(error) = connection.ask(Call::Shutdown, &[]).await
        {
            tracing::debug!(pod = id, %error, "the shim of a pod does not end by itself");
        }
        self.kill_attendants(folder, None);
        self.network.detach(id).await?;
        if let Some(spec) = spec {
            self.release_group(id, spec).await?;
        }
        remove_folder(&folder.0)
            .map_err(|error| RuntimeError::io(format!("remove {}", folder.0), error))
    }

    /// Removes the cgroup of a pod, unless another pod of the same object has it, too.
    pub(super) async fn release_group(
        self: &Arc<Self>,
        id: &str,
        spec: &PodSpec,
    ) -> Result<(), RuntimeError> {
        let group = self.cgroups.pod(&spec.cgroup_parent, &spec.uid);
        let is_shared = self.all().iter().any(|other| {
            let live = other.live();
            let spec = &live.record.spec;
            other.id != id && self.cgroups.pod(&spec.cgroup_parent, &spec.uid) == group
        });
        if is_shared {
            return Ok(());
        }
        self.clear_group(group).await
    }

    pub(super) async fn clear_group(self: &Arc<Self>, group: String) -> Result<(), RuntimeError> {
        let runtime = Arc::clone(self);
        super::blocking(move || {
            let cleared = runtime.cgroups.clear(&group);
            cleared.map_err(|error| RuntimeError::io(format!("remove the cgroup {group}"), error))
        })
        .await
    }

    /// Kills the shim of a pod, its helpers and the first process of its namespace, whatever is left of them.
    /// They are known by the folder that they work in: numbers of processes are given again.
    pub(super) fn kill_attendants(&self, folder: &PodFolder, first_process: Option<i32>) {
        let real = folder
            .0
            .canonicalize_utf8()
            .unwrap_or_else(|_| folder.0.clone());
        let candidates = self.cgroups.members(&self.shims_group());
        for pid in candidates.into_iter().chain(first_process) {
            if works_in(pid, &real) || is_shim_of(pid, &folder.0) {
                // Whoever is gone already needs no signal.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }
}

fn works_in(pid: i32, folder: &Utf8Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|found| found == folder.as_std_path())
}

/// A shim that has only just begun works elsewhere, but was told its folder.
fn is_shim_of(pid: i32, folder: &Utf8Path) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut last = words.split(|byte| *byte == 0).rev().skip(1);
    last.next() == Some(folder.as_str().as_bytes())
}

pub(super) fn remove_folder(path: &Utf8Path) -> io::Result<()> {
    unless_gone(fs::remove_dir_all(path))
}

pub(super) fn remove_file(path: &Utf8Path) -> io::Result<()> {
    unless_gone(fs::remove_file(path))
}

fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
