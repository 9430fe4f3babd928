//! Nodes with nothing behind them: they register, renew leases and say of their pods what kubelets would say.
//!
//! All of them share one watch of pods, one of nodes and one pool of requests: what reaches the API is as with so
//! many machines, except that there are not as many watches. Queues are bounded: a watch waits for its workers.

mod leases;
mod nodes;
mod pods;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::fault::Fault;
use crate::ledger::{Errand, Ledger};
use crate::plan::PlannedNode;

/// Requests of all hollow nodes that are under way at once.
const AT_ONCE: usize = 64;

/// How hollow nodes behave.
#[derive(Debug, Clone)]
pub(crate) struct Manners {
    /// How long a node may be silent until it is given up.
    pub(crate) grace: Duration,
    /// How long a container takes to start.
    pub(crate) start: Duration,
    /// How long a container takes to end.
    pub(crate) end: Duration,
}

impl Manners {
    /// How often leases are renewed: four times within the grace, as upstream has it.
    fn renew(&self) -> Duration {
        self.grace / 4
    }
}

/// All hollow nodes.
pub(crate) struct Hollow {
    client: Client,
    nodes: Vec<PlannedNode>,
    manners: Manners,
    pub(crate) ledger: Ledger,
    /// Nodes without a taint.
    untainted: watch::Sender<usize>,
    /// Gives every pod an address of its own.
    addresses: AtomicU64,
}

impl Hollow {
    pub(crate) fn new(client: Client, nodes: Vec<PlannedNode>, manners: Manners) -> Arc<Self> {
        Arc::new(Self {
            ledger: Ledger::new(nodes.iter().map(|node| node.name.clone())),
            client,
            nodes,
            manners,
            untainted: watch::Sender::new(0),
            addresses: AtomicU64::new(1),
        })
    }

    /// Behaves as nodes do, until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let (starts, starting) = pods::line(self.manners.start);
        let (ends, ending) = pods::line(self.manners.end);
        let work = async {
            tokio::join!(
                self.follow_pods(&starts, &ends),
                self.follow_nodes(),
                self.keep_leases(),
                starting.serve(&self),
                ending.serve(&self),
            );
        };
        stop.run_until_cancelled(Box::pin(work)).await;
    }

    /// Registers all nodes.
    pub(crate) async fn join(&self, joined: impl Fn(usize)) -> Result<(), Fault> {
        self.register(joined).await
    }

    /// Tells how many nodes take pods.
    pub(crate) fn follow_untainted(&self) -> watch::Receiver<usize> {
        self.untainted.subscribe()
    }

    /// Nodes fall silent.
    pub(crate) fn lose(&self, nodes: &[usize]) {
        self.ledger.lose(nodes);
    }

    /// Nodes are back, and deal with the pods that they find.
    pub(crate) async fn revive(&self, nodes: &[usize]) -> Result<(), Fault> {
        let errands: Vec<Errand> = self.ledger.revive(nodes);
        self.say_well(nodes).await?;
        self.run_errands(errands).await;
        Ok(())
    }
}
