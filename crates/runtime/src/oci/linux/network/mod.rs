//! How pods get a network. The cluster's network is somebody else's: whoever opens the runtime brings one.

mod bridge;
mod forward;
mod leases;
mod loopback;
mod netlink;

use std::fmt;
use std::net::IpAddr;
use std::thread;

use camino::{Utf8Path, Utf8PathBuf};
use nix::sched::{CloneFlags, setns};

pub use bridge::Bridge;
pub use loopback::Loopback;

use crate::{Pending, PodSpec, RuntimeError};

/// Connects pods. Every call may be repeated.
pub trait Network: Send + Sync + fmt::Debug {
    /// Brings a pod into the network and says its addresses. `namespace` is a file that stands for the
    /// pod's network namespace while this call lasts.
    fn attach<'a>(
        &'a self,
        pod: &'a str,
        spec: &'a PodSpec,
        namespace: &'a Utf8Path,
    ) -> Pending<'a, Vec<IpAddr>>;

    /// Takes back what a pod had. One that had nothing is fine.
    fn detach<'a>(&'a self, pod: &'a str) -> Pending<'a, ()>;

    /// Called at start with all pods there are: whatever belongs to others of ours is a leftover.
    fn reconcile<'a>(&'a self, pods: &'a [String]) -> Pending<'a, ()>;
}

/// Does some work in a network namespace: in a thread that ends with it, so that nobody else is moved.
pub(crate) async fn inside<T: Send + 'static>(
    namespace: Utf8PathBuf,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, RuntimeError> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let failed = |error| RuntimeError::io("work in the network of a pod", error);
    thread::Builder::new()
        .name("pod-network".to_owned())
        .spawn(move || {
            let entered = fs_err::File::open(&namespace).and_then(|file| {
                setns(file.file(), CloneFlags::CLONE_NEWNET).map_err(std::io::Error::from)
            });
            // If nobody waits any more, nobody needs the answer.
            drop(sender.send(entered.and_then(|()| work())));
        })
        .map_err(failed)?;
    match receiver.await {
        Ok(result) => result.map_err(failed),
        Err(_) => Err(RuntimeError::Other(
            "the thread in the network of a pod died".to_owned(),
        )),
    }
}
