//! Tokens that are wrong in every way, and those that are right.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::status::ApiError;

use super::{
    super::{Authenticator, Fault, Live, Objects, Presented, StaticToken, User, discovery, review},
    *,
};

/// A cluster with one service account, and maybe a pod, a secret and a node.
#[derive(Clone, Default)]
struct Cluster {
    account: Option<Live>,
    pod: Option<Live>,
    secret: Option<Live>,
    node: Option<Live>,
    /// The secret with what is in it.
    held: Option<Arc<Value>>,
}

fn live(uid: &str) -> Live {
    Live {
        uid: uid.to_owned(),
        deletion: None,
    }
}

impl Cluster {
    fn whole() -> Self {
        Self {
            account: Some(live("account-uid")),
            pod: Some(live("pod-uid")),
            secret: Some(live("secret-uid")),
            node: Some(live("node-uid")),
            held: None,
        }
    }

    /// The secret holds this token.
    fn holding(token: &str) -> Self {
        let token = base64::engine::general_purpose::STANDARD.encode(token);
        let secret = json!({"metadata": {"uid": "secret-uid"}, "data": {"token": token}});
        Self {
            held: Some(Arc::new(secret)),
            ..Self::whole()
        }
    }
}

impl Objects for Cluster {
    fn service_account(&self, namespace: &str, name: &str) -> Option<Live> {
        self.account
            .clone()
            .filter(|_| (namespace, name) == ("ns", "sa"))
    }
    fn pod(&self, _: &str, name: &str) -> Option<Live> {
        self.pod.clone().filter(|_| name == "pod-1")
    }
    fn secret(&self, _: &str, name: &str) -> Option<Live> {
        self.secret.clone().filter(|_| name == "secret-1")
    }
    fn node(&self, name: &str) -> Option<Live> {
        self.node.clone().filter(|_| name == "node-1")
    }
    fn whole_secret(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let is_asked = (namespace, name) == ("ns", "secret-1");
        self.held.clone().filter(|_| is_asked)
    }
}

fn now() -> Timestamp {
    "2026-11-16T10:00:00Z".parse().unwrap()
}

fn after(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

fn claims() -> Claims {
    Claims {
        audiences: vec![ISSUER.to_owned()],
        expires: after(3600).as_second(),
        issued: now().as_second(),
        not_before: now().as_second(),
        issuer: ISSUER.to_owned(),
        id: "an-id".to_owned(),
        subject: "system:serviceaccount:ns:sa".to_owned(),
        kubernetes: Kubernetes {
            namespace: "ns".to_owned(),
            service_account: Reference {
                name: "sa".to_owned(),
                uid: "account-uid".to_owned(),
            },
            ..Kubernetes::default()
        },
    }
}

fn verify(keys: &TokenKeys, token: &str, cluster: &Cluster) -> Result<Verified, TokenFault> {
    Tokens::default().verify(keys, token, &[], cluster, now())
}

fn sign(keys: &TokenKeys, claims: &Claims) -> String {
    Tokens::default().sign(keys, claims).unwrap()
}

#[test]
fn a_token_names_the_account_and_its_groups() {
    let keys = TokenKeys::generate().unwrap();
    let verified = verify(&keys, &sign(&keys, &claims()), &Cluster::whole()).unwrap();
    let mut expected = User::authenticated(
        "system:serviceaccount:ns:sa",
        vec![
            "system:serviceaccounts".to_owned(),
            "system:serviceaccounts:ns".to_owned(),
        ],
    );
    expected.uid = "account-uid".to_owned();
    expected.extra.insert(
        "authentication.kubernetes.io/credential-id".to_owned(),
        vec!["JTI=an-id".to_owned()],
    );
    assert_eq!(verified.user, expected);
    assert_eq!(verified.audiences, [ISSUER]);
}

#[test]
fn tokens_signed_by_nobody_or_somebody_else_are_refused() {
    let keys = TokenKeys::generate().unwrap();
    let others = TokenKeys::generate().unwrap();
    let good = sign(&keys, &claims());
    let parts: Vec<&str> = good.split('.').collect();
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let kid = keys.newest().id();
    let none = encode(&json!({"alg": "none", "kid": kid}));
    // The public key as the secret of a symmetric algorithm: the classic confusion.
    let symmetric = jsonwebtoken::encode(
        &Header {
            kid: Some(kid.to_owned()),
            ..Header::new(Algorithm::HS256)
        },
        &claims(),
        &EncodingKey::from_secret(keys.newest().public()),
    )
    .unwrap();
    let mut raised = claims();
    raised.subject = "system:serviceaccount:kube-system:root".to_owned();
    let raised = encode(&serde_json::to_value(&raised).unwrap());
    let stolen_kid = encode(&json!({"alg": "ES256", "kid": kid}));
    let foreign = sign(&others, &claims());
    let foreign_parts: Vec<&str> = foreign.split('.').collect();
    let cluster = Cluster::whole();
    for (token, fault) in [
        (String::new(), TokenFault::Foreign),
        ("..".to_owned(), TokenFault::Foreign),
        ("a.b".to_owned(), TokenFault::Foreign),
        (format!("{none}.{}.", parts[1]), TokenFault::Foreign),
        (symmetric, TokenFault::Foreign),
        (foreign.clone(), TokenFault::Foreign),
        (
            format!("{}.{raised}.{}", parts[0], parts[2]),
            TokenFault::Signature,
        ),
        (
            format!("{stolen_kid}.{}.{}", foreign_parts[1], foreign_parts[2]),
            TokenFault::Signature,
        ),
        (format!("{}.{}.", parts[0], parts[1]), TokenFault::Signature),
        (format!("{good}{}", "A".repeat(20_000)), TokenFault::TooLong),
    ] {
        let found = verify(&keys, &token, &cluster).unwrap_err();
        assert_eq!(found, fault, "{token}");
    }
}

#[test]
fn a_token_of_another_time_audience_or_issuer_is_refused() {
    let keys = TokenKeys::generate().unwrap();
    let tokens = Tokens::default();
    let cluster = Cluster::whole();
    let token = sign(&keys, &claims());
    let at = |moment| tokens.verify(&keys, &token, &[], &cluster, moment);
    assert!(at(after(3659)).is_ok());
    assert_eq!(at(after(3661)).unwrap_err(), TokenFault::Expired);
    assert!(at(after(-59)).is_ok());
    assert_eq!(at(after(-61)).unwrap_err(), TokenFault::NotYet);
    let vault = ["vault".to_owned()];
    let elsewhere = tokens.verify(&keys, &token, &vault, &cluster, now());
    assert_eq!(
        elsewhere.unwrap_err().to_string(),
        r#"token audiences ["https://kubernetes.default.svc.cluster.local"] is invalid for the target audiences ["vault"]"#
    );
    let mut for_vault = claims();
    for_vault.audiences = vault.to_vec();
    let for_vault = sign(&keys, &for_vault);
    assert!(matches!(
        verify(&keys, &for_vault, &cluster),
        Err(TokenFault::Audience { .. })
    ));
    assert!(
        tokens
            .verify(&keys, &for_vault, &vault, &cluster, now())
            .is_ok()
    );
    let mut strange = claims();
    strange.issuer = "https://elsewhere".to_owned();
    assert_eq!(
        verify(&keys, &sign(&keys, &strange), &cluster).unwrap_err(),
        TokenFault::Claims
    );
    let mut two_names = claims();
    two_names.subject = "system:serviceaccount:ns:other".to_owned();
    assert_eq!(
        verify(&keys, &sign(&keys, &two_names), &cluster).unwrap_err(),
        TokenFault::Claims
    );
}

#[test]
fn a_token_that_was_good_before_is_looked_at_again() {
    let keys = TokenKeys::generate().unwrap();
    let tokens = Tokens::default();
    let token = sign(&keys, &claims());
    let verify = |keys: &TokenKeys, cluster: &Cluster, moment| {
        tokens.verify(keys, &token, &[], cluster, moment)
    };
    verify(&keys, &Cluster::whole(), now()).unwrap();
    verify(&keys, &Cluster::whole(), now()).unwrap();
    let late = verify(&keys, &Cluster::whole(), after(4000));
    assert_eq!(late.unwrap_err(), TokenFault::Expired);
    let gone = verify(&keys, &Cluster::default(), now());
    assert!(matches!(gone, Err(TokenFault::NoAccount { .. })));
    let other_keys = TokenKeys::generate().unwrap();
    let retired = verify(&other_keys, &Cluster::whole(), now());
    assert_eq!(retired.unwrap_err(), TokenFault::Foreign);
}

#[test]
fn a_token_ends_with_what_it_is_bound_to() {
    let keys = TokenKeys::generate().unwrap();
    let bound = |name: &str, uid: &str| {
        Some(Reference {
            name: name.to_owned(),
            uid: uid.to_owned(),
        })
    };
    let mut with_pod = claims();
    with_pod.kubernetes.pod = bound("pod-1", "pod-uid");
    // The node of a pod is not what the token is bound to.
    with_pod.kubernetes.node = bound("gone", "");
    let mut with_secret = claims();
    with_secret.kubernetes.secret = bound("secret-1", "secret-uid");
    let mut with_node = claims();
    with_node.kubernetes.node = bound("node-1", "node-uid");
    let empty = Cluster {
        account: Some(live("account-uid")),
        ..Cluster::default()
    };
    let recreated = Cluster {
        account: Some(live("account-uid")),
        pod: Some(live("2")),
        secret: Some(live("2")),
        node: Some(live("2")),
        held: None,
    };
    for claims in [with_pod, with_secret, with_node] {
        let token = sign(&keys, &claims);
        verify(&keys, &token, &Cluster::whole()).unwrap();
        assert_eq!(
            verify(&keys, &token, &empty).unwrap_err(),
            TokenFault::Invalidated
        );
        assert!(matches!(
            verify(&keys, &token, &recreated).unwrap_err(),
            TokenFault::BoundUid { .. }
        ));
    }
}

#[test]
fn a_token_in_a_secret_is_good_while_the_secret_holds_it() {
    let keys = TokenKeys::generate().unwrap();
    let holder = Holder {
        namespace: "ns",
        secret: "secret-1",
        account: "sa",
        account_uid: "account-uid",
    };
    let token = Tokens::default().sign_for_secret(&keys, holder).unwrap();
    let verified = verify(&keys, &token, &Cluster::holding(&token)).unwrap();
    assert_eq!(verified.user.name, "system:serviceaccount:ns:sa");
    assert_eq!(verified.user.uid, "account-uid");
    assert_eq!(verified.audiences, [ISSUER]);
    let later = after(10 * 365 * 24 * 3600);
    let cluster = Cluster::holding(&token);
    let again = Tokens::default().verify(&keys, &token, &[], &cluster, later);
    assert!(again.is_ok());
    let vault = ["vault".to_owned()];
    let elsewhere = Tokens::default().verify(&keys, &token, &vault, &cluster, now());
    assert!(matches!(elsewhere, Err(TokenFault::Audience { .. })));

    assert_eq!(
        verify(&keys, &token, &Cluster::whole()),
        Err(TokenFault::Invalidated)
    );
    assert_eq!(
        verify(&keys, &token, &Cluster::holding("another")),
        Err(TokenFault::Invalidated)
    );
    let mut renamed = Cluster::holding(&token);
    renamed.account = Some(live("other-uid"));
    assert!(matches!(
        verify(&keys, &token, &renamed),
        Err(TokenFault::AccountUid { .. })
    ));
    let stranger = TokenKeys::generate().unwrap();
    let forged = Tokens::default()
        .sign_for_secret(&stranger, holder)
        .unwrap();
    assert_eq!(
        verify(&keys, &forged, &Cluster::holding(&forged)),
        Err(TokenFault::Foreign)
    );
}

#[test]
fn a_token_ends_with_its_account() {
    let keys = TokenKeys::generate().unwrap();
    let token = sign(&keys, &claims());
    let with = |account: Option<Live>| Cluster {
        account,
        ..Cluster::default()
    };
    let deleted = |seconds| {
        Some(Live {
            uid: "account-uid".to_owned(),
            deletion: Some(after(seconds)),
        })
    };
    assert!(verify(&keys, &token, &with(deleted(-59))).is_ok());
    for (account, text) in [
        (None, r#"serviceaccounts "sa" not found"#),
        (deleted(-61), "service account ns/sa has been deleted"),
        (
            Some(live("2")),
            "service account UID (2) does not match claim (account-uid)",
        ),
    ] {
        let fault = verify(&keys, &token, &with(account)).unwrap_err();
        assert_eq!(fault.to_string(), text);
    }
}

fn account() -> Value {
    json!({"metadata": {"name": "sa", "namespace": "ns", "uid": "account-uid"}})
}

fn issue(spec: &Value, bound: Option<&Value>, node: Option<&Value>) -> Result<Value, ApiError> {
    let keys = TokenKeys::generate().unwrap();
    let request = TokenRequest::read(json!({"spec": spec}), "ns", "sa")?;
    let id = "an-id".to_owned();
    let tokens = Tokens::default();
    let found = Found {
        account: &account(),
        bound,
        node,
    };
    request.issue(&tokens, &keys, &found, id, now())
}

fn said(answer: &Value) -> Value {
    let token = answer["status"]["token"].as_str().unwrap();
    let body = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).unwrap()).unwrap()
}

#[test]
fn requests_with_wrong_fields_are_refused_in_upstreams_words() {
    let pod =
        json!({"metadata": {"name": "p", "uid": "1"}, "spec": {"serviceAccountName": "other"}});
    let reference = |kind: &str, version: &str| json!({"boundObjectRef": {"kind": kind, "apiVersion": version, "name": "p"}});
    let mut texts = Vec::new();
    for (spec, bound) in [
        (json!({"expirationSeconds": 599}), None),
        (json!({"expirationSeconds": 4_294_967_297_i64}), None),
        (json!({"audiences": [1]}), None),
        (reference("Deployment", "apps/v1"), None),
        (reference("Pod", "v1"), None),
        (reference("Pod", "v1"), Some(&pod)),
        (
            json!({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "p", "uid": "2"}}),
            Some(&pod),
        ),
    ] {
        let error = issue(&spec, bound, None).unwrap_err();
        texts.push(format!("{} {}", error.code, error.message));
    }
    let other = json!({"metadata": {"name": "other"}});
    let error = TokenRequest::read(other, "ns", "sa").unwrap_err();
    texts.push(format!("{} {}", error.code, error.message));
    insta::assert_snapshot!(texts.join("\n"), @r#"
    422 TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes
    422 TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds
    422 TokenRequest.authentication.k8s.io "" is invalid: spec.audiences: Invalid value: [1]: must be a list of strings
    400 cannot bind token to object of type apps/v1, Kind=Deployment
    404 pods "p" not found
    400 cannot bind token for serviceaccount "sa" to pod running with serviceaccount "other"
    409 Operation cannot be fulfilled on Secret "p": the UID in the bound object reference (2) does not match the UID in record. The object might have been deleted and then recreated
    400 service account name must match the name on the URL: "other"
    "#);
}

#[test]
fn a_token_for_a_pod_says_where_it_runs() {
    let pod = json!({
        "metadata": {"name": "pod-1", "uid": "pod-uid"},
        "spec": {"serviceAccountName": "sa", "nodeName": "node-1"},
    });
    let node = json!({"metadata": {"name": "node-1", "uid": "node-uid"}});
    let spec = json!({
        "expirationSeconds": 3607,
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "pod-1", "uid": "pod-uid"},
    });
    let answer = issue(&spec, Some(&pod), Some(&node)).unwrap();
    insta::assert_json_snapshot!(said(&answer), @r#"
    {
      "aud": [
        "https://kubernetes.default.svc.cluster.local"
      ],
      "exp": 1826359200,
      "iat": 1794823200,
      "iss": "https://kubernetes.default.svc.cluster.local",
      "jti": "an-id",
      "kubernetes.io": {
        "namespace": "ns",
        "node": {
          "name": "node-1",
          "uid": "node-uid"
        },
        "pod": {
          "name": "pod-1",
          "uid": "pod-uid"
        },
        "serviceaccount": {
          "name": "sa",
          "uid": "account-uid"
        },
        "warnafter": 1794826807
      },
      "nbf": 1794823200,
      "sub": "system:serviceaccount:ns:sa"
    }
    "#);
    assert_eq!(
        answer["status"]["expirationTimestamp"],
        "2026-11-16T11:00:07Z"
    );
    let unknown_node = said(&issue(&spec, Some(&pod), None).unwrap());
    assert_eq!(
        unknown_node["kubernetes.io"]["node"],
        json!({"name": "node-1"})
    );
}

#[test]
fn a_token_without_wishes_is_for_this_server_and_an_hour() {
    let answer = issue(&json!({}), None, None).unwrap();
    assert_eq!(said(&answer)["exp"], after(3600).as_second());
    assert_eq!(answer["spec"]["audiences"], json!([ISSUER]));
    assert_eq!(answer["spec"]["expirationSeconds"], 3600);
    assert_eq!(
        answer["status"]["expirationTimestamp"],
        "2026-11-16T11:00:00Z"
    );
}

#[test]
fn a_review_tells_who_or_why_not() {
    let keys = TokenKeys::generate().unwrap();
    let authenticator = Authenticator {
        admin_token: Some(StaticToken::new("open sesame")),
        ..Authenticator::default()
    };
    let cluster = Cluster::whole();
    let ask = |token: &str, audiences: Value| {
        let review =
            json!({"kind": "TokenReview", "spec": {"token": token, "audiences": audiences}});
        review::token_review(review, |token, audiences| {
            authenticator.identify_token(token, audiences, &keys, &cluster, now())
        })
    };
    let token = sign(&keys, &claims());
    let found = ask(&token, json!([])).unwrap();
    assert_eq!(found["status"]["authenticated"], true);
    assert_eq!(found["status"]["audiences"], json!([ISSUER]));
    assert_eq!(
        found["status"]["user"]["username"],
        "system:serviceaccount:ns:sa"
    );
    let admin = ask("open sesame", Value::Null).unwrap();
    assert_eq!(admin["status"]["user"]["groups"][0], "system:masters");
    let admin = ask("open sesame", json!(["vault"])).unwrap();
    assert_eq!(admin["status"]["error"], "invalid bearer token");
    let refused = ask(&token, json!(["vault"])).unwrap();
    assert_eq!(refused["status"]["authenticated"], Value::Null);
    assert!(
        refused["status"]["error"]
            .as_str()
            .unwrap()
            .starts_with("[invalid bearer token, token audiences")
    );
    assert_eq!(
        ask("", json!([])).unwrap_err().message,
        "token is required for TokenReview in authentication"
    );
    let user = User::authenticated("bob", Vec::new());
    let whoami = review::self_subject_review(json!({}), &user);
    assert_eq!(
        whoami,
        json!({"status": {"userInfo": {"username": "bob", "groups": ["system:authenticated"]}}})
    );
}

#[test]
fn wrong_credentials_never_make_anyone_anonymous() {
    let keys = TokenKeys::generate().unwrap();
    let authenticator = Authenticator::default();
    let cluster = Cluster::whole();
    let ask = |certificate: Option<&[u8]>, authorization: Option<&str>, path: &str| {
        let presented = Presented {
            certificate,
            authorization,
        };
        authenticator.authenticate(presented, path, &keys, &cluster, now())
    };
    for path in ["/livez", "/readyz/etcd", "/version", "/healthz"] {
        assert!(ask(None, None, path).unwrap().is_anonymous(), "{path}");
        assert_eq!(ask(None, Some("Bearer x"), path).unwrap_err().code, 401);
        assert_eq!(ask(Some(b"no"), None, path).unwrap_err().code, 401);
    }
    for path in ["/api", "/livezz", "/", "/version2", "/metrics"] {
        assert_eq!(ask(None, None, path).unwrap_err().message, "Unauthorized");
    }
    let token = sign(&keys, &claims());
    for authorization in ["Basic YTpi", "Bearer", "Bearer ", &token] {
        assert_eq!(
            ask(None, Some(authorization), "/api").unwrap_err().code,
            401
        );
    }
    for word in ["Bearer", "bearer", "BEARER"] {
        assert!(ask(None, Some(&format!("{word} {token}")), "/api").is_ok());
    }
}

#[test]
fn nothing_secret_is_in_debug_output_or_errors() {
    let authenticator = Authenticator {
        admin_token: Some(StaticToken::new("open sesame")),
        ..Authenticator::default()
    };
    let presented = Presented {
        certificate: None,
        authorization: Some("Bearer open sesame"),
    };
    let keys = TokenKeys::generate().unwrap();
    let fault: Fault = authenticator
        .identify_token("close sesame", &[], &keys, &Cluster::default(), now())
        .unwrap_err();
    let shown = format!("{authenticator:?} {presented:?} {fault:?} {fault}");
    assert!(!shown.contains("sesame"), "{shown}");
}

#[test]
fn the_published_keys_verify_what_we_sign() {
    let keys = TokenKeys::generate().unwrap();
    let published = discovery::keys(&keys);
    let jwk: jsonwebtoken::jwk::Jwk = serde_json::from_value(published["keys"][0].clone()).unwrap();
    let key = jsonwebtoken::DecodingKey::from_jwk(&jwk).unwrap();
    let mut rules = jsonwebtoken::Validation::new(Algorithm::ES256);
    rules.validate_exp = false;
    rules.validate_aud = false;
    let token = sign(&keys, &claims());
    let read = jsonwebtoken::decode::<Claims>(&token, &key, &rules).unwrap();
    assert_eq!(read.claims, claims());
    assert_eq!(
        read.header.kid.as_deref(),
        published["keys"][0]["kid"].as_str()
    );
    assert_eq!(
        discovery::configuration(ISSUER, "https://a:6443/")["jwks_uri"],
        "https://a:6443/openid/v1/jwks"
    );
}
