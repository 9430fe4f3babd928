//! Linux and Windows hosts under one supervisor: whole machines that boot, run services, lose power,
//! cables and processes. What is asserted is asserted on both systems, with the same unit file.
#![cfg(target_os = "linux")]

mod cluster;
mod node;
mod outages;
mod parity;
mod registered;
mod web;

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use transom_testkit::Lab;

pub(crate) use node::{NEIGHBOUR, Node, Service, WEB};

/// How long something may take that takes no time on an idle machine; CI's is often busy.
pub(crate) const SOON: Duration = Duration::from_mins(2);

/// A lab with a Linux host `alpha` and a Windows host `beta`, both with Transom on them.
pub(crate) fn mixed_lab(name: &str) -> Result<(Lab, [Node; 2])> {
    let lab = Lab::new(name)?;
    let (alpha, beta) = thread::scope(|threads| {
        let alpha = threads.spawn(|| Node::set_up(lab.linux_host("alpha")?));
        let beta = threads.spawn(|| Node::set_up(lab.windows_host("beta")?));
        (alpha.join(), beta.join())
    });
    let unwind = |_| anyhow!("setting a host up panicked");
    let nodes = [alpha.map_err(unwind)??, beta.map_err(unwind)??];
    Ok((lab, nodes))
}

/// Does the same on all nodes at a time, and fails when it failed on one. All have done it when this
/// returns: what follows may rely on the other host, too.
pub(crate) fn on_each<N: AsRef<Node> + Sync, T: Send>(
    nodes: &[N],
    work: impl Fn(&N) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    thread::scope(|threads| {
        let work = &work;
        let running: Vec<_> = nodes
            .iter()
            .map(|node| (node.as_ref(), threads.spawn(move || work(node))))
            .collect();
        let join = |(node, thread): (&Node, thread::ScopedJoinHandle<'_, Result<T>>)| {
            let name = node.host.name();
            thread
                .join()
                .map_err(|_| anyhow!("the work on host `{name}` panicked"))?
                .with_context(|| {
                    format!("on host `{name}`, whose units said:\n{}", node.all_logs())
                })
        };
        running.into_iter().map(join).collect()
    })
}
