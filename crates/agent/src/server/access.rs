//! Who asks, and whether they may: certificates of the cluster, or tokens that the API knows.
//!
//! Answers of the API are kept for a short while, in a bounded place.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::{Desk, Refusal, listener::Peer};
use crate::fault::{Fault, ask};

const MASTERS: &str = "system:masters";
const KEEP_USER: Duration = Duration::from_mins(2);
const KEEP_YES: Duration = Duration::from_mins(5);
const KEEP_NO: Duration = Duration::from_secs(30);
const MOST_KEPT: usize = 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct User {
    name: String,
    groups: Vec<String>,
}

/// What is asked of the node, in the words of its authorization.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Deed {
    verb: &'static str,
    part: &'static str,
}

type Kept<K, V> = Mutex<BTreeMap<K, (V, Instant)>>;

/// Asks the API about people, and remembers its answers for a while.
pub(super) struct Gatekeeper {
    client: Client,
    node: String,
    users: Kept<[u8; 32], Option<User>>,
    verdicts: Kept<(User, Deed), bool>,
}

fn recall<K: Ord, V: Clone>(kept: &Kept<K, V>, key: &K) -> Option<V> {
    let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.get(key)
        .filter(|(_, until)| *until > Instant::now())
        .map(|(value, _)| value.clone())
}

fn keep<K: Ord, V>(kept: &Kept<K, V>, key: K, value: V, length: Duration) {
    let now = Instant::now();
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() >= MOST_KEPT {
        kept.retain(|_, (_, until)| *until > now);
    }
    if kept.len() >= MOST_KEPT {
        kept.clear();
    }
    kept.insert(key, (value, now + length));
}

impl Gatekeeper {
    pub(super) fn new(client: Client, node: String) -> Self {
        Self {
            client,
            node,
            users: Mutex::default(),
            verdicts: Mutex::default(),
        }
    }

    async fn user_of_token(&self, token: &str) -> Result<Option<User>, Fault> {
        let key: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(known) = recall(&self.users, &key) {
            return Ok(known);
        }
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: None,
            },
            ..TokenReview::default()
        };
        let answer =
            ask(Api::<TokenReview>::all(self.client.clone())
                .create(&PostParams::default(), &review))
            .await?;
        let status = answer.status.unwrap_or_default();
        let user = status
            .user
            .filter(|_| status.authenticated == Some(true))
            .map(|user| User {
                name: user.username.unwrap_or_default(),
                groups: user.groups.unwrap_or_default(),
            });
        keep(
            &self.users,
            key,
            user.clone(),
            if user.is_some() { KEEP_USER } else { KEEP_NO },
        );
        Ok(user)
    }

    async fn may(&self, user: &User, deed: Deed) -> Result<bool, Fault> {
        if user.groups.iter().any(|group| group == MASTERS) {
            return Ok(true);
        }
        let key = (user.clone(), deed.clone());
        if let Some(known) = recall(&self.verdicts, &key) {
            return Ok(known);
        }
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.name.clone()),
                groups: Some(user.groups.clone()),
                resource_attributes: Some(ResourceAttributes {
                    verb: Some(deed.verb.to_owned()),
                    version: Some("v1".to_owned()),
                    resource: Some("nodes".to_owned()),
                    subresource: Some(deed.part.to_owned()),
                    name: Some(self.node.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        let answer = ask(reviews.create(&PostParams::default(), &review)).await?;
        let allowed = answer.status.is_some_and(|status| status.allowed);
        keep(
            &self.verdicts,
            key,
            allowed,
            if allowed { KEEP_YES } else { KEEP_NO },
        );
        Ok(allowed)
    }
}

/// The parts of a node that a path belongs to: any of them may be granted.
fn parts(path: &str) -> &'static [&'static str] {
    let is = |prefix: &str| {
        path == prefix
            || path
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    match path {
        _ if is("/stats") => &["stats"],
        _ if is("/metrics") => &["metrics"],
        _ if is("/logs") => &["log"],
        _ if is("/healthz") => &["healthz", "proxy"],
        _ if is("/pods") || is("/runningpods") => &["pods", "proxy"],
        _ => &["proxy"],
    }
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "get",
    }
}

/// The subject of a certificate whose chain was checked when the connection was made.
fn user_of_certificate(bytes: &[u8]) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(bytes).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject
        .iter_organization()
        .filter_map(|one| one.as_str().ok().map(str::to_owned))
        .collect();
    Some(User { name, groups })
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim())
        .filter(|token| !token.is_empty())
}

/// Lets a request through, or answers in its place.
pub(super) async fn check(
    State(desk): State<Desk>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    if path == "/healthz" && peer.address.ip().is_loopback() {
        return next.run(request).await;
    }
    let token = token(request.headers()).map(str::to_owned);
    let verb = verb(request.method());
    match allowed(&desk, &peer, token, verb, &path).await {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn allowed(
    desk: &Desk,
    peer: &Peer,
    token: Option<String>,
    verb: &'static str,
    path: &str,
) -> Result<(), Refusal> {
    let silent = |fault: Fault| {
        Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the API could not be asked: {fault}"),
        )
    };
    let by_certificate = peer
        .certificate
        .as_ref()
        .and_then(|one| user_of_certificate(one));
    let user = match (by_certificate, token) {
        (Some(user), _) => Some(user),
        (None, Some(token)) => desk
            .gatekeeper
            .user_of_token(&token)
            .await
            .map_err(silent)?,
        (None, None) => None,
    };
    let Some(user) = user else {
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "Unauthorized"));
    };
    for part in parts(path) {
        if desk
            .gatekeeper
            .may(&user, Deed { verb, part })
            .await
            .map_err(silent)?
        {
            return Ok(());
        }
    }
    let part = parts(path).last().copied().unwrap_or_default();
    let text = format!(
        "Forbidden (user={}, verb={verb}, resource=nodes, subresource(s)=[{part}])",
        user.name
    );
    Err(Refusal::new(StatusCode::FORBIDDEN, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_belong_to_the_parts_that_roles_name() {
        for (path, wanted) in [
            ("/stats/summary", "stats"),
            ("/metrics/resource", "metrics"),
            ("/metrics", "metrics"),
            ("/metricsx", "proxy"),
            ("/exec/a/b/c", "proxy"),
            ("/pods", "pods"),
            ("/", "proxy"),
        ] {
            assert_eq!(parts(path)[0], wanted, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_kept_for_a_while_and_never_too_many() {
        let kept: Kept<usize, bool> = Mutex::default();
        keep(&kept, 0, true, KEEP_NO);
        assert_eq!(recall(&kept, &0), Some(true));
        tokio::time::advance(KEEP_NO).await;
        assert_eq!(recall(&kept, &0), None);
        for key in 0..3 * MOST_KEPT {
            keep(&kept, key, true, KEEP_YES);
        }
        assert!(kept.lock().unwrap().len() <= MOST_KEPT);
    }

    #[test]
    fn what_is_no_certificate_is_nobody() {
        assert_eq!(user_of_certificate(b"nonsense"), None);
    }
}
