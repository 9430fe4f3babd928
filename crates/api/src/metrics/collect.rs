//! Asks agents what their nodes use: not many at once, and not the same one twice in a short while.
//!
//! No lock is held while an agent is asked, and one that does not answer delays others by a bounded time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::body::Body;
use futures::StreamExt as _;
use http::Request;
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;

use super::summary::Summary;
use crate::{proxy, state::Api};

/// So many agents are asked at once.
const AT_ONCE: usize = 64;
/// Numbers are good for so long; so is the lack of them.
const FRESH: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(5);
/// Of a node with some hundred pods.
const LARGEST: usize = 16 << 20;

/// What an agent said, and when.
#[derive(Debug)]
struct Said {
    then: Instant,
    /// Nothing from those who said nothing of use.
    summary: Option<Arc<Summary>>,
}

/// Nothing was said lately.
struct Unknown;

/// What agents said last, by node.
#[derive(Debug, Default)]
pub(crate) struct Numbers(Mutex<HashMap<String, Said>>);

impl Numbers {
    /// What a node's agent said a moment ago; an error if it is to be asked.
    fn known(&self, node: &str, now: Instant) -> Result<Option<Arc<Summary>>, Unknown> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match held.get(node) {
            Some(said) if now.duration_since(said.then) < FRESH => Ok(said.summary.clone()),
            _ => Err(Unknown),
        }
    }

    fn keep(&self, node: &str, summary: Option<Arc<Summary>>, now: Instant) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(node.to_owned(), Said { then: now, summary });
    }

    /// Forgets what is of no use to anybody any more; nodes may be gone.
    fn tidy(&self, now: Instant) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, said| now.duration_since(said.then) < FRESH);
    }

    /// The numbers of these nodes, by name.
    pub(super) async fn of(&self, api: &Api, nodes: Vec<Value>) -> HashMap<String, Arc<Summary>> {
        self.tidy(Instant::now());
        let asked = futures::stream::iter(nodes).map(|node| async move {
            let name = crate::object::name(&node).to_owned();
            if let Ok(known) = self.known(&name, Instant::now()) {
                return Some((name, known?));
            }
            let summary = match ask(api, &node).await {
                Ok(summary) => Some(Arc::new(summary)),
                Err(error) => {
                    tracing::debug!(node = name, error, "a node has no numbers");
                    None
                }
            };
            self.keep(&name, summary.clone(), Instant::now());
            Some((name, summary?))
        });
        asked
            .buffer_unordered(AT_ONCE)
            .filter_map(std::future::ready)
            .collect()
            .await
    }
}

async fn ask(api: &Api, node: &Value) -> Result<Summary, String> {
    let location = proxy::agent(node)
        .map_err(|error| error.message)?
        .with_target("/stats/summary".to_owned());
    let request = Request::builder()
        .uri("/stats/summary")
        .header("host", location.authority())
        .body(Body::empty())
        .map_err(|error| error.to_string())?;
    let answer = async {
        let response = proxy::send(api, &location, request)
            .await
            .map_err(|error| error.to_string())?;
        if response.status() != http::StatusCode::OK {
            return Err(format!("it answered {}", response.status()));
        }
        let body = Limited::new(response.into_body(), LARGEST).collect();
        let body = body.await.map_err(|error| error.to_string())?;
        Summary::read(&body.to_bytes()).map_err(|error| error.to_string())
    };
    tokio::time::timeout(PATIENCE, answer)
        .await
        .map_err(|_| "it did not answer in time".to_owned())?
}
