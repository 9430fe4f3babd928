//! A cluster of hollow nodes on a real API, scheduler and controllers: how fast, how late, how large.
//!
//! What is simulated is machines and their containers, nothing else. It is a client like any other, so it measures
//! whatever the client it is given leads to. It begins with a plan, which chance decides by a seed.

mod chance;
mod create;
mod fault;
mod hollow;
mod ledger;
mod phases;
mod plan;
mod plot;
mod report;
mod sample;
mod seen;
mod share;
mod wire;

use std::time::Duration;

use kube::Client;
use tokio_util::sync::CancellationToken;

pub use fault::Fault;
pub use plan::{Impossible, MOST_PODS, Make, Plan, PlannedNode, Upgrade, Wishes, Workload};
pub use plot::plot;
pub use report::{Percentiles, Phase, Report, Sample, Settings};
pub use share::{InvalidShare, Share};

/// How a simulation is to behave.
#[derive(Debug, Clone)]
pub struct Options {
    pub wishes: Wishes,
    /// How long nodes may be silent: what the controllers have been told, too.
    pub grace: Duration,
    /// How long pods stay on a node that is silent.
    pub tolerate: Duration,
    /// How long a container takes to start.
    pub start: Duration,
    /// How long a container takes to end.
    pub end: Duration,
    /// How long one phase may take.
    pub limit: Duration,
}

/// Somebody who is told how far things are.
pub trait Audience: Send + Sync {
    /// A phase begins, which is over when `wanted` of something are reached.
    fn begin(&self, phase: &'static str, wanted: usize);

    /// So many are reached.
    fn reached(&self, count: usize);

    /// The phase is over.
    fn end(&self, phase: &Phase);
}

/// Carries out `plan` with the API that `client` leads to. Leaves behind what it made there.
pub async fn run(
    client: Client,
    options: Options,
    plan: Plan,
    audience: &dyn Audience,
    stop: CancellationToken,
) -> Result<Report, Fault> {
    phases::run(client, options, plan, audience, stop).await
}
