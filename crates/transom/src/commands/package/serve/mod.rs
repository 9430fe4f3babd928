//! `transom package serve`: the HTTP interface of pkgpanda, for those who change a node from afar. It
//! listens on a socket that only its owner can open, or on the loopback address. Invariant: requests that
//! change the node are done one after the other.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use camino::Utf8PathBuf;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use transom_model::package::PackageId;
use transom_package::fault::sentence;
use transom_package::node::{Node, NodeError, Outcome, Removed};

use super::fetching::{self, RepositoryOptions};
use super::node::{NodeOptions, SwitchOptions};
use crate::context::Context;
use crate::failure::Exit;

mod socket;

const EXAMPLES: &str = "\
Examples:
  transom package serve
  transom package serve --listen unix:/run/transom/package.sock
  transom package serve --listen 127.0.0.1:8087

  GET    /repository/       the packages on this node
  GET    /repository/ID     one of them
  POST   /repository/ID     fetch it: {\"repository_url\": \"https://…\"}
  DELETE /repository/ID     remove it
  GET    /active/           the active packages
  GET    /active/ID         one of them
  PUT    /active/           make a list of ids the active set";

/// Serve pkgpanda's HTTP interface to this node
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Serve {
    /// Where to listen: unix:PATH, or an address with a port on this machine alone
    #[arg(long, value_name = "WHERE")]
    listen: Option<Listen>,

    #[command(flatten)]
    switch: SwitchOptions,

    #[command(flatten)]
    repository: RepositoryOptions,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Listen {
    Socket(Utf8PathBuf),
    Address(SocketAddr),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Socket(path.into()));
        }
        let address: SocketAddr = text
            .parse()
            .map_err(|_| "expected unix:PATH or an address with a port".to_owned())?;
        if address.ip().is_loopback() {
            Ok(Self::Address(address))
        } else {
            Err(
                "this interface has no passwords: it listens on the loopback address only"
                    .to_owned(),
            )
        }
    }
}

impl Serve {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        let listen = match self.listen.clone() {
            Some(listen) => listen,
            None => socket::usual(cx),
        };
        let server = Arc::new(Server {
            node,
            options: self,
            changing: Mutex::new(()),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(socket::serve(
            cx,
            &listen,
            router(server, Arc::new(cx.clone())),
        ))?;
        Ok(Exit::Success)
    }
}

struct Server {
    node: Node,
    options: Serve,
    changing: Mutex<()>,
}

/// What handlers share.
#[derive(Clone)]
struct Shared {
    server: Arc<Server>,
    cx: Arc<Context>,
}

fn router(server: Arc<Server>, cx: Arc<Context>) -> Router {
    let shared = Shared { server, cx };
    Router::new()
        .route("/repository/", get(list_packages))
        .route(
            "/repository/{id}",
            get(show_package).post(fetch_package).delete(remove_package),
        )
        .route("/active/", get(list_active).put(activate))
        .route("/active/{id}", get(show_active))
        .with_state(shared)
}

/// A refusal, as pkgpanda words it: a status and `{"error": …}`.
struct Refusal(StatusCode, Value);

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self(status, json!({"error": message.into()}))
    }

    fn not_found(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("Package {id} not found."))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
    }
}

impl From<anyhow::Error> for Refusal {
    fn from(error: anyhow::Error) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}"))
    }
}

impl From<NodeError> for Refusal {
    fn from(error: NodeError) -> Self {
        let status = match &error {
            NodeError::PackageActive { .. }
            | NodeError::PackageKept { .. }
            | NodeError::Faults(_)
            | NodeError::Busy { .. } => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let text = match &error {
            NodeError::Faults(faults) => {
                let faults: Vec<String> = faults.iter().map(|fault| sentence(fault)).collect();
                faults.join("; ")
            }
            error => sentence(error),
        };
        Self::new(status, text)
    }
}

type Answer = Result<Response, Refusal>;

impl Shared {
    /// Does work that waits for the disk or the network, off the loop that answers.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Server, &Context) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let shared = self.clone();
        tokio::task::spawn_blocking(move || work(&shared.server, &shared.cx))
            .await
            .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?
    }

    /// The same, one after the other.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Server, &Context) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let _turn = self.server.changing.lock().await;
        self.work(work).await
    }
}

fn nothing() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// An id in an address. Where it is bad, there is no such thing.
fn known(text: &str) -> Result<PackageId, Refusal> {
    text.parse()
        .map_err(|_| Refusal::new(StatusCode::NOT_FOUND, format!("Invalid package ID: {text}")))
}

fn described(server: &Server, text: &str) -> Result<(PackageId, Response), Refusal> {
    let id = known(text)?;
    if !server.node.contains(&id)? {
        return Err(Refusal::not_found(text));
    }
    if let Err(fault) = server.node.package_info(&id) {
        tracing::warn!(package = %id, error = %fault, "a package on this node cannot be read");
        return Err(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("Unable to load package {id}."),
        ));
    }
    let body = json!({"id": id, "name": id.name(), "version": id.version()});
    Ok((id, Json(body).into_response()))
}

fn active_ids(server: &Server) -> Result<Vec<PackageId>, Refusal> {
    let active = server.node.active()?;
    let mut ids = active.map(|active| active.ids()).unwrap_or_default();
    ids.sort();
    Ok(ids)
}

async fn list_packages(State(shared): State<Shared>) -> Answer {
    let ids = shared.work(|server, _| Ok(server.node.packages()?)).await?;
    Ok(Json(ids).into_response())
}

async fn show_package(State(shared): State<Shared>, Path(id): Path<String>) -> Answer {
    shared
        .work(move |server, _| described(server, &id).map(|(_, body)| body))
        .await
}

async fn list_active(State(shared): State<Shared>) -> Answer {
    let ids = shared.work(|server, _| active_ids(server)).await?;
    Ok(Json(ids).into_response())
}

async fn show_active(State(shared): State<Shared>, Path(id): Path<String>) -> Answer {
    shared
        .work(move |server, _| {
            let (id, body) = described(server, &id)?;
            if active_ids(server)?.contains(&id) {
                Ok(body)
            } else {
                let message = format!("Package {id} is not active.");
                Err(Refusal::new(StatusCode::NOT_FOUND, message))
            }
        })
        .await
}

async fn fetch_package(
    State(shared): State<Shared>,
    Path(text): Path<String>,
    body: Result<Json<Value>, axum::extract::rejection::JsonRejection>,
) -> Answer {
    let url = body
        .ok()
        .and_then(|Json(body)| Some(body.get("repository_url")?.as_str()?.to_owned()));
    let Some(url) = url else {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "Request body must be a json object with a `repository_url` key.",
        ));
    };
    let Ok(id) = text.parse::<PackageId>() else {
        let message = format!("Invalid package ID: {text}");
        return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    };
    shared
        .change(move |server, cx| {
            let options = &server.options;
            let repository = options.repository.open(cx, &server.node, &url)?;
            let fetched = repository.download(cx, &server.node, &[id])?;
            let services = options.node.services(cx);
            let session = options.node.begin(cx, &server.node, services.as_ref())?;
            Ok(fetching::store(cx, &session, fetched)?)
        })
        .await?;
    Ok(nothing())
}

async fn remove_package(State(shared): State<Shared>, Path(text): Path<String>) -> Answer {
    let id = known(&text)?;
    shared
        .change(move |server, cx| {
            let services = server.options.node.services(cx);
            let session = server
                .options
                .node
                .begin(cx, &server.node, services.as_ref())?;
            match session.remove(&id)? {
                Removed::Absent => Err(Refusal::not_found(id.as_str())),
                Removed::Now | Removed::Later { .. } => Ok(()),
            }
        })
        .await?;
    Ok(nothing())
}

async fn activate(
    State(shared): State<Shared>,
    body: Result<Json<Vec<String>>, axum::extract::rejection::JsonRejection>,
) -> Answer {
    let Ok(Json(texts)) = body else {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "Request body must be a json array of package IDs.",
        ));
    };
    shared
        .change(move |server, cx| {
            let held = server.node.packages()?;
            let mut ids = Vec::new();
            let mut missing = Vec::new();
            for text in texts {
                match text.parse::<PackageId>() {
                    Ok(id) if held.contains(&id) => ids.push(id),
                    _ => missing.push(text),
                }
            }
            if !missing.is_empty() {
                missing.sort();
                return Err(Refusal(
                    StatusCode::CONFLICT,
                    json!({
                        "error": "Not all packages in the request are present on this node.",
                        "missing_packages": missing,
                    }),
                ));
            }
            let options = &server.options;
            let services = options.node.services(cx);
            let session = options.node.begin(cx, &server.node, services.as_ref())?;
            let plan = server.node.plan_activation(&ids)?;
            let report =
                options
                    .node
                    .switch(cx, &options.switch, services.as_ref(), |switching| {
                        session.execute(&plan, switching)
                    })?;
            match report.outcome {
                Outcome::RolledBack { failed, reasons } => Err(Refusal::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    format!(
                        "generation {failed} did not prove healthy: {}",
                        reasons.join("; ")
                    ),
                )),
                _ => Ok(()),
            }
        })
        .await?;
    Ok(nothing())
}
