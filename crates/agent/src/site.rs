//! What all parts of an agent share: the node they work on.

use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::{Client, runtime::reflector::Store};
use tokio::sync::Semaphore;
use transom_host::files::path;
use transom_model::Os;

use crate::{
    Options,
    compose::Allocatable,
    config::Config,
    events::Events,
    figures::Figures,
    images::{Collector, Told},
    observer::Observer,
    pods::{Place, Room, Statuses},
    pressure::Pressure,
    telemetry::{Counted, Operations},
    volumes::Tokens,
};

/// How many sandboxes and containers are made at the same time, and how many images are pulled.
const STARTS: usize = 16;
const PULLS: usize = 5;

pub(crate) struct Site {
    pub(crate) options: Options,
    pub(crate) os: Os,
    pub(crate) client: Client,
    pub(crate) events: Events,
    pub(crate) observer: Observer,
    pub(crate) figures: Figures,
    pub(crate) images: Collector,
    pub(crate) told: Told,
    pub(crate) pressure: Pressure,
    pub(crate) operations: Operations,
    pub(crate) statuses: Statuses,
    pub(crate) config: Config,
    pub(crate) tokens: Tokens,
    pub(crate) room: Room,
    pub(crate) services: Store<Service>,
    pub(crate) starts: Semaphore,
    pub(crate) pulls: Semaphore,
    pub(crate) allocatable: Allocatable,
    pub(crate) memory_bytes: u64,
    place: Mutex<Arc<Place>>,
    node: Mutex<Option<Arc<Node>>>,
}

impl Site {
    pub(crate) fn new(
        client: Client,
        mut options: Options,
        events: Events,
        services: Store<Service>,
        capacity: crate::node::Capacity,
    ) -> Self {
        let operations = Operations::default();
        options.runtime = Arc::new(Counted::new(options.runtime, operations.clone()));
        let place = Place {
            addresses: options.addresses.iter().map(ToString::to_string).collect(),
            runtime: "transom".to_owned(),
        };
        Self {
            os: options.machine.os(),
            observer: Observer::new(Arc::clone(&options.runtime)),
            figures: Figures::default(),
            images: Collector::default(),
            told: Told::default(),
            pressure: Pressure::default(),
            operations,
            statuses: Statuses::default(),
            config: Config::new(client.clone()),
            tokens: Tokens::default(),
            room: Room::default(),
            services,
            starts: Semaphore::new(STARTS),
            pulls: Semaphore::new(PULLS),
            allocatable: capacity.allocatable(options.reserved),
            memory_bytes: capacity.memory_bytes,
            place: Mutex::new(Arc::new(place)),
            node: Mutex::default(),
            client,
            events,
            options,
        }
    }

    pub(crate) fn place(&self) -> Arc<Place> {
        Arc::clone(&self.place.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The runtime told its name.
    pub(crate) fn set_runtime(&self, name: &str) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.runtime != name {
            let addresses = place.addresses.clone();
            *place = Arc::new(Place {
                addresses,
                runtime: name.to_owned(),
            });
        }
    }

    /// The node as the API has it, if that is known.
    pub(crate) fn node(&self) -> Option<Arc<Node>> {
        self.node
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_node(&self, node: Option<Node>) {
        *self.node.lock().unwrap_or_else(PoisonError::into_inner) = node.map(Arc::new);
    }

    /// The folder of all pods.
    pub(crate) fn pods_folder(&self) -> Utf8PathBuf {
        path::join(self.os, &self.options.state, "pods")
    }

    /// The folder of what is kept for one pod.
    pub(crate) fn pod_folder(&self, uid: &str) -> Utf8PathBuf {
        path::join(self.os, &self.pods_folder(), uid)
    }

    /// A path below the folder of a pod.
    pub(crate) fn below_pod(&self, pod: &Pod, below: &str) -> Utf8PathBuf {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        path::join(self.os, &self.pod_folder(uid), below)
    }
}
