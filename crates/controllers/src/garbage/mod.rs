//! Collects objects whose owners are gone, and lets owners go before or after what they own.
//!
//! A graph is kept from watches of the metadata of everything that can be deleted. It says where to look; an
//! object is deleted only after the API itself said that its owners are not there.

mod act;
mod collector;
mod graph;
mod judge;
mod report;
#[cfg(test)]
mod tests;
mod watches;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio_util::sync::CancellationToken;

use self::collector::Collector;
use crate::shared::Shared;

const AT_ONCE: usize = 20;

pub(crate) async fn run(client: Client, pods: Shared<Pod>, stop: CancellationToken) {
    let collector = Arc::new(Collector::new(client));
    let news = watches::keep(&collector, &pods);
    let look = |uid| collector.look(uid);
    let work = collector.queue.drive("garbage", AT_ONCE, &stop, look);
    tokio::select! {
        () = work => {}
        () = news => {}
    }
}
