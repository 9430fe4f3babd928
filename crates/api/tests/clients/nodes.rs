//! Logs, shells and proxies through a server to an agent over TLS: the agent here says what it was asked, and
//! echoes what a shell sends. Invariant: agents see the server's certificate, and never the client's token.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, Issuer, KeyPair, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use transom_api::Settings;

use crate::tls::{Running, any_port};

const LIMIT: Duration = Duration::from_mins(1);

/// A server with one node, whose agent is in this process.
struct Cluster {
    folder: tempfile::TempDir,
    server: Running,
    agent: SocketAddr,
    agent_task: tokio::task::JoinHandle<()>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.agent_task.abort();
    }
}

impl Cluster {
    /// The agent's certificate is for `name`.
    async fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            // The pods of this test are on this machine.
            reachable: |address| address.is_loopback(),
            ..Settings::default()
        };
        let server = Running::with(&folder, any_port(), settings).await;
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let agent = listener.local_addr().unwrap();
        let tls = agent_config(&folder, name);
        let agent_task = tokio::spawn(serve_agent(listener, tls));
        let cluster = Self {
            folder,
            server,
            agent,
            agent_task,
        };
        cluster
            .put(
                "/api/v1/nodes",
                json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}}),
            )
            .await;
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": agent.port()}},
        }});
        let (code, text) = cluster
            .send(
                "PATCH",
                "/api/v1/nodes/n1/status",
                &[("content-type", "application/merge-patch+json")],
                status.to_string(),
            )
            .await;
        assert_eq!(code, 200, "{text}");
        cluster
    }

    async fn put(&self, path: &str, object: Value) {
        let (code, text) = self
            .send(
                "POST",
                path,
                &[("content-type", "application/json")],
                object.to_string(),
            )
            .await;
        assert_eq!(code, 201, "{text}");
    }

    async fn pod(&self, name: &str, node: Option<&str>, containers: &[&str]) {
        let containers: Vec<Value> = containers
            .iter()
            .map(|name| json!({"name": name, "image": "registry.example/a:1"}))
            .collect();
        let mut spec = json!({"containers": containers});
        if let Some(node) = node {
            spec["nodeName"] = node.into();
        }
        let object =
            json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec});
        self.until_accounts().await;
        self.put("/api/v1/namespaces/default/pods", object).await;
    }

    /// Pods need the account that a controller makes elsewhere.
    async fn until_accounts(&self) {
        let account =
            json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}});
        let path = "/api/v1/namespaces/default/serviceaccounts";
        let headers = [("content-type", "application/json")];
        let (code, text) = self.send("POST", path, &headers, account.to_string()).await;
        assert!(matches!(code, 201 | 409), "{text}");
    }

    async fn connect(&self) -> hyper::client::conn::http1::SendRequest<Body> {
        let stream = TcpStream::connect(self.server.address).await.unwrap();
        let tls = TlsConnector::from(Arc::new(admin_config(&self.folder)));
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = tls.connect(name, stream).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection.with_upgrades());
        sender
    }

    async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Response<Incoming> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "api.example");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).unwrap();
        let mut sender = self.connect().await;
        tokio::time::timeout(LIMIT, sender.send_request(request))
            .await
            .unwrap()
            .unwrap()
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> (u16, String) {
        let response = self.ask(method, path, headers, body).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn message(&self, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let (code, text) = self.send("GET", path, headers, Body::empty()).await;
        let status: Value = serde_json::from_str(&text).unwrap();
        (code, status["message"].as_str().unwrap().to_owned())
    }
}

pub(crate) fn pem(folder: &tempfile::TempDir, file: &str) -> Vec<u8> {
    fs_err::read(folder.path().join("data/pki").join(file)).unwrap()
}

pub(crate) fn roots(folder: &tempfile::TempDir) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem(folder, "ca.pem")) {
        roots.add(certificate.unwrap()).unwrap();
    }
    roots
}

fn admin_config(folder: &tempfile::TempDir) -> ClientConfig {
    let admin = pem(folder, "admin.pem");
    let certificate = CertificateDer::from_pem_slice(&admin).unwrap();
    let key = PrivateKeyDer::from_pem_slice(&admin).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(folder))
        .with_client_auth_cert(vec![certificate], key)
        .unwrap()
}

/// What an agent has: a certificate of the cluster's authority, and trust in it.
fn agent_config(folder: &tempfile::TempDir, name: &str) -> ServerConfig {
    let authority = String::from_utf8(pem(folder, "authority.pem")).unwrap();
    let issuer_key = KeyPair::from_pem(&authority[authority.find("-----BEGIN PRIVATE").unwrap()..]);
    let issuer = Issuer::from_ca_cert_pem(&authority, issuer_key.unwrap()).unwrap();
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![match name.parse() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName(name.try_into().unwrap()),
    }];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots(folder)), Arc::clone(&provider));
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap()
}

async fn serve_agent(listener: TcpListener, tls: ServerConfig) {
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(stream) = acceptor.accept(stream).await else {
            continue;
        };
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
        let (_, shown) = x509_parser::parse_x509_certificate(&shown).unwrap();
        let subject = shown.subject().to_string();
        let service = service_fn(move |request| agent(subject.clone(), request));
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades(),
        );
    }
}

async fn agent(
    subject: String,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    assert!(!request.headers().contains_key("authorization"));
    let target = request.uri().to_string();
    let mut response = Response::new(Body::empty());
    if let Some(protocol) = request.headers().get("upgrade").cloned() {
        if target.contains("refuse") {
            *response.status_mut() = StatusCode::FORBIDDEN;
            *response.body_mut() = "not here".into();
            return Ok(response);
        }
        let upgraded = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut stream = TokioIo::new(upgraded.await.unwrap());
            stream
                .write_all(format!("{target}\n").as_bytes())
                .await
                .unwrap();
            let mut line = [0; 5];
            stream.read_exact(&mut line).await.unwrap();
            stream.write_all(&line).await.unwrap();
            stream.shutdown().await.unwrap();
        });
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert("upgrade", protocol);
        response
            .headers_mut()
            .insert("connection", "Upgrade".parse().unwrap());
        for name in ["sec-websocket-protocol"] {
            if let Some(value) = request.headers().get(name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        return Ok(response);
    }
    let method = request.method().clone();
    let headers = request.headers().clone();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    if target.starts_with("/containerLogs/default/two/b") {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        *response.body_mut() = "container \"b\" in pod \"two\" is waiting to start".into();
        return Ok(response);
    }
    if target == "/stats/summary" {
        let used = json!({"time": "2026-01-02T03:04:05Z", "usageNanoCores": 250_000_000});
        let kept = json!({"workingSetBytes": 64 << 20});
        let summary = json!({
            "node": {"nodeName": "n1", "cpu": used, "memory": kept},
            "pods": [{"podRef": {"name": "one", "namespace": "default"}, "containers": [
                {"name": "a", "cpu": used, "memory": kept},
                {"name": "b", "cpu": used, "memory": kept},
            ]}],
        });
        *response.body_mut() = summary.to_string().into();
        return Ok(response);
    }
    if target == "/page" {
        response
            .headers_mut()
            .insert("content-type", "text/html".parse().unwrap());
        *response.body_mut() = "<a href=\"/rewriteme\">test</a>".into();
        return Ok(response);
    }
    if target == "/away" {
        *response.status_mut() = StatusCode::FOUND;
        response
            .headers_mut()
            .insert("location", "/elsewhere".parse().unwrap());
        return Ok(response);
    }
    let text = |name: &str| {
        headers
            .get(name)
            .map_or("-", |value| value.to_str().unwrap())
    };
    *response.body_mut() = format!(
        "{method} {target} of {subject} host {} uri {} body {:?}",
        text("host"),
        text("x-forwarded-uri"),
        String::from_utf8_lossy(&body),
    )
    .into();
    Ok(response)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_come_from_the_agent() {
    let cluster = Cluster::new("127.0.0.1").await;
    cluster.pod("one", Some("n1"), &["a"]).await;
    cluster.pod("two", Some("n1"), &["a", "b"]).await;
    cluster.pod("nowhere", None, &["a"]).await;
    let path = "/api/v1/namespaces/default/pods/one/log?follow=true&tailLines=3&pretty=true";
    let (code, text) = cluster.send("GET", path, &[], Body::empty()).await;
    assert_eq!(code, 200);
    assert!(
        text.starts_with("GET /containerLogs/default/one/a?follow=true&tailLines=3 of "),
        "{text}"
    );
    assert!(text.contains("CN=kube-apiserver-kubelet-client"), "{text}");
    assert!(text.contains("O=system:masters"), "{text}");
    // kube-rs reads the same.
    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> =
        kube::Api::default_namespaced(cluster.server.client().await);
    let logs = pods.logs("one", &kube::api::LogParams::default()).await;
    assert!(
        logs.unwrap()
            .starts_with("GET /containerLogs/default/one/a of")
    );

    let log = |rest: &str| format!("/api/v1/namespaces/default/pods/{rest}");
    assert_eq!(
        cluster.message(&log("two/log"), &[]).await,
        (
            400,
            "a container name must be specified for pod two, choose one of: [a b]".to_owned()
        )
    );
    assert_eq!(
        cluster.message(&log("two/log?container=b"), &[]).await,
        (
            400,
            "container \"b\" in pod \"two\" is waiting to start".to_owned()
        )
    );
    assert_eq!(
        cluster.message(&log("gone/log"), &[]).await,
        (404, "pods \"gone\" not found".to_owned())
    );
    let (code, text) = cluster
        .send("GET", &log("nowhere/log"), &[], Body::empty())
        .await;
    assert_eq!((code, text.as_str()), (204, ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_is_bytes_both_ways() {
    let cluster = Cluster::new("n1").await;
    cluster.pod("one", Some("n1"), &["a"]).await;
    cluster.pod("nowhere", None, &["a"]).await;
    let upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-protocol", "v5.channel.k8s.io"),
    ];
    for (method, path, target) in [
        (
            "GET",
            "one/exec?command=sh&command=-c&stdin=true&stdout=true&tty=true",
            "/exec/default/one/a?input=1&output=1&tty=1&command=sh&command=-c",
        ),
        (
            "POST",
            "one/attach?stdout=true&stderr=true",
            "/attach/default/one/a?output=1&error=1",
        ),
        ("POST", "one/portforward", "/portForward/default/one"),
    ] {
        let path = format!("/api/v1/namespaces/default/pods/{path}");
        let mut response = cluster.ask(method, &path, &upgrade, Body::empty()).await;
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["upgrade"], "websocket");
        assert_eq!(
            response.headers()["sec-websocket-protocol"],
            "v5.channel.k8s.io"
        );
        let mut stream = TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap());
        stream.write_all(b"hello").await.unwrap();
        let mut all = String::new();
        tokio::time::timeout(LIMIT, stream.read_to_string(&mut all))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(all, format!("{target}\nhello"));
    }
    let exec = |name: &str| format!("/api/v1/namespaces/default/pods/{name}/exec?command=sh");
    assert_eq!(
        cluster.message(&exec("one"), &[]).await,
        (400, "Upgrade request required".to_owned())
    );
    assert_eq!(
        cluster.message(&exec("nowhere"), &upgrade).await,
        (400, "pod nowhere does not have a host assigned".to_owned())
    );
    let refused = format!("{}&command=refuse", exec("one"));
    let (code, text) = cluster.send("GET", &refused, &upgrade, Body::empty()).await;
    assert_eq!((code, text.as_str()), (403, "not here"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_with_the_certificate_of_another_node_is_not_believed() {
    let cluster = Cluster::new("n2").await;
    cluster.pod("one", Some("n1"), &["a"]).await;
    let (code, message) = cluster
        .message("/api/v1/namespaces/default/pods/one/log", &[])
        .await;
    assert_eq!(code, 500);
    assert!(message.contains("certificate"), "{message}");
    let careless = "/api/v1/namespaces/default/pods/one/log?insecureSkipTLSVerifyBackend=true";
    assert_eq!(
        cluster.send("GET", careless, &[], Body::empty()).await.0,
        200
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_hand_on_every_method() {
    let cluster = Cluster::new("127.0.0.1").await;
    let node = "/api/v1/nodes/n1/proxy";
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let path = format!("{node}/a%2Fb/?watch=true&limit=x");
        let (code, text) = cluster
            .send(method, &path, &[("authorization", "Bearer x")], "hi")
            .await;
        // The token is nobody's, but the certificate of the administrator is good.
        assert_eq!(code, 200, "{text}");
        assert!(
            text.starts_with(&format!("{method} /a%2Fb/?watch=true&limit=x of ")),
            "{text}"
        );
        assert!(
            text.ends_with(&format!("host api.example uri {node}/a%2Fb/ body \"hi\"")),
            "{text}"
        );
    }
    let response = cluster.ask("GET", node, &[], Body::empty()).await;
    assert_eq!(response.status(), 301);
    assert_eq!(response.headers()["location"], format!("{node}/"));
    let (_, text) = cluster
        .send("GET", &format!("{node}/page"), &[], Body::empty())
        .await;
    assert_eq!(text, format!("<a href=\"{node}/rewriteme\">test</a>"));
    let response = cluster
        .ask("GET", &format!("{node}/away"), &[], Body::empty())
        .await;
    assert_eq!(response.headers()["location"], format!("{node}/elsewhere"));
    let (code, text) = cluster.message("/api/v1/nodes/n2/proxy/x", &[]).await;
    assert_eq!((code, text.as_str()), (404, "nodes \"n2\" not found"));
}

/// A program in a pod that answers every request with its path.
async fn serve_program() -> SocketAddr {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(|request: Request<Incoming>| async move {
                Ok::<_, Infallible>(Response::new(Body::from(request.uri().to_string())))
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_and_services_are_reached_by_their_addresses() {
    let cluster = Cluster::new("127.0.0.1").await;
    let program = serve_program().await;
    cluster.pod("web", Some("n1"), &["a"]).await;
    cluster.pod("far", Some("n1"), &["a"]).await;
    let merge = [("content-type", "application/merge-patch+json")];
    for (pod, address) in [("web", "127.0.0.1"), ("far", "10.9.9.9")] {
        let status = json!({"status": {"podIP": address, "podIPs": [{"ip": address}]}});
        let path = format!("/api/v1/namespaces/default/pods/{pod}/status");
        let (code, text) = cluster
            .send("PATCH", &path, &merge, status.to_string())
            .await;
        assert_eq!(code, 200, "{text}");
    }
    let port = program.port();
    let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "shop"},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": port}]}});
    cluster
        .put("/api/v1/namespaces/default/services", service)
        .await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let none = "/api/v1/namespaces/default/services/shop:http/proxy/x";
    assert_eq!(
        cluster.message(none, &[]).await,
        (
            503,
            "no endpoints available for service \"shop:http\"".to_owned()
        )
    );
    let slice = json!({"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": "shop-1", "labels": {"kubernetes.io/service-name": "shop"}},
        "addressType": "IPv4", "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["10.9.9.9"], "conditions": {"ready": true},
            "targetRef": {"kind": "Pod", "name": "far", "namespace": "default"}}]});
    cluster.put(slices, slice).await;
    for path in [
        format!("pods/web:{port}/proxy/a?b=c"),
        format!("pods/http:web:{port}/proxy/a?b=c"),
    ] {
        let path = format!("/api/v1/namespaces/default/{path}");
        let answer = cluster.send("GET", &path, &[], Body::empty()).await;
        assert_eq!(answer, (200, "/a?b=c".to_owned()), "{path}");
    }
    // The endpoint is found, and is where nothing may be reached in this test.
    for path in ["services/shop:http/proxy/a", "services/shop:80/proxy/a"] {
        let path = format!("/api/v1/namespaces/default/{path}");
        assert_eq!(
            cluster.message(&path, &[]).await,
            (400, "address not allowed".to_owned())
        );
    }
    // Without somebody who listens there is an answer too.
    let path = "/api/v1/namespaces/default/pods/web:1/proxy/x";
    let (code, message) = cluster.message(path, &[]).await;
    assert_eq!(code, 503);
    assert!(
        message.starts_with("error trying to reach service: dial tcp 127.0.0.1:1: "),
        "{message}"
    );
    assert_ne!(cluster.agent.port(), port);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_use_comes_from_the_agents() {
    let cluster = Cluster::new("n1").await;
    cluster.pod("one", Some("n1"), &["a", "b"]).await;
    cluster.pod("young", Some("n1"), &["a"]).await;
    let other = json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n2"}});
    cluster.put("/api/v1/nodes", other).await;
    let merge = [("content-type", "application/merge-patch+json")];
    for pod in ["one", "young"] {
        let path = format!("/api/v1/namespaces/default/pods/{pod}/status");
        let running = json!({"status": {"phase": "Running"}}).to_string();
        assert_eq!(cluster.send("PATCH", &path, &merge, running).await.0, 200);
    }
    let base = "/apis/metrics.k8s.io/v1beta1";
    let read = async |path: &str| -> Value {
        let (code, text) = cluster
            .send("GET", &format!("{base}/{path}"), &[], Body::empty())
            .await;
        assert_eq!(code, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    };
    let nodes = read("nodes").await;
    assert_eq!(nodes["kind"], "NodeMetricsList");
    // A node without an agent has no numbers, and is no fault.
    assert_eq!(nodes["items"].as_array().unwrap().len(), 1);
    assert_eq!(nodes["items"][0]["metadata"]["name"], "n1");
    assert_eq!(
        nodes["items"][0]["usage"],
        json!({"cpu": "250m", "memory": "64Mi"})
    );
    let pod = read("namespaces/default/pods/one").await;
    assert_eq!(pod["kind"], "PodMetrics");
    assert_eq!(pod["timestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(pod["containers"][1]["name"], "b");
    let pods = read("pods?labelSelector=x%21%3Dy").await;
    assert_eq!(pods["items"].as_array().unwrap().len(), 1);
    for (path, message) in [
        ("nodes/n2", "nodemetrics.metrics.k8s.io \"n2\" not found"),
        (
            "namespaces/default/pods/young",
            "podmetrics.metrics.k8s.io \"default/young\" not found",
        ),
    ] {
        let answer = cluster.message(&format!("{base}/{path}"), &[]).await;
        assert_eq!(answer, (404, message.to_owned()));
    }
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let path = format!("{base}/namespaces/default/pods");
    let (_, text) = cluster.send("GET", &path, &table, Body::empty()).await;
    let table: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        table["rows"][0]["cells"],
        json!(["one", "500m", "128Mi", "10s"])
    );
}
