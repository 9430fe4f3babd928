//! Nodes fall silent, their pods are replaced elsewhere; then the nodes come back.

use super::Session;
use crate::fault::Fault;

impl Session<'_> {
    pub(super) async fn lose(&mut self) -> Result<(), Fault> {
        let (lost, pods) = (self.plan.lost.clone(), self.options.wishes.pods);
        let phase = self.begin("loss", pods);
        self.hollow.lose(&lost);
        let missing = pods.saturating_sub(self.hollow.ledger.counts().running);
        self.until(&phase, ("pods run", pods), |counts| counts.running)
            .await?;
        self.end(&phase, "pods replaced", missing);

        let all = self.plan.nodes.len();
        let phase = self.begin("return", all);
        self.hollow.revive(&lost).await?;
        self.until_untainted(&phase, all).await?;
        self.until_whole(&phase).await?;
        self.end(&phase, "nodes", lost.len());
        Ok(())
    }
}
