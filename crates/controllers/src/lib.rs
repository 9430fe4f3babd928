//! Loops that make what is wanted so: clients of the API like any other.
//!
//! Each controller looks at what it keeps from watches, decides in a pure function and acts with requests
//! that may be repeated. It is a task of its own; one that ends is started again, with nothing left of what it knew.

mod accounts;
mod announce;
mod autoscaling;
mod certificates;
mod cronjobs;
mod daemonsets;
mod definitions;
mod deployments;
mod disruption;
mod endpoints;
mod ephemeral;
mod fault;
mod follow;
mod garbage;
mod images;
mod jobs;
mod known;
mod leader;
mod life;
mod namespaces;
mod nodes;
mod pods;
mod quantity;
mod queue;
mod quota;
mod replicasets;
mod resources;
mod roles;
mod shared;
mod statefulsets;
mod supervise;
mod telemetry;
mod tokens;
mod volumes;
mod workloads;

use std::sync::Arc;

use futures::FutureExt as _;
use k8s_openapi::{api::core::v1::Pod, jiff::Timestamp};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

pub use certificates::{Signer, Unsigned};
pub use images::{Answer, PullSecret, Question, Registry};
pub use leader::lead;
pub use nodes::Patience;
pub use telemetry::metrics;
pub use tokens::secrets::TokenSigner;

use shared::Shared;
use supervise::{Crew, keep_running};

/// The lease of those who could run the controllers.
const LEASE: &str = "kube-controller-manager";

/// What the controllers need to know of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The certificates that vouch for the API server, in PEM.
    pub root_ca: String,
    /// Signs the certificates of nodes; without it somebody else must.
    pub signer: Option<Arc<dyn Signer>>,
    /// Makes the tokens that stand in secrets; without it such secrets stay empty.
    pub token_signer: Option<Arc<dyn TokenSigner>>,
    /// The name of this one among several of whom one runs the controllers; without it there is only one.
    pub identity: Option<String>,
    /// Leave deployments, jobs and the like to somebody else.
    pub without_workloads: bool,
    /// With nodes that are silent.
    pub patience: Patience,
    /// Asks registries what images are for; without it only agents tell.
    pub registry: Option<Arc<dyn Registry>>,
}

/// Runs all controllers until `stop`, in turn with others if there are some.
pub async fn run(client: Client, options: Options, stop: CancellationToken) {
    let Some(identity) = options.identity.clone() else {
        return run_all(client, options, stop).await;
    };
    let work = |term| run_all(client.clone(), options.clone(), term);
    lead(client.clone(), LEASE, &identity, &stop, work).await;
}

/// Runs all controllers until `stop`. Work that has begun is given a moment to end.
async fn run_all(client: Client, options: Options, stop: CancellationToken) {
    let root_ca: Arc<str> = options.root_ca.into();
    let clock: workloads::Clock = Arc::new(Timestamp::now);
    let mut crew = Crew::new(client.clone(), stop);
    // Most controllers look at pods, and there are more of them than of anything else.
    let seen = Shared::<Pod>::new();
    let authorities = Arc::clone(&root_ca);
    crew.add("accounts", move |client, stop| {
        accounts::run(client, Arc::clone(&authorities), stop).boxed()
    });
    crew.add("definitions", |client, stop| {
        definitions::run(client, stop).boxed()
    });
    let pods = seen.clone();
    crew.add("garbage", move |client, stop| {
        garbage::run(client, pods.clone(), stop).boxed()
    });
    crew.add("namespaces", |client, stop| {
        namespaces::run(client, stop).boxed()
    });
    if let Some(signer) = options.token_signer {
        crew.add("account-tokens", move |client, stop| {
            let (signer, root_ca) = (Arc::clone(&signer), Arc::clone(&root_ca));
            tokens::secrets::run(client, signer, root_ca, stop).boxed()
        });
    }
    if !options.without_workloads {
        let pods = seen.clone();
        crew.add("workloads", move |client, stop| {
            workloads::run(client, pods.clone(), Arc::clone(&clock), stop).boxed()
        });
    }
    crew.add("roles", |client, stop| roles::run(client, stop).boxed());
    if let Some(registry) = options.registry {
        let pods = seen.clone();
        crew.add("images", move |client, stop| {
            images::run(client, pods.clone(), Arc::clone(&registry), stop).boxed()
        });
    }
    life::join(&mut crew, &seen, options.signer, options.patience);
    // It goes on until the last of them has ended, who would otherwise take it for a failure.
    let never = CancellationToken::new();
    let watch = keep_running("pod-watch", &never, || {
        seen.watch(Api::all(client.clone())).boxed()
    });
    tokio::select! {
        () = crew.rest() => {}
        () = watch => {}
    }
}
