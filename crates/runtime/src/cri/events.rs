//! Hints that something changed over there: told by the runtime if it can, else found by looking.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::Inner;
use super::wire::{ContainerEvent, Empty};
use crate::{ContainerId, PodId, RuntimeError};

/// How often we look where nobody tells.
const LOOK: Duration = Duration::from_secs(1);
/// Between two attempts to listen.
const RETRY: Duration = Duration::from_secs(5);

/// Watches until `closing`.
pub(super) async fn watch(inner: Arc<Inner>, closing: CancellationToken) {
    tokio::select! {
        () = inner.listen() => {}
        () = closing.cancelled() => {}
    }
}

/// The state of each container and sandbox, by id, with the sandbox it belongs to.
type Seen = HashMap<String, (PodId, i32)>;

impl Inner {
    async fn listen(&self) {
        let path = "/runtime.v1.RuntimeService/GetContainerEvents";
        loop {
            match self
                .client
                .stream::<_, ContainerEvent>(path, Empty {})
                .await
            {
                Ok(mut events) => {
                    while let Ok(Some(event)) = events.message().await {
                        let pod = event.sandbox.unwrap_or_default().id;
                        self.tell(&PodId(pod), Some(&ContainerId(event.container_id)));
                    }
                }
                Err(status) if status.code() == Code::Unimplemented => {
                    return self.look_for_ever().await;
                }
                Err(status) => {
                    tracing::debug!(%status, "the container runtime tells no events");
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn look_for_ever(&self) {
        let mut seen = Seen::new();
        loop {
            match self.look().await {
                Ok(now) => {
                    self.tell_differences(&seen, &now);
                    seen = now;
                }
                Err(error) => tracing::debug!(%error, "the container runtime cannot be looked at"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn look(&self) -> Result<Seen, RuntimeError> {
        let (pods, containers) =
            futures::future::try_join(self.sandboxes(), self.containers("")).await?;
        let pods = pods
            .into_iter()
            .map(|one| (one.id.clone(), (PodId(one.id), one.state)));
        let containers = containers
            .into_iter()
            .map(|one| (one.id, (PodId(one.sandbox_id), one.state)));
        Ok(pods.chain(containers).collect())
    }

    fn tell_differences(&self, before: &Seen, now: &Seen) {
        let changed = now
            .iter()
            .filter(|(id, state)| before.get(*id) != Some(state));
        let gone = before.iter().filter(|(id, _)| !now.contains_key(*id));
        for (id, (pod, _)) in changed.chain(gone) {
            let container = (*id != pod.0).then(|| ContainerId(id.clone()));
            self.tell(pod, container.as_ref());
        }
        let mut known = self.known();
        known.statuses.retain(|id, _| now.contains_key(&id.0));
    }
}
