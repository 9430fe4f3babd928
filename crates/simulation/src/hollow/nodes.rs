//! Hollow nodes as the API sees them: registered, and well as long as they live.

use std::collections::{HashMap, HashSet};
use std::pin::pin;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Config, Event};
use serde_json::json;

use super::{AT_ONCE, Hollow};
use crate::create::create;
use crate::fault::Fault;
use crate::seen::SeenNode;
use crate::wire;

impl Hollow {
    pub(super) async fn register(&self, joined: impl Fn(usize)) -> Result<(), Fault> {
        let leases = format!(
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            super::leases::NAMESPACE
        );
        let one = async |index: usize| {
            let planned = &self.nodes[index];
            let now = Timestamp::now();
            create(
                &self.client,
                "/api/v1/nodes",
                &wire::node(planned, index, now),
            )
            .await?;
            let lease = wire::lease(&planned.name, self.manners.grace.as_secs(), now);
            create(&self.client, &leases, &lease).await?;
            Ok(())
        };
        let all = stream::iter(0..self.nodes.len()).map(one);
        let mut all = pin!(all.buffer_unordered(AT_ONCE));
        let mut count = 0;
        while let Some(()) = all
            .try_next()
            .await
            .map_err(Fault::request("take a node"))?
        {
            count += 1;
            joined(count);
        }
        Ok(())
    }

    /// Counts nodes that take pods, and has those speak up that were given up though they live.
    pub(super) async fn follow_nodes(&self) {
        let nodes: Api<SeenNode> = Api::all(self.client.clone());
        let indexes: HashMap<&str, usize> =
            self.nodes.iter().map(|node| &*node.name).zip(0..).collect();
        let mut well: HashSet<usize> = HashSet::new();
        let mut events = pin!(watcher::watcher(nodes, Config::default()).default_backoff());
        while let Some(event) = events.next().await {
            let (node, is_there) = match event {
                Ok(Event::Apply(node) | Event::InitApply(node)) => (node, true),
                Ok(Event::Delete(node)) => (node, false),
                Ok(Event::Init | Event::InitDone) => continue,
                Err(error) => {
                    tracing::debug!(%error, "the watch of nodes begins anew");
                    continue;
                }
            };
            let name = node.metadata.name.as_deref().unwrap_or_default();
            let Some(index) = indexes.get(name).copied() else {
                continue;
            };
            if is_there && node.spec.taints.is_empty() {
                well.insert(index);
            } else {
                well.remove(&index);
            }
            self.untainted.send_if_modified(|count| {
                let is_new = *count != well.len();
                *count = well.len();
                is_new
            });
            if is_there && node.is_given_up() && self.ledger.lives(index) {
                tracing::debug!(node = name, "a node that lives was given up and speaks up");
                if let Err(error) = self.say_well(&[index]).await {
                    tracing::warn!(%error, node = name, "a node could not speak up");
                }
            }
        }
    }

    /// Nodes say that they are well.
    pub(super) async fn say_well(&self, which: &[usize]) -> Result<(), Fault> {
        let nodes: Api<SeenNode> = Api::all(self.client.clone());
        let parameters = PatchParams::default();
        let one = async |index: usize| {
            let planned = &self.nodes[index];
            self.renew(index).await?;
            let status = wire::node_status(planned, index, Timestamp::now());
            let patch = Patch::Merge(json!({"status": status}));
            nodes.patch_status(&planned.name, &parameters, &patch).await
        };
        let all = stream::iter(which.iter().copied()).map(one);
        let all = all.buffer_unordered(AT_ONCE);
        let all = all.try_for_each(async |_| Ok(()));
        all.await.map_err(Fault::request("hear of a node"))
    }
}
