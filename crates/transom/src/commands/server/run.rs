//! `transom server`: serves until it is told to stop.

use std::num::NonZeroU32;
use std::sync::Arc;

use camino::Utf8PathBuf;
use tokio_util::sync::CancellationToken;
use transom_api::Settings;
use transom_api::server::{Options, StartError};

use super::DataFolder;
use crate::commands::registration::Words;
use crate::context::Context;
use crate::control_plane::{ControlPlane, Loop};
use crate::failure::{Advice as _, Exit};
use crate::long_running::{self, Stop};
use crate::output::Output;
use crate::registries;
use crate::settings::server::{HostName, Listen, SchedulerName, StoreName, at_least_one};
use crate::settings::{ServerSettings, Source};

/// The name of the service.
pub(super) const NAME: &str = "transom-server";

pub(super) const EXAMPLES: &str = "\
Examples:
  transom server
  transom server --listen 0.0.0.0:6443 --name api.example.org
  transom server --data-dir /srv/transom --store memory
  transom server --config /srv/transom.yaml

The administrator's kubeconfig is in the data folder:
  export KUBECONFIG=/var/lib/transom/server/admin.kubeconfig
  kubectl get namespaces

Every flag can stand in the configuration file and in a variable: transom help configuration";

#[derive(Debug, clap::Args)]
pub(super) struct Run {
    #[command(flatten)]
    data: DataFolder,

    /// Address and port of the API; port 0 lets the system choose [default: 0.0.0.0:6443]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Listen>,

    /// A name or address under which clients reach the server; may be given several times
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<HostName>,

    /// Where objects are kept: `local`; `memory`, which is empty again after a stop; or an etcd cluster
    /// that several servers share: etcd://HOST:PORT[,HOST:PORT…][/PREFIX] [default: local]
    #[arg(long, value_name = "STORE")]
    store: Option<StoreName>,

    /// Who signed the certificates of etcd's servers; with it the connection is encrypted
    #[arg(long, value_name = "FILE")]
    etcd_ca: Option<Utf8PathBuf>,

    /// The certificate that this server shows to etcd
    #[arg(long, value_name = "FILE")]
    etcd_cert: Option<Utf8PathBuf>,

    /// The key of that certificate
    #[arg(long, value_name = "FILE")]
    etcd_key: Option<Utf8PathBuf>,

    /// How many connections are open at once; others wait [default: 10000]
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one)]
    max_connections: Option<NonZeroU32>,

    /// A file with mirrors, passwords and certificates of registries, which are asked what images are for
    #[arg(long, value_name = "FILE")]
    registries: Option<Utf8PathBuf>,

    /// A scheduler, beside the usual one, that pods can name, and what it does otherwise:
    /// NAME[,packing=fill][,nodes=PERCENT][,images=5]…; may be given several times
    #[arg(long = "scheduler", value_name = "SCHEDULER")]
    schedulers: Vec<SchedulerName>,

    /// A loop that runs elsewhere, and not beside this server; may be given several times
    #[arg(long = "disable", value_name = "LOOP")]
    disabled: Vec<Loop>,

    /// The service manager started this process
    #[arg(long, hide = true)]
    registered: bool,
}

impl Run {
    /// What holds when the flags have had their say.
    fn settings(&self, cx: &Context) -> ServerSettings {
        let below = cx.settings.server.clone();
        let names = Some(self.names.clone()).filter(|names| !names.is_empty());
        let schedulers = Some(self.schedulers.clone()).filter(|all| !all.is_empty());
        let files = [
            &self.etcd_ca,
            &self.etcd_cert,
            &self.etcd_key,
            &self.registries,
        ];
        let [ca, cert, key, registries] = files.map(|flag| flag.clone().map(Some));
        ServerSettings {
            data_dir: self.data.setting(cx),
            listen: below.listen.overruled(self.listen, "--listen"),
            names: below.names.overruled(names, "--name"),
            store: below.store.overruled(self.store.clone(), "--store"),
            etcd_ca: below.etcd_ca.overruled(ca, "--etcd-ca"),
            etcd_cert: below.etcd_cert.overruled(cert, "--etcd-cert"),
            etcd_key: below.etcd_key.overruled(key, "--etcd-key"),
            max_connections: below
                .max_connections
                .overruled(self.max_connections, "--max-connections"),
            registries: below.registries.overruled(registries, "--registries"),
            schedulers: below.schedulers.overruled(schedulers, "--scheduler"),
        }
    }

    /// A flag that was given, if any was.
    pub(super) fn first_flag(&self) -> Option<&'static str> {
        [
            (self.data.data_dir.is_some(), "--data-dir"),
            (self.listen.is_some(), "--listen"),
            (!self.names.is_empty(), "--name"),
            (self.store.is_some(), "--store"),
            (self.etcd_ca.is_some(), "--etcd-ca"),
            (self.etcd_cert.is_some(), "--etcd-cert"),
            (self.etcd_key.is_some(), "--etcd-key"),
            (self.max_connections.is_some(), "--max-connections"),
            (self.registries.is_some(), "--registries"),
            (!self.schedulers.is_empty(), "--scheduler"),
            (!self.disabled.is_empty(), "--disable"),
            (self.registered, "--registered"),
        ]
        .into_iter()
        .find_map(|(given, flag)| given.then_some(flag))
    }

    /// The same flags again, for the service manager. Paths hold wherever it starts us.
    pub(super) fn words(&self) -> anyhow::Result<Vec<String>> {
        let mut words = Words::default();
        words.path("--data-dir", self.data.data_dir.as_deref())?;
        words.add("--listen", self.listen.map(|listen| listen.to_string()));
        words.add("--name", self.names.iter().map(ToString::to_string));
        words.add("--store", self.store.as_ref().map(ToString::to_string));
        words.path("--etcd-ca", self.etcd_ca.as_deref())?;
        words.path("--etcd-cert", self.etcd_cert.as_deref())?;
        words.path("--etcd-key", self.etcd_key.as_deref())?;
        words.add(
            "--max-connections",
            self.max_connections.map(|it| it.to_string()),
        );
        words.path("--registries", self.registries.as_deref())?;
        words.add(
            "--scheduler",
            self.schedulers.iter().map(ToString::to_string),
        );
        words.add(
            "--disable",
            self.disabled.iter().map(|each| each.word().to_owned()),
        );
        Ok(words.done())
    }

    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let out = Arc::clone(&cx.out);
        let settings = self.settings(cx);
        let options = options(&settings)?;
        let file = settings.registries.value.as_deref();
        let registries = file.map(registries::load).transpose()?.unwrap_or_default();
        long_running::raise_open_files();
        long_running::run(cx, NAME, self.registered, move |stop| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()?;
            let plane = ControlPlane::start(&options, &self.disabled);
            let profiles = settings.schedulers.value.iter().map(SchedulerName::profile);
            let profiles: Vec<_> = profiles.cloned().collect();
            let served = runtime.block_on(async {
                let plane = plane.await?.with_schedulers(profiles);
                let plane = plane.with_registries(registries);
                serve(plane, &out, stop).await
            });
            served.or_else(|error| explain(error, &settings))
        })
    }
}

/// How a server is to run by these settings.
pub(super) fn options(settings: &ServerSettings) -> anyhow::Result<Options> {
    let store = settings.store_choice().or_else(|error| {
        let (hint, exit) = (error.hint(), error.exit());
        Err(error).hint(hint).exit(exit)
    })?;
    let names = settings.names.value.iter().map(ToString::to_string);
    // No machine that counts in fewer bits has room for as many.
    let max_connections =
        usize::try_from(settings.max_connections.value.get()).unwrap_or(usize::MAX);
    Ok(Options {
        data: settings.data_dir.value.clone(),
        listen: settings.listen.value.0,
        names: names.collect(),
        store,
        settings: Settings {
            max_connections,
            ..Settings::default()
        },
    })
}

async fn serve(plane: ControlPlane, out: &Output, stop: &Stop) -> anyhow::Result<()> {
    out.remark(&format!("listening on https://{}", plane.address()));
    out.remark(&format!(
        "kubeconfig of the administrator: {}",
        plane.kubeconfig()
    ));
    stop.ready();
    let end = CancellationToken::new();
    let serving = plane.run(end.clone());
    tokio::pin!(serving);
    tokio::select! {
        ended = serving.as_mut() => ended,
        () = stop.requested() => {
            end.cancel();
            serving.await
        }
    }
}

/// Adds the way forward to what kept a server from starting: where the wrong value was said.
fn explain(error: anyhow::Error, settings: &ServerSettings) -> anyhow::Result<()> {
    let hint = match error.downcast_ref() {
        Some(StartError::Listen { .. }) => Some(match &settings.listen.source {
            Source::File { path } => {
                format!("change server.listen in `{path}`, or choose another one with --listen")
            }
            Source::Variable { name } => {
                format!("change the variable {name}, or choose another one with --listen")
            }
            Source::Flag { .. } | Source::Default => "choose another one with --listen".to_owned(),
        }),
        Some(StartError::InUse { .. }) => Some(match &settings.data_dir.source {
            Source::File { path } => {
                format!("stop the other server, or change server.dataDir in `{path}`")
            }
            Source::Variable { name } => {
                format!("stop the other server, or change the variable {name}")
            }
            Source::Flag { .. } | Source::Default => {
                "stop the other server, or choose another --data-dir".to_owned()
            }
        }),
        _ => None,
    };
    match hint {
        None => Err(error),
        Some(hint) => Err(error).hint(hint),
    }
}
