//! `transom agent`: joins, then runs pods until it is told to stop.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use anyhow::Context as _;
use camino::Utf8PathBuf;
use http::Uri;
use k8s_openapi::api::core::v1::Taint;
use tokio_util::sync::CancellationToken;
use transom_agent::Eviction;
use transom_agent::join::{self, Folder, Identity, Join, JoinError, JoinToken};
use transom_host::files::Files;
use transom_model::Os;

use crate::commands::registration::Words;
use crate::context::Context;
use crate::environment;
use crate::failure::{Advice as _, Exit};
use crate::long_running::{self, Stop};
use crate::node::{self, Selection, Settings};
use crate::output::Output;

/// The name of the service.
pub(super) const NAME: &str = "transom-agent";

/// Where the API server expects agents.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 10250);

pub(super) const EXAMPLES: &str = "\
Examples:
  transom agent --server https://10.0.0.1:6443 --token-file token
  transom agent --server https://10.0.0.1:6443 --label rack=7 --taint gpu:NoSchedule
  transom agent --server https://10.0.0.1:6443 --runtime cri=unix:///run/containerd/containerd.sock
  transom agent --server https://10.0.0.1:6443 --runtime docker
  TRANSOM_TOKEN=$(ssh server transom token create) transom agent --server https://10.0.0.1:6443

The token is needed once: afterwards the machine has a certificate of its own, which it renews in
time. Pods go on running while the agent is stopped or replaced.";

#[derive(Debug, clap::Args)]
pub(super) struct Run {
    #[command(flatten)]
    flags: Flags,

    /// The service manager started this process
    #[arg(long, hide = true)]
    registered: bool,
}

/// How this machine is to be a node.
#[derive(Debug, clap::Args)]
pub(super) struct Flags {
    /// The server of the cluster
    #[arg(long, value_name = "URL", required = true)]
    server: Option<Uri>,

    /// A file with the token of `transom token create`, instead of the variable `TRANSOM_TOKEN`
    #[arg(long, value_name = "FILE")]
    token_file: Option<Utf8PathBuf>,

    /// The name of the node, instead of the host name
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,

    /// What runs the pods: oci, process, cri[=ENDPOINT] or docker[=ENDPOINT] [default: oci for root on Linux, else
    /// process]
    #[arg(long, value_name = "RUNTIME")]
    runtime: Option<Selection>,

    /// The image of the container that holds a pod, for the runtime docker
    #[arg(long, value_name = "IMAGE")]
    sandbox_image: Option<String>,

    /// A file with mirrors, passwords and certificates of registries, for the runtime oci
    #[arg(long, value_name = "FILE")]
    registries: Option<Utf8PathBuf>,

    /// Address and port where the API server asks for logs and shells
    /// [default: 0.0.0.0:10250]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// An address of this machine that the cluster uses; may be given several times
    #[arg(long = "address", value_name = "ADDRESS")]
    addresses: Vec<IpAddr>,

    /// A label of the node; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,

    /// A taint of the node when it is registered; may be given several times
    #[arg(long = "taint", value_name = "KEY[=VALUE]:EFFECT", value_parser = node::parse_taint)]
    taints: Vec<Taint>,

    /// How many pods may run here at once [default: 110]
    #[arg(long, value_name = "NUMBER")]
    max_pods: Option<u32>,

    /// Below what pods are evicted, such as `memory.available<100Mi,nodefs.available<10%`; nothing for never
    /// [default: those of kubelet]
    #[arg(long, value_name = "THRESHOLDS")]
    eviction_hard: Option<Eviction>,

    /// The folder of certificates, pods and images
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<Utf8PathBuf>,

    /// A folder of pod manifests that run here whatever the cluster says
    #[arg(long, value_name = "FOLDER")]
    static_pods: Option<Utf8PathBuf>,
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("expected KEY=VALUE, found `{text}`"))?;
    Ok((key.to_owned(), value.to_owned()))
}

impl Run {
    /// Whether anything was said about how to run.
    pub(super) fn has_flags(&self) -> bool {
        let is_registered = self.registered || self.flags.token_file.is_some();
        is_registered || self.flags.words().is_ok_and(|words| !words.is_empty())
    }

    #[cfg(test)]
    pub(super) fn flags(&self) -> &Flags {
        &self.flags
    }

    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let server = self.flags.server()?.clone();
        let token = self.flags.token(cx)?;
        let settings = self.flags.settings(cx, &server)?;
        let out = Arc::clone(&cx.out);
        long_running::raise_open_files();
        long_running::run(cx, NAME, self.registered, move |stop| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()?;
            runtime.block_on(work(&server, token.as_ref(), &settings, &out, stop))
        })
    }
}

impl Flags {
    fn server(&self) -> anyhow::Result<&Uri> {
        let missing = || anyhow::anyhow!("the server of the cluster is missing");
        self.server
            .as_ref()
            .ok_or_else(missing)
            .hint("give it with --server https://HOST:PORT")
            .exit(Exit::Usage)
    }

    /// The folder of all that the agent keeps.
    pub(super) fn data(&self, cx: &Context) -> Utf8PathBuf {
        let usual = || cx.layout.state.join("agent");
        self.data_dir.clone().unwrap_or_else(usual)
    }

    /// The same flags again, for the service manager; all but the token's.
    pub(super) fn words(&self) -> anyhow::Result<Vec<String>> {
        let mut words = Words::default();
        words.add("--server", self.server.as_ref().map(ToString::to_string));
        words.add("--node-name", self.node_name.clone());
        words.add("--runtime", self.runtime.as_ref().map(ToString::to_string));
        words.add("--sandbox-image", self.sandbox_image.clone());
        words.path("--registries", self.registries.as_deref())?;
        words.add("--listen", self.listen.map(|it| it.to_string()));
        words.add("--address", self.addresses.iter().map(ToString::to_string));
        let labels = self.labels.iter();
        words.add(
            "--label",
            labels.map(|(key, value)| format!("{key}={value}")),
        );
        words.add("--taint", self.taints.iter().map(node::render_taint));
        words.add("--max-pods", self.max_pods.map(|it| it.to_string()));
        let eviction = self.eviction_hard.as_ref();
        words.add("--eviction-hard", eviction.map(ToString::to_string));
        words.path("--data-dir", self.data_dir.as_deref())?;
        words.path("--static-pods", self.static_pods.as_deref())?;
        Ok(words.done())
    }

    /// The token, if there is one. An agent that has joined before needs none.
    pub(super) fn token(&self, cx: &Context) -> anyhow::Result<Option<JoinToken>> {
        let (text, place) = match &self.token_file {
            Some(file) => (Some(fs_err::read_to_string(file)?), format!("in `{file}`")),
            None => {
                let variable = cx.environment.text(&environment::TOKEN)?;
                (
                    variable.map(str::to_owned),
                    format!("in the variable {}", environment::TOKEN.name),
                )
            }
        };
        text.map(|text| text.parse())
            .transpose()
            .with_context(|| format!("the token {place} cannot be used"))
            .exit(Exit::Configuration)
    }

    fn settings(&self, cx: &Context, server: &Uri) -> anyhow::Result<Settings> {
        let addresses = if self.addresses.is_empty() {
            vec![address_towards(server)?]
        } else {
            self.addresses.clone()
        };
        Ok(Settings {
            name: match &self.node_name {
                Some(name) => name.clone(),
                None => node::usual_name()?,
            },
            runtime: self
                .runtime
                .clone()
                .unwrap_or_else(|| Selection::usual(cx.host)),
            sandbox_image: self.sandbox_image.clone(),
            registries: self.registries.clone(),
            listen: self.listen.unwrap_or(LISTEN),
            addresses,
            labels: self.labels.iter().cloned().collect::<BTreeMap<_, _>>(),
            taints: self.taints.clone(),
            max_pods: self.max_pods.unwrap_or(node::MAX_PODS),
            eviction: self
                .eviction_hard
                .clone()
                .unwrap_or_else(|| Eviction::usual(cx.host)),
            data: self.data(cx),
            logs: cx.layout.logs.join("pods"),
            static_pods: self.static_pods.clone(),
            environment: inherited(cx),
        })
    }
}

/// What host processes inherit: where programs and temporary files are, and nothing else.
pub(in crate::commands) fn inherited(cx: &Context) -> BTreeMap<String, String> {
    const NAMES: [&str; 10] = [
        "PATH",
        "PATHEXT",
        "SYSTEMROOT",
        "SYSTEMDRIVE",
        "WINDIR",
        "COMSPEC",
        "TEMP",
        "TMP",
        "LANG",
        "TZ",
    ];
    let is_named = |name: &str| match cx.host {
        Os::Windows => NAMES.iter().any(|known| known.eq_ignore_ascii_case(name)),
        Os::Linux => NAMES.contains(&name),
    };
    cx.environment
        .all()
        .into_iter()
        .filter(|(name, _)| is_named(name))
        .collect()
}

fn address_towards(server: &Uri) -> anyhow::Result<IpAddr> {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = server.port_u16().unwrap_or(443);
    let peer = (host, port)
        .to_socket_addrs()
        .ok()
        .and_then(|mut found| found.next())
        .with_context(|| format!("{server} has no address"))
        .hint(
            "give the address of the server as https://HOST:PORT, or this machine's with --address",
        )?;
    node::address_towards(peer)
}

async fn work(
    server: &Uri,
    token: Option<&JoinToken>,
    settings: &Settings,
    out: &Output,
    stop: &Stop,
) -> anyhow::Result<()> {
    let folder = settings.certificates();
    let wanted = Join {
        server,
        node: &settings.name,
        token,
        folder: &folder,
    };
    let files: Arc<dyn Files> = Arc::new(transom_host::files::Native);
    let clock = transom_agent::Clock::default();
    let joined = join::join(Arc::clone(&files), &wanted, &clock);
    let credentials = tokio::select! {
        joined = joined => joined.or_else(|error| explain(error, &folder))?,
        () = stop.requested() => return Ok(()),
    };
    out.remark(&format!("node {} of {server}", settings.name));
    let certificates = Folder::prepare(files, &folder)?;
    let identity = Identity::new(server, credentials, clock)?;
    let runtime = node::open(settings).await?.runtime;
    stop.ready();
    let end = CancellationToken::new();
    let authority = identity.authority();
    let node = node::run(
        identity.client(),
        &authority,
        settings,
        runtime,
        end.clone(),
    );
    let running = async {
        let ((), ran) = tokio::join!(identity.keep(&certificates, token, &end), node);
        ran
    };
    tokio::pin!(running);
    tokio::select! {
        ended = running.as_mut() => ended,
        () = stop.requested() => {
            end.cancel();
            running.await
        }
    }
}

fn explain<T>(error: JoinError, folder: &Utf8PathBuf) -> anyhow::Result<T> {
    let (hint, exit) = match &error {
        JoinError::NoToken(_) => (
            "run `transom token create` on a server",
            Exit::Configuration,
        ),
        JoinError::OtherNode { .. } => {
            return Err(error)
                .hint(format!(
                    "keep the name with --node-name, or remove `{folder}` to join anew"
                ))
                .exit(Exit::Configuration);
        }
        JoinError::Authority(_) => (
            "is --server right, and the server running?",
            Exit::NotRunning,
        ),
        _ => (
            "look at `kubectl get certificatesigningrequests`",
            Exit::Failure,
        ),
    };
    Err(error).hint(hint).exit(exit)
}
