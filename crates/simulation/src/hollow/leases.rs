//! The heartbeats of hollow nodes, spread evenly over time as those of many machines are.

use std::pin::pin;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use tokio::time::Instant;

use super::{AT_ONCE, Hollow};
use crate::wire;

pub(super) const NAMESPACE: &str = "kube-node-lease";

impl Hollow {
    /// Renews the leases of nodes that live, one after the other, again and again.
    pub(super) async fn keep_leases(&self) {
        let Some(count) = u32::try_from(self.nodes.len())
            .ok()
            .filter(|count| *count > 0)
        else {
            return;
        };
        let step = self.manners.renew() / count;
        let turns = stream::unfold((Instant::now(), 0), async |(due, index)| {
            tokio::time::sleep_until(due).await;
            Some((index, (due + step, (index + 1) % self.nodes.len())))
        });
        let renewals = pin!(turns.for_each_concurrent(AT_ONCE, async |index| {
            if !self.ledger.lives(index) {
                return;
            }
            match self.renew(index).await {
                Ok(()) => {}
                // It has not joined yet.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => tracing::debug!(%error, "a lease was not renewed"),
            }
        }));
        renewals.await;
    }

    pub(super) async fn renew(&self, index: usize) -> Result<(), kube::Error> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NAMESPACE);
        let patch = Patch::Merge(wire::renewal(Timestamp::now()));
        let name = &self.nodes[index].name;
        leases.patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }
}
