//! Who a server takes somebody for, over TLS. Invariant: what cannot be understood is refused, and never as if it
//! had not been said.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use serde_json::{Value, json};

use crate::raw::{Answer, Client, request};
use crate::tls::{Running, any_port};

const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

async fn start(folder: &tempfile::TempDir) -> Running {
    Running::with(folder, any_port(), transom_api::Settings::default()).await
}

/// Who the server says that somebody is who sends these headers.
async fn whoami(client: &Client, headers: &[(&'static str, &[u8])]) -> Answer {
    let mut request = request("POST", WHOAMI, "{}");
    for (name, value) in headers {
        let value = HeaderValue::from_bytes(value).unwrap();
        request.headers_mut().append(*name, value);
    }
    client.send(request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_acts_as_themselves_who_asked_to_be_another() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder).await;
    let admin = Client::admin(&folder, &server);
    let user = async |headers: &[(&'static str, &[u8])]| {
        let answer = whoami(&admin, headers).await;
        assert_eq!(answer.code, 201, "{answer:?}");
        answer.json()["status"]["userInfo"].clone()
    };
    let shown = user(&[
        ("impersonate-user", "jürgen".as_bytes()),
        ("impersonate-extra-example.com%2fort", "Köln".as_bytes()),
    ])
    .await;
    assert_eq!(shown["username"], "jürgen");
    assert_eq!(shown["extra"], json!({"example.com/ort": ["Köln"]}));
    for (name, value) in [
        ("impersonate-user", &b"j\xfcrgen"[..]),
        ("impersonate-group", b"caf\xe9"),
    ] {
        let headers = [("impersonate-user", &b"bob"[..]), (name, value)];
        assert_eq!(whoami(&admin, &headers).await.code, 400, "{name}");
    }
    let nobody = Client::nobody(&folder, &server);
    let mut strange = request("GET", "/version", "");
    let value = HeaderValue::from_bytes(b"Bearer \xff").unwrap();
    strange.headers_mut().insert("authorization", value);
    assert_eq!(nobody.send(strange).await.code, 401);
    assert_eq!(nobody.get("/version").await.code, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_for_a_token_of_the_wrong_form_is_a_bad_request() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder).await;
    let admin = Client::admin(&folder, &server);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"metadata": {"name": "one"}});
    admin.make(accounts, &account).await;
    let path = format!("{accounts}/one/token");
    for wrong in [
        json!([]),
        json!("x"),
        json!(null),
        json!({"spec": "x"}),
        json!({"spec": []}),
        json!({"metadata": 1}),
        json!({"spec": {"audiences": "x"}}),
        json!({"spec": {"expirationSeconds": "x"}}),
        json!({"spec": {"boundObjectRef": []}}),
        json!({"kind": "Pod"}),
        json!({"apiVersion": "v1"}),
    ] {
        let answer = admin.post(&path, &wrong).await;
        assert_eq!(answer.code, 400, "{wrong}: {answer:?}");
    }
    let answer: Value = admin.make(&path, &json!({})).await;
    assert_eq!(answer["kind"], "TokenRequest");
    assert!(answer["status"]["token"].is_string());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_socket_may_bring_a_token_in_its_subprotocols() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder).await;
    let admin = Client::admin(&folder, &server);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"metadata": {"name": "one"}});
    admin.make(accounts, &account).await;
    let answer = admin
        .make(&format!("{accounts}/one/token"), &json!({}))
        .await;
    let token = answer["status"]["token"].as_str().unwrap();
    let nobody = Client::nobody(&folder, &server);
    let ask = async |token: &str| {
        let path = "/api/v1/namespaces/default/pods/one/exec?command=sh";
        let mut wish = request("GET", path, "");
        let encoded = URL_SAFE_NO_PAD.encode(token);
        let offered = format!("v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.{encoded}");
        for (name, value) in [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-protocol", offered.as_str()),
        ] {
            wish.headers_mut().insert(name, value.parse().unwrap());
        }
        nobody.send(wish).await
    };
    let (code, message) = ask(token).await.refusal();
    assert_eq!(code, 403);
    let user = "User \"system:serviceaccount:default:one\" cannot create resource \"pods/exec\"";
    assert!(message.contains(user), "{message}");
    assert_eq!(ask("sesame").await.code, 401);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_is_not_is_said_only_to_those_who_may_ask() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder).await;
    let admin = Client::admin(&folder, &server);
    let jane = Client::new(&folder, &server, "jane", &[]);
    let nobody = Client::nobody(&folder, &server);
    for path in [
        "/apis/example.org/v1/namespaces/default/widgets",
        "/apis/example.org/v1/widgets/one",
        "/api/v1/namespaces/default/pods/one/nonsense",
        "/nowhere",
    ] {
        assert_eq!(admin.get(path).await.code, 404, "{path}");
        assert_eq!(jane.get(path).await.code, 403, "{path}");
        assert_eq!(nobody.get(path).await.code, 401, "{path}");
    }
    let (_, message) = jane
        .get("/apis/example.org/v1/namespaces/default/widgets")
        .await
        .refusal();
    assert_eq!(
        message,
        "widgets.example.org is forbidden: User \"jane\" cannot list resource \"widgets\" in API group \"example.org\" in the namespace \"default\""
    );
    server.stop().await;
}
