//! What decides in a cluster: the API server, and the loops that watch it. Invariant: the loops are clients like
//! any other; only the way to the server is shorter.

mod kubeconfig;
mod pen;
mod registries;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use kube::Client;
use tokio_util::sync::CancellationToken;
use transom_api::server::{Options, Server, StoreChoice};
use transom_controllers::Patience;
use transom_runtime::images::Registries;
use transom_scheduler::Profile;

use pen::{Pen, Seal};
use registries::Asker;

/// How long a pod waits to learn what its images are for, where nodes are of several kinds.
const IMAGE_PATIENCE: Duration = Duration::from_secs(3);

/// A loop beside the server that may run elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Loop {
    /// Finds nodes for pods
    Scheduler,
    /// Deployments, replica sets, stateful sets, daemon sets, jobs and cron jobs
    Workloads,
    /// Asks registries what images are for, before their pods have a node
    Images,
}

impl Loop {
    /// As flags spell it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Workloads => "workloads",
            Self::Images => "images",
        }
    }
}

/// A server that is ready, and what will run beside it.
pub(crate) struct ControlPlane {
    server: Server,
    kubeconfig: Utf8PathBuf,
    /// The name of this one among those that share a store; a store of its own needs no turns.
    identity: Option<String>,
    /// What somebody else does.
    disabled: Vec<Loop>,
    patience: Patience,
    /// The schedulers that pods can name.
    profiles: Vec<Profile>,
    /// How registries are asked.
    registries: Registries,
}

impl ControlPlane {
    /// Makes everything ready, and writes the kubeconfig of the administrator.
    pub(crate) async fn start(options: &Options, disabled: &[Loop]) -> anyhow::Result<Self> {
        let server = Server::start(options).await?;
        let kubeconfig = options.data.join("admin.kubeconfig");
        let text = server.admin_kubeconfig();
        kubeconfig::write(&kubeconfig, &text)?;
        let is_shared = matches!(options.store, StoreChoice::Etcd(_));
        let identity = is_shared.then(|| format!("{}_{}", server.address(), uuid::Uuid::new_v4()));
        Ok(Self {
            server,
            kubeconfig,
            identity,
            disabled: disabled.to_vec(),
            patience: Patience::default(),
            profiles: vec![Profile::default()],
            registries: Registries::default(),
        })
    }

    /// Treats silent nodes otherwise than usual.
    pub(crate) fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// Has these schedulers, too. One of a name that there is already takes its place.
    pub(crate) fn with_schedulers(mut self, profiles: Vec<Profile>) -> Self {
        for profile in profiles {
            self.profiles.retain(|other| other.name != profile.name);
            self.profiles.push(profile);
        }
        self
    }

    /// Asks registries in this way.
    pub(crate) fn with_registries(self, registries: Registries) -> Self {
        Self { registries, ..self }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn kubeconfig(&self) -> &Utf8Path {
        &self.kubeconfig
    }

    /// The certificates that vouch for the server, in PEM.
    pub(crate) fn authorities(&self) -> String {
        self.server.authorities_pem()
    }

    /// A client in this process that has all rights under the name that it gives.
    pub(crate) fn client_as(&self, name: &str) -> Client {
        Client::new(self.server.router_as(name), "default")
    }

    /// Serves and decides until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        self.server.tell_beside(transom_controllers::metrics);
        self.server.tell_beside(transom_scheduler::metrics);
        let asks_registries = !self.disabled.contains(&Loop::Images);
        let asker = Asker::new(self.registries.clone());
        let controllers = tokio::spawn(transom_controllers::run(
            self.client_as("system:kube-controller-manager"),
            transom_controllers::Options {
                root_ca: self.authorities(),
                signer: Some(Arc::new(Pen::new(self.server.signer()))),
                token_signer: Some(Arc::new(Seal::new(self.server.token_signer()))),
                identity: self.identity.clone(),
                without_workloads: self.disabled.contains(&Loop::Workloads),
                patience: self.patience,
                registry: asks_registries.then(|| Arc::new(asker) as _),
            },
            stop.clone(),
        ));
        let client = self.client_as("system:kube-scheduler");
        let identity = self.identity.clone();
        // Where nobody looks, there is nothing to wait for.
        let image_patience = if asks_registries {
            IMAGE_PATIENCE
        } else {
            Duration::ZERO
        };
        let options = transom_scheduler::Options {
            profiles: self.profiles.clone(),
            image_patience,
            ..transom_scheduler::Options::default()
        };
        let scheduler = (!self.disabled.contains(&Loop::Scheduler))
            .then(|| tokio::spawn(schedule(client, options, identity, stop.clone())));
        let written = self.server.admin_kubeconfig();
        let kubeconfigs = kubeconfig::keep(self.kubeconfig, written, self.server.kubeconfigs());
        let kubeconfigs = tokio::spawn(kubeconfigs);
        let served = self.server.run(stop.clone()).await;
        kubeconfigs.abort();
        // Without a server the others have nobody to ask.
        stop.cancel();
        controllers.await?;
        if let Some(scheduler) = scheduler {
            scheduler.await?;
        }
        Ok(served?)
    }
}

/// Places pods until `stop`, in turn with other servers if there are some.
async fn schedule(
    client: Client,
    options: transom_scheduler::Options,
    identity: Option<String>,
    stop: CancellationToken,
) {
    let run = |stop| transom_scheduler::run(client.clone(), options.clone(), stop);
    match identity {
        None => run(stop).await,
        Some(identity) => {
            transom_controllers::lead(client.clone(), "kube-scheduler", &identity, &stop, run)
                .await;
        }
    }
}
