//! Hints that something changed over there. After a pause Docker is asked for what happened meanwhile.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use hyper::Method;
use tokio_util::codec::{FramedRead, LinesCodec};

use super::Inner;
use super::client::reader;
use super::labels::SANDBOX;
use super::pods::filter;
use super::wire::Happening;
use crate::{ContainerId, PodId, RuntimeError};

/// Between two attempts to listen.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_LINE: usize = 1 << 20;
/// What changes how a container is.
const CHANGES: [&str; 7] = [
    "create", "start", "die", "oom", "destroy", "pause", "unpause",
];

/// Watches until the runtime is closed.
pub(super) async fn watch(inner: Arc<Inner>) {
    let listening = async {
        // Where to go on, in nanoseconds.
        let mut since = 0;
        loop {
            if let Err(error) = inner.listen(&mut since).await {
                tracing::debug!(%error, "docker tells no events");
            }
            tokio::time::sleep(RETRY).await;
        }
    };
    tokio::select! {
        () = listening => {}
        () = inner.closing.cancelled() => {}
    }
}

impl Inner {
    async fn listen(&self, since: &mut i64) -> Result<(), RuntimeError> {
        let begin = if *since > 0 {
            let (seconds, part) = (*since / 1_000_000_000, *since % 1_000_000_000);
            format!("&since={seconds}.{part:09}")
        } else {
            String::new()
        };
        let path = format!("/events?filters={}{begin}", filter(None));
        let answer = self.client.stream(Method::GET, &path, Bytes::new(), &[]);
        let answer = answer.await.map_err(|fault| fault.explain("events", ""))?;
        let codec = LinesCodec::new_with_max_length(LONGEST_LINE);
        let mut lines = FramedRead::new(reader(answer), codec);
        while let Some(line) = lines.next().await {
            let line = line.map_err(|error| RuntimeError::Other(error.to_string()))?;
            let Ok(happening) = serde_json::from_str::<Happening>(&line) else {
                continue;
            };
            *since = happening.time.max(*since);
            if CHANGES.contains(&happening.action.as_str()) {
                self.pass_on(&happening);
            }
        }
        Ok(())
    }

    fn pass_on(&self, happening: &Happening) {
        let actor = &happening.actor;
        self.known().remove(&actor.id);
        match actor.attributes.get(SANDBOX) {
            Some(pod) => self.tell(&PodId(pod.clone()), Some(&ContainerId(actor.id.clone()))),
            None => self.tell(&PodId(actor.id.clone()), None),
        }
    }
}
