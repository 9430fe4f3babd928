//! Upgrades: of workloads, which get another image, or of nodes, which are emptied in batches.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{EvictParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::timeout_at;

use super::{AT_ONCE, Session};
use crate::fault::Fault;
use crate::seen::{SeenNode, SeenPod};
use crate::wire::{self, NAMESPACE};

/// So many batches there are of all nodes.
const BATCHES: usize = 10;

impl Session<'_> {
    pub(super) async fn roll_out(&mut self) -> Result<(), Fault> {
        let pods = self.options.wishes.pods;
        let phase = self.begin("rollout", pods);
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), NAMESPACE);
        let parameters = PatchParams::default();
        let one = async |workload: &crate::Workload| {
            let patch = Patch::Merge(wire::upgrade(workload, self.tolerate()));
            deployments.patch(&workload.name, &parameters, &patch).await
        };
        let all = stream::iter(&self.plan.workloads).map(one);
        let all = all.buffer_unordered(AT_ONCE);
        let all = all.try_for_each(async |_| Ok(()));
        all.await.map_err(Fault::request("change a Deployment"))?;
        self.until(&phase, ("pods are upgraded", pods), |counts| {
            let is_over = counts.running == pods && counts.going == 0;
            // The last one counts when the old ones are gone.
            counts.upgraded.saturating_sub(usize::from(!is_over))
        })
        .await?;
        self.end(&phase, "pods", pods);
        Ok(())
    }

    pub(super) async fn drain(&mut self) -> Result<(), Fault> {
        let all = self.plan.nodes.len();
        let pods = self.options.wishes.pods;
        let phase = self.begin("drain", all);
        let indexes: Vec<usize> = (0..all).collect();
        let mut done = 0;
        for batch in indexes.chunks(all.div_ceil(BATCHES).max(1)) {
            self.cordon(batch, true).await?;
            let names = self.hollow.ledger.on_nodes(batch);
            self.evict(names).await?;
            if timeout_at(phase.until, self.emptied(batch, pods))
                .await
                .is_err()
            {
                return Err(self.late(&phase, ("nodes were emptied", all), done));
            }
            self.cordon(batch, false).await?;
            done += batch.len();
            self.audience.reached(done);
        }
        self.end(&phase, "nodes", all);
        Ok(())
    }

    /// Completes when no pod is on these nodes and all run elsewhere.
    async fn emptied(&self, batch: &[usize], pods: usize) {
        let mut counts = self.hollow.ledger.follow();
        loop {
            let whole = counts.wait_for(|counts| {
                counts.pods == pods && counts.running == pods && counts.going == 0
            });
            let is_told = whole.await.is_ok();
            if self.hollow.ledger.on_nodes(batch).is_empty() || !is_told {
                return;
            }
            // The sender is in the ledger, which is there as long as we are.
            let _ = counts.changed().await;
        }
    }

    async fn cordon(&self, batch: &[usize], is_closed: bool) -> Result<(), Fault> {
        let nodes: Api<SeenNode> = Api::all(self.client.clone());
        let parameters = PatchParams::default();
        let patch = Patch::Merge(json!({"spec": {"unschedulable": is_closed}}));
        let one = async |index: usize| {
            let name = &self.plan.nodes[index].name;
            nodes.patch(name, &parameters, &patch).await
        };
        let all = stream::iter(batch.iter().copied()).map(one);
        let all = all.buffer_unordered(AT_ONCE);
        let all = all.try_for_each(async |_| Ok(()));
        all.await.map_err(Fault::request("close a node"))
    }

    async fn evict(&self, names: Vec<String>) -> Result<(), Fault> {
        let pods: Api<SeenPod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let parameters = EvictParams::default();
        let one = async |name: String| match pods.evict(&name, &parameters).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => other.map(drop),
        };
        let all = stream::iter(names).map(one);
        let all = all.buffer_unordered(AT_ONCE);
        let all = all.try_for_each(async |()| Ok(()));
        all.await.map_err(Fault::request("evict a pod"))
    }
}
