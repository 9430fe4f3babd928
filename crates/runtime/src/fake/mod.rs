//! A runtime that runs nothing: containers follow plans, in tests and in simulations of thousands of nodes.
//!
//! Invariant: what a container is at a moment follows from its plan and the clock. Nothing is done for a container
//! that just runs: no task, no timer of its own, no file.

mod alarm;
mod clock;
mod node;
mod operations;
mod plan;
mod runtime;
mod session;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{ContainerSpec, PodSpec};
use alarm::Alarm;
pub use clock::{Clock, TokioClock};
use node::Node;
pub use node::{Call, Fault};
pub use operations::FakeRuntime;
pub use plan::{ExecPlan, OnStop, Plan, Runs};

/// Says what a container will do.
pub type Script = dyn Fn(&PodSpec, &ContainerSpec) -> Plan + Send + Sync;

/// All the nodes of a simulation. What runs on a node outlives the runtimes that are opened on it, as it does on a
/// machine.
#[derive(Clone)]
pub struct FakeMachines(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    script: Box<Script>,
    /// Whether outputs are written to log files.
    writes_logs: bool,
    alarm: Alarm,
    addresses: AtomicU32,
    nodes: Mutex<BTreeMap<String, Arc<Node>>>,
}

impl fmt::Debug for FakeMachines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes().len();
        formatter
            .debug_struct("FakeMachines")
            .field("nodes", &nodes)
            .finish_non_exhaustive()
    }
}

impl FakeMachines {
    /// Machines whose containers do what `script` says, and print nothing.
    pub fn new(
        clock: Arc<dyn Clock>,
        script: impl Fn(&PodSpec, &ContainerSpec) -> Plan + Send + Sync + 'static,
    ) -> Self {
        Self::made(clock, Box::new(script), false)
    }

    /// The same with log files, for who reads logs.
    pub fn with_logs(
        clock: Arc<dyn Clock>,
        script: impl Fn(&PodSpec, &ContainerSpec) -> Plan + Send + Sync + 'static,
    ) -> Self {
        Self::made(clock, Box::new(script), true)
    }

    fn made(clock: Arc<dyn Clock>, script: Box<Script>, writes_logs: bool) -> Self {
        Self(Arc::new(Shared {
            clock: Arc::clone(&clock),
            script,
            writes_logs,
            alarm: Alarm::new(clock),
            addresses: AtomicU32::new(1),
            nodes: Mutex::default(),
        }))
    }

    /// The runtime of one node; the node comes to be with the first.
    pub fn open(&self, node: &str) -> FakeRuntime {
        let node = Arc::clone(self.nodes().entry(node.to_owned()).or_default());
        FakeRuntime {
            shared: Arc::clone(&self.0),
            node,
        }
    }

    /// Takes a node off the grid with all that ran on it.
    pub fn destroy(&self, node: &str) {
        self.nodes().remove(node);
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Node>>> {
        self.0.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// An address that no other pod has, from 10.0.0.0/8.
    fn next_address(&self) -> IpAddr {
        let number = self.addresses.fetch_add(1, Ordering::Relaxed) & 0x00ff_ffff;
        IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 | number))
    }
}
