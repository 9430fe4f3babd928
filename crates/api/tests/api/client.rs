//! A client that speaks to the router in this process.

use std::sync::Arc;

use axum::{Router, body::Body};
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use transom_api::{
    Api, Guard, Settings,
    access::authentication::{User, group},
    http::router_as,
    storage::Codec,
};
use transom_store::{Memory, Store};

/// A server with nothing in it but the namespace `default`, and a client that may do everything.
pub(crate) struct Client {
    api: Api,
    router: Router,
    /// Somebody who only visits leaves the server running.
    feed: Option<tokio::task::JoinHandle<()>>,
    pub(crate) store: Arc<dyn Store>,
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(feed) = &self.feed {
            feed.abort();
        }
    }
}

/// An answer whose body was read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

impl Client {
    pub(crate) async fn new() -> Self {
        Self::fill(Arc::new(Memory::new())).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        Self::begin(Arc::new(Memory::new()), settings).await
    }

    /// The same in a store that has nothing yet.
    pub(crate) async fn fill(store: Arc<dyn Store>) -> Self {
        Self::begin(store, Settings::default()).await
    }

    async fn begin(store: Arc<dyn Store>, settings: Settings) -> Self {
        let client = Self::open(store, settings).await;
        let namespace =
            json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}});
        client
            .post("/api/v1/namespaces", &namespace)
            .await
            .expect(201);
        // What the controller of accounts would do.
        let account = json!({"metadata": {"name": "default"}});
        client
            .post("/api/v1/namespaces/default/serviceaccounts", &account)
            .await
            .expect(201);
        client
    }

    /// A server over what is in a store.
    pub(crate) async fn over(store: Arc<dyn Store>) -> Self {
        Self::open(store, Settings::default()).await
    }

    async fn open(store: Arc<dyn Store>, settings: Settings) -> Self {
        let (api, feed) = Api::open(
            Arc::clone(&store),
            Arc::new(Codec::default()),
            settings,
            Arc::new(jiff::Timestamp::now),
            Arc::new(Guard::default()),
        )
        .await
        .unwrap();
        let feed = tokio::spawn(async move { feed.run().await });
        let user = User::authenticated("admin", vec![group::MASTERS.to_owned()]);
        Self {
            router: router_as(api.clone(), user),
            api,
            feed: Some(feed),
            store,
        }
    }

    /// Somebody who may only do what these rules of a role say.
    pub(crate) async fn visitor(&self, name: &str, rules: &Value) -> Self {
        let group = "/apis/rbac.authorization.k8s.io/v1";
        let role = json!({"metadata": {"name": name}, "rules": rules});
        self.post(&format!("{group}/clusterroles"), &role)
            .await
            .expect(201);
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
        });
        let bindings = format!("{group}/clusterrolebindings");
        self.post(&bindings, &binding).await.expect(201);
        // What is read was taken in before.
        self.get(&bindings).await.expect(200);
        Self {
            api: self.api.clone(),
            router: router_as(self.api.clone(), User::authenticated(name, Vec::new())),
            feed: None,
            store: Arc::clone(&self.store),
        }
    }

    pub(crate) async fn raw(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: impl Into<Body>,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .header("user-agent", "tests/1.0")
            .body(body.into())
            .unwrap();
        let response = self.raw(request).await;
        let code = response.status().as_u16();
        let warnings = response
            .headers()
            .get_all("warning")
            .iter()
            .map(|value| value.to_str().unwrap().to_owned())
            .collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned().into());
        Answer {
            code,
            body,
            warnings,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", Body::empty()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "application/json", body.to_string())
            .await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, "application/json", body.to_string())
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, "", Body::empty()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.send(
            "PATCH",
            path,
            "application/merge-patch+json",
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn apply(&self, path: &str, body: &Value) -> Answer {
        self.send(
            "PATCH",
            path,
            "application/apply-patch+yaml",
            body.to_string(),
        )
        .await
    }

    /// Makes a config map.
    pub(crate) async fn config_map(&self, name: &str, data: &Value) -> Value {
        let object = json!({"metadata": {"name": name, "labels": {"app": name}}, "data": data});
        self.post("/api/v1/namespaces/default/configmaps", &object)
            .await
            .expect(201)
    }

    /// Begins a watch and reads it line by line.
    pub(crate) async fn watch(&self, path: &str) -> Events {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let response = self.raw(request).await;
        assert_eq!(response.status(), 200);
        Events {
            stream: futures::StreamExt::boxed(response.into_body().into_data_stream()),
            rest: Vec::new(),
        }
    }
}

impl Answer {
    /// The body, if the code is as expected.
    pub(crate) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{:#}", self.body);
        self.body
    }
}

pub(crate) struct Events {
    stream: futures::stream::BoxStream<'static, Result<Bytes, axum::Error>>,
    rest: Vec<u8>,
}

impl Events {
    /// The next event; `None` when the watch ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            self.rest
                .extend_from_slice(&self.stream.next().await?.unwrap());
        }
    }

    /// The next event's type and the name of its object.
    pub(crate) async fn step(&mut self) -> (String, String) {
        let event = self.next().await.unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&event["type"]),
            text(&event["object"]["metadata"]["name"]),
        )
    }
}
