//! A server in this process, and kube-rs on its router. Invariant: a test may exchange the server behind
//! the client, as a restart does, while the objects stay.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use http::{Request, Response, Uri};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tower::{Service, ServiceExt as _};
use transom_api::access::authentication::{User, group};
use transom_api::http::router_as;
use transom_api::storage::Codec;
use transom_api::{Guard, Settings};
use transom_store::{Memory, Store};

/// Objects in memory, a server of them, and the way to it.
pub(crate) struct Served {
    store: Arc<dyn Store>,
    feed: tokio::task::JoinHandle<()>,
    way: Way,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.feed.abort();
    }
}

/// Where requests go. Clones share it.
#[derive(Clone)]
pub(crate) struct Way {
    router: Arc<Mutex<Router>>,
    /// The next watch asks for the first revision of all.
    backwards: Arc<AtomicBool>,
    /// How many watches began.
    watches: Arc<AtomicUsize>,
}

impl Served {
    /// A server with the namespace `default` and its account.
    pub(crate) async fn new() -> Self {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let (router, feed) = open(&store).await;
        let served = Self {
            store,
            feed,
            way: Way {
                router: Arc::new(Mutex::new(router)),
                backwards: Arc::default(),
                watches: Arc::default(),
            },
        };
        let client = served.client();
        let namespace = Namespace {
            metadata: named("default"),
            ..Namespace::default()
        };
        let account = ServiceAccount {
            metadata: named("default"),
            ..ServiceAccount::default()
        };
        let options = PostParams::default();
        let namespaces = Api::all(client.clone());
        namespaces.create(&options, &namespace).await.unwrap();
        let accounts = Api::default_namespaced(client);
        accounts.create(&options, &account).await.unwrap();
        served
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.way.clone(), "default")
    }

    /// Another server over the same objects takes the place of the first, which ends its watches.
    pub(crate) async fn restart(&mut self) {
        let (router, feed) = open(&self.store).await;
        *self.way.router() = router;
        std::mem::replace(&mut self.feed, feed).abort();
    }

    /// How many watches began so far.
    pub(crate) fn watches(&self) -> usize {
        self.way.watches.load(Ordering::SeqCst)
    }

    /// Lets the next watch begin where no history is left, in the store neither.
    pub(crate) async fn send_next_watch_back(&self) {
        let now = self.store.revision().await.unwrap();
        self.store.compact(now).await.unwrap();
        self.way.backwards.store(true, Ordering::SeqCst);
    }
}

async fn open(store: &Arc<dyn Store>) -> (Router, tokio::task::JoinHandle<()>) {
    let (api, feed) = transom_api::Api::open(
        Arc::clone(store),
        Arc::new(Codec::default()),
        Settings::default(),
        Arc::new(jiff::Timestamp::now),
        Arc::new(Guard::default()),
    )
    .await
    .unwrap();
    let user = User::authenticated("admin", vec![group::MASTERS.to_owned()]);
    let feed = tokio::spawn(async move { feed.run().await });
    (router_as(api, user), feed)
}

impl Way {
    fn router(&self) -> std::sync::MutexGuard<'_, Router> {
        self.router.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A watch from the first revision instead, if one was ordered.
    fn sent_back(&self, uri: &Uri) -> Option<Uri> {
        let text = uri.to_string();
        let (before, after) = text.split_once("resourceVersion=")?;
        let is_watch = text.contains("watch=true") && !after.starts_with('&');
        if !is_watch || !self.backwards.swap(false, Ordering::SeqCst) {
            return None;
        }
        let rest = after.find('&').map_or("", |end| &after[end..]);
        Some(format!("{before}resourceVersion=1{rest}").parse().unwrap())
    }
}

impl Service<Request<kube::client::Body>> for Way {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<kube::client::Body>) -> Self::Future {
        if request.uri().to_string().contains("watch=true") {
            self.watches.fetch_add(1, Ordering::SeqCst);
        }
        if let Some(uri) = self.sent_back(request.uri()) {
            *request.uri_mut() = uri;
        }
        Box::pin(self.router().clone().oneshot(request))
    }
}

pub(crate) fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

/// A config map with one entry.
pub(crate) fn config_map(name: &str, key: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: named(name),
        data: Some([(key.to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

/// The code and the reason of a call that the server refused.
#[track_caller]
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.reason),
        other => panic!("not refused by the server: {other:?}"),
    }
}
