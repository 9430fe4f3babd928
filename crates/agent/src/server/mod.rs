//! What others may ask of the node over HTTPS: logs, programs, ports and figures of its pods.
//!
//! Nobody is answered who was not authenticated and authorized by the cluster.

mod access;
mod commands;
mod exchange;
mod figures;
mod forward;
mod listener;
mod logs;
mod spdy;
mod upgrade;

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use k8s_openapi::{List, api::core::v1::Pod};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use transom_runtime::{Container, ContainerState, RuntimeError};

use self::access::Gatekeeper;
use crate::{Listen, pods::Pods, site::Site};

/// What all handlers work with.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) site: Arc<Site>,
    pub(crate) pods: Arc<Pods>,
    gatekeeper: Arc<Gatekeeper>,
}

/// Serves until `stop`. A port that is taken is tried again: whoever had it may be on its way out.
pub(crate) async fn run(site: Arc<Site>, pods: Arc<Pods>, listen: Listen, stop: CancellationToken) {
    let gatekeeper = Arc::new(Gatekeeper::new(
        site.client.clone(),
        site.options.node.clone(),
    ));
    let router = router(Desk {
        site,
        pods,
        gatekeeper,
    });
    let mut pause = std::time::Duration::from_millis(200);
    let listener = loop {
        match TcpListener::bind(listen.address).await {
            Ok(listener) => break listener,
            Err(error) => {
                tracing::warn!(address = %listen.address, %error, "the agent's port cannot be had yet");
            }
        }
        if stop
            .run_until_cancelled(tokio::time::sleep(pause))
            .await
            .is_none()
        {
            return;
        }
        pause = (pause * 2).min(std::time::Duration::from_secs(10));
    };
    listener::serve(listener, router, listen.tls, stop).await;
}

fn router(desk: Desk) -> Router {
    let command = get(commands::exec).post(commands::exec);
    let attach = get(commands::attach).post(commands::attach);
    let forward = get(forward::forward).post(forward::forward);
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/healthz/ping", get(|| async { "ok" }))
        .route("/pods", get(list_pods))
        .route("/runningpods/", get(list_pods))
        .route(
            "/containerLogs/{namespace}/{pod}/{container}",
            get(logs::logs),
        )
        .route("/exec/{namespace}/{pod}/{container}", command.clone())
        .route("/exec/{namespace}/{pod}/{uid}/{container}", command)
        .route("/attach/{namespace}/{pod}/{container}", attach.clone())
        .route("/attach/{namespace}/{pod}/{uid}/{container}", attach)
        .route("/portForward/{namespace}/{pod}", forward.clone())
        .route("/portForward/{namespace}/{pod}/{uid}", forward)
        .route("/stats/summary", get(figures::summary))
        .route("/metrics/resource", get(figures::resource_metrics))
        .route("/metrics", get(figures::metrics))
        .layer(middleware::from_fn_with_state(desk.clone(), access::check))
        .with_state(desk)
}

async fn list_pods(State(desk): State<Desk>) -> Response {
    let items = desk.pods.list().iter().map(|pod| (**pod).clone()).collect();
    let list = List::<Pod> {
        items,
        ..List::default()
    };
    match serde_json::to_vec(&list) {
        Ok(bytes) => ([(header::CONTENT_TYPE, "application/json")], bytes).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Why a request cannot be served, in plain text as kubelet answers.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: StatusCode,
    message: String,
}

impl Refusal {
    pub(crate) fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}

impl From<RuntimeError> for Refusal {
    fn from(error: RuntimeError) -> Self {
        let code = match &error {
            RuntimeError::NotFound { .. } => StatusCode::NOT_FOUND,
            RuntimeError::NotSupported(_) => StatusCode::NOT_IMPLEMENTED,
            RuntimeError::Invalid(_) => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(code, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.code, self.message).into_response()
    }
}

impl Desk {
    fn pod(&self, namespace: &str, name: &str) -> Result<Arc<Pod>, Refusal> {
        let found = self.pods.find(namespace, name);
        found
            .ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, format!("pod \"{name}\" not found")))
    }

    /// The containers of a name, the newest first.
    fn containers(&self, pod: &Pod, name: &str) -> Vec<Container> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let sandboxes = self.site.observer.sandboxes(uid);
        let all = sandboxes.iter().flat_map(|sandbox| &sandbox.containers);
        let mut named: Vec<_> = all.filter(|one| one.name == name).cloned().collect();
        named.sort_by_key(|one| std::cmp::Reverse(one.attempt));
        named
    }

    /// The container of a name that runs.
    fn running(&self, pod: &Pod, name: &str) -> Result<Container, Refusal> {
        let runs = |one: &Container| matches!(one.state, ContainerState::Running { .. });
        let found = self.containers(pod, name).into_iter().find(runs);
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        found.ok_or_else(|| {
            Refusal::new(
                StatusCode::NOT_FOUND,
                format!("container \"{name}\" not found in pod \"{pod}\""),
            )
        })
    }
}

/// The words of a query, in the order they came.
fn query(uri: &http::Uri) -> Vec<(String, String)> {
    let text = uri.query().unwrap_or_default();
    url::form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

fn is_set(query: &[(String, String)], names: &[&str]) -> bool {
    let meant = |value: &str| matches!(value, "1" | "true" | "True" | "t");
    query
        .iter()
        .any(|(name, value)| names.contains(&name.as_str()) && meant(value))
}
