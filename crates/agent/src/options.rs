//! What an agent has to know before it begins, given by who starts it.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use transom_host::{access::Access, files::Files, machine::Machine};
use transom_runtime::{Dns, Runtime};

/// The time of day, from wherever it comes.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// Returns when it is `when` or later.
    pub(crate) async fn sleep_until(&self, when: Timestamp) {
        let left = when.duration_since(self.now());
        if let Ok(left) = Duration::try_from(left) {
            // A clock may be behind by the rounding of its timer.
            tokio::time::sleep(left + Duration::from_millis(1)).await;
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Clock")
    }
}

/// Where the agent serves logs, exec and the like, and with which certificates.
#[derive(Clone)]
pub struct Listen {
    pub address: SocketAddr,
    /// Asks clients for a certificate of the cluster, without insisting on one.
    pub tls: Arc<rustls::ServerConfig>,
}

impl fmt::Debug for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Listen({})", self.address)
    }
}

/// What is kept back for the system and for ourselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    pub cpu_millis: u64,
    pub memory_bytes: u64,
    pub storage_bytes: u64,
}

/// Who answers the names of the cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterDns {
    pub servers: Vec<IpAddr>,
    /// As `cluster.local`.
    pub domain: String,
    /// What the node itself asks.
    pub node: Dns,
}

/// What an agent has to know before it begins.
#[derive(Clone)]
pub struct Options {
    /// The name of the node.
    pub node: String,
    pub machine: Arc<dyn Machine>,
    pub files: Arc<dyn Files>,
    pub access: Arc<dyn Access>,
    pub runtime: Arc<dyn Runtime>,
    /// Beside those every node has.
    pub labels: BTreeMap<String, String>,
    /// Set when the node is registered, never later.
    pub taints: Vec<Taint>,
    /// The first is the node's main one.
    pub addresses: Vec<IpAddr>,
    /// Without one nothing is served.
    pub listen: Option<Listen>,
    /// Checkpoints, volumes and what else must survive.
    pub state: Utf8PathBuf,
    /// A folder per pod below it.
    pub logs: Utf8PathBuf,
    /// Pods of the node itself, as manifests.
    pub static_pods: Option<Utf8PathBuf>,
    pub max_pods: u32,
    pub reserved: Reserved,
    /// When pods have to go because the node runs out of something.
    pub eviction: crate::Eviction,
    pub dns: ClusterDns,
    pub clock: Clock,
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Options")
            .field("node", &self.node)
            .field("state", &self.state)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}
