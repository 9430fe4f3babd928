//! What makes a bound pod a running pod: one agent per node, the same on Linux and Windows.
//!
//! The agent looks at what is wanted and at what runs, decides in a pure function, and acts by calls that may be
//! repeated. Nothing it needs to go on running pods is only in the API or only in memory.

mod compose;
mod config;
mod events;
mod fault;
mod figures;
mod hooks;
mod images;
pub mod join;
mod node;
mod observer;
mod options;
mod pods;
mod pressure;
mod probes;
mod quantity;
mod resources;
mod rotation;
mod server;
mod site;
mod telemetry;
mod volumes;

use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt as _,
        reflector::store::Writer,
        watcher::{self, Config},
    },
};
use tokio_util::sync::CancellationToken;

pub use options::{Clock, ClusterDns, Listen, Options, Reserved};
pub use pressure::{Eviction, Least, Signal, Threshold, ThresholdError};

use crate::{events::Events, pods::Pods, site::Site};

/// Why an agent could not begin.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("the machine does not tell what it is")]
    Machine(#[from] transom_host::machine::MachineError),
    #[error("the agent has no place for its state")]
    State(#[from] transom_host::files::FileError),
    #[error("the agent's state could not be closed to others")]
    Access(#[from] transom_host::access::AccessError),
}

/// Runs a node until `stop`. What runs on it goes on running, and is found again by the next agent.
pub async fn run(
    client: Client,
    options: Options,
    stop: CancellationToken,
) -> Result<(), AgentError> {
    // All parts together are large: they have a place of their own.
    Box::pin(work(client, options, stop)).await
}

async fn work(client: Client, options: Options, stop: CancellationToken) -> Result<(), AgentError> {
    options.files.create_dir_all(&options.state)?;
    let capacity = node::Capacity::of(&options)?;
    options
        .access
        .ensure_folder(&options.state, "pods".into(), None, 0o700)?;
    options.files.create_dir_all(&options.logs)?;
    let (events, outbox) = Events::new(options.clock.clone());
    let services = Writer::<Service>::default();
    let site = Arc::new(Site::new(
        client.clone(),
        options,
        events,
        services.as_reader(),
        capacity,
    ));
    let pods = Arc::new(Pods::new(Arc::clone(&site)));
    let node = site.options.node.clone();
    let serve = async {
        if let Some(listen) = site.options.listen.clone() {
            server::run(Arc::clone(&site), Arc::clone(&pods), listen, stop.clone()).await;
        }
    };
    tokio::join!(
        serve,
        outbox.run(client.clone(), node, stop.clone()),
        site.observer.run(stop.clone()),
        site.statuses.run(client.clone(), stop.clone()),
        follow_services(client, services, stop.clone()),
        images::collect(Arc::clone(&site), stop.clone()),
        pressure::run(Arc::clone(&site), Arc::clone(&pods), stop.clone()),
        figures::run(Arc::clone(&site), Arc::clone(&pods), stop.clone()),
        rotation::run(Arc::clone(&site), stop.clone()),
        node::run(Arc::clone(&site), stop.clone()),
        node::keep_lease(Arc::clone(&site), stop.clone()),
        pods::run(Arc::clone(&site), Arc::clone(&pods), stop.clone()),
    );
    Ok(())
}

async fn follow_services(client: Client, mut writer: Writer<Service>, stop: CancellationToken) {
    let watcher = watcher::watcher(Api::<Service>::all(client), Config::default());
    let mut events = std::pin::pin!(watcher.default_backoff());
    while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
        match event {
            Ok(event) => writer.apply_watcher_event(&event),
            Err(error) => {
                tracing::debug!(%error, "the watch for services failed and is tried again");
            }
        }
    }
}
