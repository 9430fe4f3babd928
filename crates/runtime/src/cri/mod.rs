//! Runs containers by another runtime that speaks the container runtime interface, such as containerd, on Linux and
//! on Windows.
//!
//! Invariant: all we must know of a pod is in its labels and annotations over there. Nothing is kept here that could
//! be lost, and nothing is touched that does not carry our label.

mod client;
mod containers;
mod events;
mod images;
mod pods;
mod runtime;
mod streaming;
mod translate;
mod wire;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};
use transom_model::os::Os;

use crate::{ContainerId, Event};
use client::Client;
use wire::ContainerStatus;

const MOST_EVENTS: usize = 1024;

/// Where the runtime is, and what it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// As `unix:///run/containerd/containerd.sock` or `npipe:////./pipe/containerd-containerd`.
    pub address: String,
    /// The system of the containers.
    pub os: Os,
    /// Processors of the node, of which Windows counts shares.
    pub processors: u32,
}

/// A runtime behind the container runtime interface.
#[derive(Debug)]
pub struct CriRuntime {
    inner: Arc<Inner>,
    /// Ends the task that watches for changes.
    _watching: DropGuard,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    client: Client,
    events: broadcast::Sender<Event>,
    /// What cannot change any more: containers that have ended, images that are here.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    statuses: HashMap<ContainerId, ContainerStatus>,
    platforms: BTreeMap<String, images::Platform>,
}

impl CriRuntime {
    /// Prepares to talk to the runtime, which need not be there yet. Needs a tokio runtime.
    pub fn new(config: Config) -> Self {
        let closing = CancellationToken::new();
        let inner = Arc::new(Inner {
            client: Client::new(&config.address),
            config,
            events: broadcast::channel(MOST_EVENTS).0,
            known: Mutex::default(),
        });
        tokio::spawn(events::watch(Arc::clone(&inner), closing.clone()));
        Self {
            inner,
            _watching: closing.drop_guard(),
        }
    }
}

impl Inner {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
