//! What runs pods on this machine: an agent, its runtime, its certificates, put together.

mod folder;
mod other_program;
mod runtimes;
mod selection;
mod taint;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use anyhow::Context as _;
use camino::Utf8PathBuf;
use k8s_openapi::api::core::v1::Taint;
use kube::Client;
use tokio_util::sync::CancellationToken;
use transom_agent::join::{Folder, Serving, Wanted};
use transom_host::files::Files;
use transom_host::machine::{Machine as _, Native};
use transom_runtime::Runtime;

pub(crate) use folder::{certificates, is_agents, remove, token_file};
pub(crate) use runtimes::{Choice, attend, clear, open};
pub(crate) use selection::Selection;
pub(crate) use taint::{parse as parse_taint, render as render_taint};

/// The name of the image that a node can make of this program.
pub(crate) const OWN_IMAGE: &str = concat!("transom.dev/transom:", env!("CARGO_PKG_VERSION"));

/// The pods of one machine, as upstream has it.
pub(crate) const MAX_PODS: u32 = 110;

/// How this machine is to be a node.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) runtime: Selection,
    /// What holds a pod in Docker, instead of the usual.
    pub(crate) sandbox_image: Option<String>,
    /// A file that says where images come from, for a runtime of our own.
    pub(crate) registries: Option<Utf8PathBuf>,
    pub(crate) listen: SocketAddr,
    /// The first is the main one.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) max_pods: u32,
    /// When pods have to go because the machine runs out of something.
    pub(crate) eviction: transom_agent::Eviction,
    pub(crate) data: Utf8PathBuf,
    pub(crate) logs: Utf8PathBuf,
    pub(crate) static_pods: Option<Utf8PathBuf>,
    /// What programs of pods without an image of their own find, `PATH` above all.
    pub(crate) environment: BTreeMap<String, String>,
}

impl Settings {
    /// Where the certificates of the node are.
    pub(crate) fn certificates(&self) -> Utf8PathBuf {
        certificates(&self.data)
    }
}

/// The name that this machine has as a node, if nobody gives it another: its host name in small letters.
pub(crate) fn usual_name() -> anyhow::Result<String> {
    let system = Native
        .system()
        .context("could not read the name of this machine")?;
    Ok(system.host_name.to_lowercase())
}

/// The address of this machine that `peer` sees. Nothing is sent.
pub(crate) fn address_towards(peer: SocketAddr) -> anyhow::Result<IpAddr> {
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket
        .connect(peer)
        .with_context(|| format!("this machine has no way to {peer}"))?;
    Ok(socket.local_addr()?.ip())
}

/// Where a node that listens on `address` is reached: on this machine itself if it listens everywhere.
pub(crate) fn reachable(address: SocketAddr) -> IpAddr {
    match address.ip() {
        IpAddr::V4(any) if any.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        ip => ip,
    }
}

/// Runs pods until `stop`. What runs goes on running afterwards.
pub(crate) async fn run(
    client: Client,
    authority: &str,
    settings: &Settings,
    runtime: Arc<dyn Runtime>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let files: Arc<dyn Files> = Arc::new(transom_host::files::Native);
    let folder = Folder::prepare(Arc::clone(&files), &settings.certificates())?;
    let serving = Arc::new(Serving::default());
    let clock = transom_agent::Clock::default();
    let options = transom_agent::Options {
        node: settings.name.clone(),
        machine: Arc::new(Native),
        files,
        access: Arc::new(transom_host::access::Native),
        runtime,
        labels: settings.labels.clone(),
        taints: settings.taints.clone(),
        addresses: settings.addresses.clone(),
        listen: Some(transom_agent::Listen {
            address: settings.listen,
            tls: Arc::new(serving.config(authority)?),
        }),
        state: settings.data.clone(),
        logs: settings.logs.clone(),
        static_pods: settings.static_pods.clone(),
        max_pods: settings.max_pods,
        reserved: transom_agent::Reserved::default(),
        eviction: settings.eviction.clone(),
        dns: transom_agent::ClusterDns::default(),
        clock: clock.clone(),
    };
    let wanted = Wanted {
        node: &settings.name,
        addresses: &settings.addresses,
        authority,
        folder: &folder,
        clock: &clock,
    };
    let keep = serving.keep(&client, &wanted, &stop);
    let run = transom_agent::run(client.clone(), options, stop.clone());
    let run = async {
        let ran = run.await;
        // Nobody shows a certificate of an agent that has ended.
        stop.cancel();
        ran
    };
    let ((), ran) = tokio::join!(keep, run);
    Ok(ran?)
}
