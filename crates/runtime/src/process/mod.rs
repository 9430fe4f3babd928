//! Runs containers as processes of the node itself: on Windows what Kubernetes calls `HostProcess`, on Linux the
//! same idea. No image, no network and no root file system of their own; limits, logs, streams and ends like any.
//!
//! Invariant: every container has a **keeper**, a small process of this binary that outlives the agent, is the
//! parent of the program and writes down how it ended. Without its keeper a program does not live; without the
//! agent both do.
//!
//! # What a container finds
//!
//! - Its own folder, named by `CONTAINER_SANDBOX_MOUNT_POINT`. It is the working directory if none is given, and
//!   volumes are below it at the paths they would be mounted at: a mount at `/etc/app` (or `C:\etc\app`) is at
//!   `$CONTAINER_SANDBOX_MOUNT_POINT/etc/app`. The variable may stand in commands, arguments, variables and
//!   the working directory, in the spelling of any shell.
//! - Volumes are links to the node's folders, so read-only is a wish here. Where the system cannot link, they are
//!   copies as of the start.
//! - An image is a folder (or a `.zip` or `.tar`) of the node's image store, copied into the container's folder. The
//!   image `transom.dev/host` means the node as it is: programs come from its `PATH`. All others are refused.
//!
//! # Platform behavior
//!
//! On Windows only containers that are said to be a `HostProcess` are run. They are asked to end by the end of their
//! standard input, which is open until then.

mod containers;
mod folder;
mod image_store;
pub mod keeper;
mod link;
mod load;
mod mounts;
mod pods;
mod program;
mod runtime;
mod session;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};
use transom_host::files::{Discarded, FileError, Files, Native};

use crate::{ContainerId, Event, PodId, RuntimeError};
use containers::Held;
use folder::PodRecord;
pub use keeper::keeper_main;

/// Events that may wait for a slow listener, who lists again if it misses some.
const MOST_EVENTS: usize = 1024;

/// What the runtime has to know of the node.
#[derive(Clone)]
pub struct Config {
    /// Where pods and containers are written down. One runtime owns it.
    pub folder: Utf8PathBuf,
    /// Where images are, as folders or archives.
    pub images: Utf8PathBuf,
    /// The binary that becomes a keeper when called with [`Config::keeper_arguments`] and a folder.
    pub keeper_program: Utf8PathBuf,
    pub keeper_arguments: Vec<String>,
    /// What all programs find in their environment, `PATH` above all. Nothing else is inherited.
    pub environment: BTreeMap<String, String>,
}

impl fmt::Debug for Config {
    /// Values of variables may be secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("folder", &self.folder)
            .field("images", &self.images)
            .field("keeper_program", &self.keeper_program)
            .finish_non_exhaustive()
    }
}

/// The runtime of host processes.
#[derive(Debug)]
pub struct ProcessRuntime {
    inner: Arc<Inner>,
    /// Ends the tasks that watch keepers. The keepers stay.
    _watching: DropGuard,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    state: Mutex<State>,
    events: broadcast::Sender<Event>,
    closing: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    pods: BTreeMap<PodId, PodRecord>,
    containers: BTreeMap<ContainerId, Arc<Held>>,
}

impl ProcessRuntime {
    /// Opens the runtime and takes over all that runs already.
    pub async fn open(config: Config) -> Result<Self, RuntimeError> {
        let closing = CancellationToken::new();
        let inner = Arc::new(Inner {
            config,
            state: Mutex::default(),
            events: broadcast::channel(MOST_EVENTS).0,
            closing: closing.clone(),
        });
        inner.load().await?;
        Ok(Self {
            inner,
            _watching: closing.drop_guard(),
        })
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, pod: &PodId, container: Option<&ContainerId>) {
        // Fails when nobody listens, which is fine.
        let _ = self.events.send(Event {
            pod: pod.clone(),
            container: container.cloned(),
        });
    }

    fn held(&self, id: &ContainerId) -> Result<Arc<Held>, RuntimeError> {
        let state = self.state();
        let held = state.containers.get(id).cloned();
        held.ok_or_else(|| RuntimeError::NotFound {
            what: "container",
            id: id.to_string(),
        })
    }
}

/// Does what waits for a disk or a process where it holds nobody up.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, RuntimeError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(RuntimeError::Other(error.to_string())))
}

/// An error with all its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Removes a folder at once, as far as anybody can see.
fn discard(path: &Utf8Path) -> Result<(), RuntimeError> {
    if let Discarded::Left { path, reason } = Native.discard(path).map_err(file_error)? {
        // It has a name that the next start sweeps.
        tracing::warn!(%path, %reason, "the remains of a folder cannot be removed yet");
    }
    Ok(())
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "for `map_err`, which gives it away"
)]
fn file_error(error: FileError) -> RuntimeError {
    RuntimeError::Other(chain(&error))
}
