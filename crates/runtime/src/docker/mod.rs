//! Runs containers by Docker, or what speaks its language, on Linux and on Windows: for machines that have only that.
//!
//! A pod is a container that does nothing and holds the network; its other containers join that one. Invariant: all we
//! must know of a pod is in the labels of its containers over there. Nothing is kept here that could be lost, and
//! nothing is touched that does not carry our label.

mod client;
mod containers;
mod events;
mod frames;
mod images;
mod labels;
mod logs;
mod pause;
mod pods;
mod pull;
mod reach;
mod runtime;
mod sessions;
mod stats;
mod translate;
mod wire;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};
use transom_model::os::Os;

use crate::{Event, PodId};
use client::Client;
use logs::Logs;
use wire::Inspected;

const MOST_EVENTS: usize = 1024;

/// Where Docker is, and what it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// As `unix:///run/docker.sock` or `npipe:////./pipe/docker_engine`.
    pub address: String,
    /// The system of the containers.
    pub os: Os,
    /// What holds the network of a pod, instead of the program of our own that there is for Linux.
    pub sandbox_image: Option<String>,
}

/// Docker as a runtime of pods.
#[derive(Debug)]
pub struct DockerRuntime {
    inner: Arc<Inner>,
    /// Ends the tasks that watch for changes and write logs.
    _watching: DropGuard,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    client: Client,
    events: broadcast::Sender<Event>,
    logs: Logs,
    closing: CancellationToken,
    /// What was told of containers, good as long as they are in the same state.
    known: Mutex<HashMap<String, Arc<Inspected>>>,
}

impl DockerRuntime {
    /// Prepares to talk to Docker, which need not be there yet. Needs a tokio runtime.
    pub fn new(config: Config) -> Self {
        let closing = CancellationToken::new();
        let inner = Arc::new(Inner {
            client: Client::new(&config.address),
            config,
            events: broadcast::channel(MOST_EVENTS).0,
            logs: Logs::default(),
            closing: closing.clone(),
            known: Mutex::default(),
        });
        tokio::spawn(events::watch(Arc::clone(&inner)));
        Self {
            inner,
            _watching: closing.drop_guard(),
        }
    }
}

impl Inner {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<Inspected>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, pod: &PodId, container: Option<&crate::ContainerId>) {
        // Fails when nobody listens, which is fine.
        let _ = self.events.send(Event {
            pod: pod.clone(),
            container: container.cloned(),
        });
    }
}
