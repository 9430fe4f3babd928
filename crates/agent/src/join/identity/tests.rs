//! Renewal against an API server that stands in: it signs what it is asked to, and knows each certificate again.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Json;
use axum::Router;
use axum::extract::{Extension, RawQuery, State};
use axum::routing::{get, post};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::{StreamExt as _, TryStreamExt as _};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, PublicKeyData,
    SerialNumber,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use transom_host::files::Native;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::*;
use crate::join::{Join, Pin, join};

const NODE: &str = "n1";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// How far a certificate is, in seconds before and after now.
#[derive(Clone, Copy)]
struct Span(i64, i64);

const FRESH: Span = Span(60, 3_600);
/// Past nine tenths: renewed at once, whatever was drawn.
const DUE: Span = Span(1_000, 60);
const OVER: Span = Span(1_000, -10);

struct Standin {
    authority: CertifiedIssuer<'static, KeyPair>,
    /// What the next certificates are like; the last for all after it.
    spans: Mutex<VecDeque<Span>>,
    serial: AtomicU32,
    signed: Mutex<Option<Value>>,
}

/// The key in a request, to be signed.
struct Requested(Vec<u8>);

impl PublicKeyData for Requested {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

impl Standin {
    fn new(spans: &[Span]) -> Arc<Self> {
        let mut wanted = CertificateParams::default();
        wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Arc::new(Self {
            authority: CertifiedIssuer::self_signed(wanted, KeyPair::generate().unwrap()).unwrap(),
            spans: Mutex::new(spans.iter().copied().collect()),
            serial: AtomicU32::new(1),
            signed: Mutex::default(),
        })
    }

    fn sign(&self, key: &impl PublicKeyData) -> String {
        let mut spans = self.spans.lock().unwrap();
        let span = match spans.len() {
            1 => spans[0],
            _ => spans.pop_front().unwrap(),
        };
        let mut wanted = CertificateParams::default();
        let name = &mut wanted.distinguished_name;
        name.push(DnType::CommonName, format!("system:node:{NODE}"));
        let now = std::time::SystemTime::now();
        let at = |seconds: i64| {
            let moved = Duration::from_secs(seconds.unsigned_abs());
            if seconds < 0 {
                now - moved
            } else {
                now + moved
            }
        };
        wanted.not_before = at(-span.0).into();
        wanted.not_after = at(span.1).into();
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        wanted.serial_number = Some(SerialNumber::from(u64::from(serial)));
        wanted.signed_by(key, &self.authority).unwrap().pem()
    }

    /// Serves over TLS, and asks for certificates as the API server does.
    async fn serve(self: &Arc<Self>) -> Uri {
        let key = KeyPair::generate().unwrap();
        let wanted = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = wanted.signed_by(&key, &self.authority).unwrap();
        let chain = vec![certificate.der().clone(), self.authority.der().clone()];
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let router = self.router();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, router) = (acceptor.clone(), router.clone());
                tokio::spawn(async move {
                    // A client that finds us wrong hangs up: that is its test, not ours.
                    let stream = match acceptor.accept(stream).into_fallible().await {
                        Ok(stream) => stream,
                        // Heard out, so that our last words are not lost with a connection that is reset.
                        Err((_, mut stream)) => {
                            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                            return;
                        }
                    };
                    let shown = stream.get_ref().1.peer_certificates();
                    let serial = shown.and_then(|chain| chain.first()).map_or(0, serial_of);
                    let service = TowerToHyperService::new(router.layer(Extension(serial)));
                    let _ = auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        format!("https://127.0.0.1:{port}").parse().unwrap()
    }

    fn router(self: &Arc<Self>) -> Router {
        Router::new()
            .route(REQUESTS, post(create).get(look))
            .route(
                "/who",
                get(|Extension(serial): Extension<u32>| async move { serial.to_string() }),
            )
            .route("/watch", get(watch))
            .with_state(Arc::clone(self))
    }

    /// What a join left some time ago.
    fn credentials(&self, folder: &Folder) -> Credentials {
        let key = folder.next_key(Purpose::Client).unwrap();
        let certificate = self.sign(&key);
        let authority = self.authority.pem();
        folder
            .keep(Purpose::Client, NODE, &authority, &certificate)
            .unwrap()
    }

    fn token(&self) -> JoinToken {
        JoinToken::new(Pin::of(self.authority.der()), "abcdef", "0123456789abcdef").unwrap()
    }
}

fn serial_of(certificate: &CertificateDer<'_>) -> u32 {
    let (_, parsed) = X509Certificate::from_der(certificate).unwrap();
    parsed.serial.to_u32_digits().first().copied().unwrap_or(0)
}

async fn create(
    State(standin): State<Arc<Standin>>,
    Json(mut object): Json<Value>,
) -> (StatusCode, Json<Value>) {
    let text = STANDARD
        .decode(object["spec"]["request"].as_str().unwrap())
        .unwrap();
    let block = pem::parse(text).unwrap();
    let (_, request) = X509CertificationRequest::from_der(block.contents()).unwrap();
    let info = &request.certification_request_info;
    let key = Requested(info.subject_pki.subject_public_key.data.to_vec());
    let certificate = standin.sign(&key);
    object["status"] = json!({"certificate": STANDARD.encode(certificate)});
    object["metadata"]["resourceVersion"] = "7".into();
    *standin.signed.lock().unwrap() = Some(object.clone());
    (StatusCode::CREATED, Json(object))
}

async fn look(State(standin): State<Arc<Standin>>, RawQuery(query): RawQuery) -> axum::body::Body {
    if query.unwrap_or_default().contains("watch=true") {
        return axum::body::Body::from_stream(futures::stream::pending::<io::Result<String>>());
    }
    let signed: Vec<Value> = standin.signed.lock().unwrap().clone().into_iter().collect();
    let list = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequestList",
        "metadata": {"resourceVersion": "7"},
        "items": signed,
    });
    list.to_string().into()
}

/// Never ends, and says again and again which certificate it was asked with.
async fn watch(Extension(serial): Extension<u32>) -> axum::body::Body {
    let ticks = tokio::time::interval(Duration::from_millis(20));
    let ticks = futures::stream::unfold(ticks, move |mut ticks| async move {
        ticks.tick().await;
        Some((Ok::<_, io::Error>(format!("{serial}\n")), ticks))
    });
    axum::body::Body::from_stream(ticks)
}

fn place() -> (tempfile::TempDir, camino::Utf8PathBuf, Folder) {
    let place = tempfile::tempdir().unwrap();
    let path = camino::Utf8Path::from_path(place.path())
        .unwrap()
        .join("pki");
    let folder = Folder::prepare(Arc::new(Native), &path).unwrap();
    (place, path, folder)
}

async fn ask(client: &Client, path: &str) -> Result<Response<Body>, kube::Error> {
    let request = Request::get(path).body(Body::empty()).unwrap();
    client.send(request).await
}

async fn who(client: &Client) -> u32 {
    let answer = ask(client, "/who").await.unwrap();
    let body = axum::body::Body::new(answer.into_body());
    let bytes = axum::body::to_bytes(body, 1_024).await.unwrap();
    str::from_utf8(&bytes).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_certificate_is_renewed_while_a_watch_goes_on() {
    // The second is about to end, too: after a renewal comes the next one.
    let standin = Standin::new(&[DUE, DUE, FRESH]);
    let server = standin.serve().await;
    let (_place, _, folder) = place();
    let credentials = standin.credentials(&folder);
    let identity = Identity::new(&server, credentials, Clock::default()).unwrap();
    let client = identity.client();
    assert_eq!(who(&client).await, 1);
    let watched = ask(&client, "/watch").await.unwrap().into_body();
    let mut watched = axum::body::Body::new(watched).into_data_stream();
    let stop = CancellationToken::new();
    let work = async {
        while who(&client).await < 3 {
            // The watch is what the time passes with.
            assert_eq!(&watched.next().await.unwrap().unwrap()[..2], b"1\n");
        }
        watched
            .by_ref()
            .take(5)
            .try_collect::<Vec<_>>()
            .await
            .unwrap();
        stop.cancel();
    };
    let both = async { tokio::join!(identity.keep(&folder, None, &stop), work) };
    tokio::time::timeout(Duration::from_mins(1), both)
        .await
        .unwrap();
    let kept = folder.credentials(Purpose::Client).unwrap().unwrap();
    assert_eq!(kept.key, identity.shown().credentials.key);
}

#[tokio::test]
async fn an_agent_whose_certificate_ended_joins_again_with_its_token() {
    let standin = Standin::new(&[OVER, FRESH]);
    let server = standin.serve().await;
    let (_place, path, folder) = place();
    let over = standin.credentials(&folder);
    let token = standin.token();
    let mut wanted = Join {
        server: &server,
        node: NODE,
        token: None,
        folder: &path,
    };
    let clock = Clock::default();
    let fault = join(Arc::new(Native), &wanted, &clock).await.unwrap_err();
    let text = fault.to_string();
    assert!(text.contains("has expired"), "{text}");
    assert!(text.contains("transom token create"), "{text}");

    wanted.token = Some(&token);
    let new = join(Arc::new(Native), &wanted, &clock).await.unwrap();
    assert_ne!(new.key, over.key);
    let identity = Identity::new(&server, new, clock).unwrap();
    assert_eq!(who(&identity.client()).await, 2);
}

#[tokio::test]
async fn an_agent_that_slept_past_the_end_joins_again_while_it_runs() {
    let standin = Standin::new(&[OVER, FRESH]);
    let server = standin.serve().await;
    let (_place, _, folder) = place();
    let over = standin.credentials(&folder);
    let identity = Identity::new(&server, over, Clock::default()).unwrap();
    let fault = identity.renew(&folder, None).await.unwrap_err();
    assert!(fault.to_string().contains("has expired"), "{fault}");
    identity
        .renew(&folder, Some(&standin.token()))
        .await
        .unwrap();
    assert_eq!(who(&identity.client()).await, 2);
}

#[tokio::test]
async fn an_agent_with_a_damaged_certificate_joins_again_with_its_token() {
    let standin = Standin::new(&[FRESH]);
    let server = standin.serve().await;
    let (_place, path, folder) = place();
    standin.credentials(&folder);
    fs_err::write(path.join("client.pem"), "nonsense").unwrap();
    let token = standin.token();
    let mut wanted = Join {
        server: &server,
        node: NODE,
        token: None,
        folder: &path,
    };
    let clock = Clock::default();
    let fault = join(Arc::new(Native), &wanted, &clock).await.unwrap_err();
    assert!(
        fault.to_string().contains("client.pem`, is damaged"),
        "{fault}"
    );
    wanted.token = Some(&token);
    join(Arc::new(Native), &wanted, &clock).await.unwrap();
}

#[tokio::test]
async fn a_token_of_a_new_authority_joins_the_cluster_again() {
    let (before, after) = (Standin::new(&[FRESH]), Standin::new(&[FRESH]));
    let server = after.serve().await;
    let (_place, path, folder) = place();
    let old = before.credentials(&folder);
    let token = after.token();
    let mut wanted = Join {
        server: &server,
        node: NODE,
        token: Some(&token),
        folder: &path,
    };
    let clock = Clock::default();
    let nobody: Uri = "https://127.0.0.1:1".parse().unwrap();
    wanted.server = &nobody;
    let kept = join(Arc::new(Native), &wanted, &clock).await.unwrap();
    assert_eq!(kept.key, old.key, "a server that is away changes nothing");
    wanted.server = &server;
    let new = join(Arc::new(Native), &wanted, &clock).await.unwrap();
    assert_eq!(Pin::of_pem(&new.authority), Some(token.pin));
}

#[tokio::test]
async fn a_cluster_with_another_authority_is_recognized() {
    let (before, after) = (Standin::new(&[FRESH]), Standin::new(&[FRESH]));
    let server = after.serve().await;
    let (_place, _, folder) = place();
    let mut credentials = before.credentials(&folder);
    let identity = Identity::new(&server, credentials.clone(), Clock::default()).unwrap();
    let answer = ask(&identity.client(), "/who").await;
    assert_eq!(rejection(&answer), Some(Rejection::OtherAuthority));

    // Our own certificate is of no use either, once the server is trusted.
    credentials.authority = after.authority.pem();
    let identity = Identity::new(&server, credentials, Clock::default()).unwrap();
    let answer = ask(&identity.client(), "/who").await;
    assert_eq!(
        rejection(&answer),
        Some(Rejection::NotAccepted),
        "{answer:?}"
    );
}

#[test]
fn what_is_no_rejection_is_not_taken_for_one() {
    let answer = |status: StatusCode| {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = status;
        Ok(answer)
    };
    assert_eq!(rejection(&answer(StatusCode::OK)), None);
    assert_eq!(rejection(&answer(StatusCode::FORBIDDEN)), None);
    let refused = answer(StatusCode::UNAUTHORIZED);
    assert_eq!(rejection(&refused), Some(Rejection::NotAccepted));
    let away = io::Error::from(io::ErrorKind::ConnectionRefused);
    assert_eq!(rejection(&Err(kube::Error::Service(away.into()))), None);
}
