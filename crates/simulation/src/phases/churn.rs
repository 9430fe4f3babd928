//! Churn: pods go at a steady rate, and others take their places.

use std::collections::HashMap;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use kube::api::DeleteParams;
use tokio::time::Instant;

use super::{AT_ONCE, Session};
use crate::chance::Chance;
use crate::fault::Fault;
use crate::plan::{Make, Workload};
use crate::seen::SeenPod;
use crate::wire::NAMESPACE;

impl Session<'_> {
    pub(super) async fn churn(&mut self, chance: Chance) -> Result<(), Fault> {
        let wishes = &self.options.wishes;
        let (rate, seconds) = (wishes.churn_rate, wishes.churn_seconds);
        let count = usize::try_from(u64::from(rate) * u64::from(seconds)).unwrap_or(usize::MAX);
        let phase = self.begin("churn", count);
        let step = Duration::from_secs(1) / rate.max(1);
        let begun = Instant::now();
        let turns = stream::unfold((0_u32, chance), async |(turn, mut chance)| {
            if usize::try_from(turn).is_ok_and(|turn| turn >= count) {
                return None;
            }
            tokio::time::sleep_until(begun + step * turn).await;
            self.audience
                .reached(usize::try_from(turn).unwrap_or_default());
            let number = chance.next();
            Some(((turn, number), (turn + 1, chance)))
        });
        let workloads: HashMap<&str, &Workload> = {
            let all = self.plan.workloads.iter();
            all.map(|workload| (&*workload.name, workload)).collect()
        };
        let replaced = turns.map(|(turn, number)| self.replace(&workloads, turn, number));
        let replaced = replaced.buffer_unordered(AT_ONCE);
        let gone: usize = replaced
            .try_fold(0, async |count, gone| Ok(count + usize::from(gone)))
            .await?;
        self.until_whole(&phase).await?;
        self.end(&phase, "pods replaced", gone);
        Ok(())
    }

    /// Deletes one of those that run. Tells whether there was one.
    async fn replace(
        &self,
        workloads: &HashMap<&str, &Workload>,
        turn: u32,
        number: u64,
    ) -> Result<bool, Fault> {
        let Some(name) = self.hollow.ledger.choose(number) else {
            return Ok(false);
        };
        let pods: Api<SeenPod> = Api::namespaced(self.client.clone(), NAMESPACE);
        match pods.delete(&name, &DeleteParams::default()).await {
            Ok(_) => {}
            // Somebody else was as fast.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
            Err(error) => return Err(Fault::request("delete a pod")(error)),
        }
        if self.options.wishes.make == Make::Deployments {
            return Ok(true);
        }
        let workload = name
            .rsplit_once('-')
            .and_then(|(name, _)| workloads.get(name));
        if let Some(workload) = workload {
            let turn = usize::try_from(turn).unwrap_or_default();
            self.make_pod(workload, workload.pods + turn).await?;
        }
        Ok(true)
    }
}
