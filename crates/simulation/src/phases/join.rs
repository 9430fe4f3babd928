//! Nodes join: over when every one of them takes pods.

use super::Session;
use crate::fault::Fault;

impl Session<'_> {
    pub(super) async fn join(&mut self) -> Result<(), Fault> {
        let wanted = self.plan.nodes.len();
        let phase = self.begin("join", wanted);
        self.hollow.join(|_| {}).await?;
        self.until_untainted(&phase, wanted).await?;
        self.end(&phase, "nodes", wanted);
        Ok(())
    }
}
