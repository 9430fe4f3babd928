//! The cluster itself, in this process: control plane and node, until it is asked to end.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use transom_api::Settings as ApiSettings;
use transom_api::server::{Options, StartError, StoreChoice};
use transom_host::files::{Access, FileError, Files as _, Native};
use transom_host::ipc::{self, Listener};

use super::demo;
use super::place::Place;
use crate::commands::agent::inherited;
use crate::context::Context;
use crate::control_plane::ControlPlane;
use crate::failure::{Advice as _, Exit};
use crate::long_running::{self, Stop};
use crate::node::{self, Choice, Settings};
use crate::output::Output;
use crate::registries;

/// The name of the service.
const NAME: &str = "transom-up";
const LARGEST_RECORD: u64 = 64 << 10;
/// How long to wait after a client that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// What was asked for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) listen: SocketAddr,
    pub(super) agent_listen: SocketAddr,
    pub(super) node_name: String,
    pub(super) runtime: Choice,
    pub(super) registries: Option<Utf8PathBuf>,
    pub(super) demo: Option<SocketAddr>,
}

/// What runs, for those who look for it: `up` again, and `down`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// Another one at each start, so that what is left of an earlier one is known as such.
    pub(super) instance: String,
    pub(super) server: String,
    pub(super) node: String,
    pub(super) runtime: Choice,
    /// Where the demonstration answers, if there is one.
    pub(super) demo: Option<SocketAddr>,
}

impl Record {
    /// What was started here last. `None` if nothing came that far.
    pub(super) fn read(place: &Place) -> anyhow::Result<Option<Self>> {
        match Native.read(&place.record(), LARGEST_RECORD) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(FileError::NotFound { .. }) => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }
}

/// Runs the cluster until Ctrl-C, a service manager or `transom down`.
pub(super) fn run(cx: &Context, place: &Place, wanted: Wanted) -> anyhow::Result<Exit> {
    let (place, out) = (place.clone(), Arc::clone(&cx.out));
    let environment = inherited(cx);
    long_running::raise_open_files();
    long_running::run(cx, NAME, false, move |stop| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(serve(&place, &wanted, environment, &out, stop))
    })
}

async fn serve(
    place: &Place,
    wanted: &Wanted,
    environment: BTreeMap<String, String>,
    out: &Output,
    stop: &Stop,
) -> anyhow::Result<()> {
    let before = Record::read(place)?;
    refuse_another_runtime(before.as_ref(), wanted)?;
    let options = Options {
        data: place.server(),
        listen: wanted.listen,
        names: Vec::new(),
        store: StoreChoice::Local,
        settings: ApiSettings::default(),
    };
    let registries = wanted.registries.as_deref().map(registries::load);
    let registries = registries.transpose()?.unwrap_or_default();
    let control_plane = ControlPlane::start(&options, &[]).await.or_else(explain)?;
    let control_plane = control_plane.with_registries(registries);
    Native.create_dir_all(&place.run())?;
    let mut control = Listener::bind(&place.control(), ipc::Access::OwnerOnly)
        .context("could not listen for `transom down`")?;
    let demo = demo_address(before.as_ref(), wanted)?;
    let record = Record {
        instance: uuid::Uuid::new_v4().to_string(),
        server: format!("https://{}", control_plane.address()),
        node: wanted.node_name.clone(),
        runtime: wanted.runtime,
        demo,
    };
    let text = serde_json::to_vec_pretty(&record)?;
    Native.write_durable(&place.record(), &text, Access::Secret)?;
    out.remark(&format!("listening on {}", record.server));
    out.remark(&format!(
        "kubeconfig of the administrator: {}",
        control_plane.kubeconfig()
    ));
    stop.ready();

    let end = CancellationToken::new();
    // The node ends before the server lets go of its folder: who waits for that, as `down` does, takes the pods away,
    // and a node that still lived would bring them back.
    let leave = end.child_token();
    let authority = control_plane.authorities();
    // The node tells its port before it listens on it, so it cannot be left open.
    let agent_listen = if wanted.agent_listen.port() == 0 {
        free_address(wanted.agent_listen)?
    } else {
        wanted.agent_listen
    };
    let settings = Settings {
        name: wanted.node_name.clone(),
        runtime: wanted.runtime.into(),
        sandbox_image: None,
        registries: wanted.registries.clone(),
        listen: agent_listen,
        addresses: vec![node::reachable(agent_listen)],
        labels: BTreeMap::new(),
        taints: Vec::new(),
        max_pods: node::MAX_PODS,
        eviction: transom_agent::Eviction::lenient(transom_host::machine::OS),
        data: place.agent(),
        logs: place.logs(),
        static_pods: None,
        environment,
    };
    let client = control_plane.client_as(&format!("system:node:{}", wanted.node_name));
    let deployer = control_plane.client_as("transom:up");
    let ready = node::open(&settings).await?;
    let node = async {
        let shown = async {
            if let Some(address) = demo {
                ready.make_own_image().await?;
                demo::deploy(&deployer, wanted.runtime, address).await?;
            }
            anyhow::Ok(())
        };
        let runtime = Arc::clone(&ready.runtime);
        let run = node::run(client, &authority, &settings, runtime, leave.clone());
        // Nobody waits for something to look at in a cluster that ends.
        let (shown, ran) = tokio::join!(leave.run_until_cancelled(shown), run);
        shown.unwrap_or(Ok(())).and(ran)
    };
    let ended = async {
        let (served, ran) = tokio::join!(control_plane.run(end.clone()), async {
            let ran = node.await;
            // A cluster without its only node is of no use to anybody.
            end.cancel();
            ran
        });
        served.and(ran)
    };
    tokio::pin!(ended);
    tokio::select! {
        ended = ended.as_mut() => ended,
        () = stop.requested() => {
            leave.cancel();
            ended.await
        }
        () = asked(&mut control) => {
            leave.cancel();
            ended.await
        }
    }
}

/// Pods that another runtime runs would go on, and nobody would know them.
fn refuse_another_runtime(before: Option<&Record>, wanted: &Wanted) -> anyhow::Result<()> {
    let Some(before) = before.filter(|before| before.runtime != wanted.runtime) else {
        return Ok(());
    };
    let (was, is) = (before.runtime.word(), wanted.runtime.word());
    Err(anyhow::anyhow!(
        "the pods of this cluster are of the runtime {was}, not {is}"
    ))
    .hint(format!(
        "go on with --runtime {was}, or end it with `transom down` first"
    ))
    .exit(Exit::Usage)
}

/// `wanted`, or one beside it if somebody else has it.
fn free_address(wanted: SocketAddr) -> anyhow::Result<SocketAddr> {
    let any = SocketAddr::new(wanted.ip(), 0);
    let listener = TcpListener::bind(wanted)
        .or_else(|_| TcpListener::bind(any))
        .with_context(|| format!("nothing can listen on {wanted}"))?;
    Ok(listener.local_addr()?)
}

/// Where the demonstration is to answer: where it did before if it did, since its pod may still run there.
fn demo_address(before: Option<&Record>, wanted: &Wanted) -> anyhow::Result<Option<SocketAddr>> {
    let Some(address) = wanted.demo else {
        return Ok(None);
    };
    let before = before.and_then(|record| record.demo);
    match before.filter(|before| before.ip() == address.ip()) {
        Some(before) => Ok(Some(before)),
        None => free_address(address).map(Some),
    }
}

/// Completes when somebody asks us to end: connecting is asking, since only the owner can.
async fn asked(control: &mut Listener) {
    while control.accept().await.is_err() {
        tokio::time::sleep(PAUSE).await;
    }
}

fn explain<T>(error: anyhow::Error) -> anyhow::Result<T> {
    match error.downcast_ref() {
        Some(StartError::Listen { .. }) => Err(error).hint("choose another one with --listen"),
        Some(StartError::InUse { .. }) => {
            Err(error).hint("it runs already: `transom down` ends it")
        }
        _ => Err(error),
    }
}
