//! Removes tokens for joining once they have expired; `secrets` fills those of service accounts.

pub(crate) mod secrets;

use std::time::Duration;

use k8s_openapi::{api::core::v1::Secret, jiff::Timestamp};
use kube::{
    Api, Client,
    api::{DeleteParams, Preconditions},
    runtime::watcher::Config,
};
use tokio_util::sync::CancellationToken;

use crate::{
    fault::{Fault, ask},
    known::{Known, keep},
    queue::{Next, Queue},
};

const AT_ONCE: usize = 2;
const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";

/// A token as far as its end matters; nothing secret is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    uid: String,
    ends: Timestamp,
}

impl Token {
    /// `None` if it is no token, or has no end.
    fn read(secret: Secret) -> Option<Self> {
        if secret.type_.as_deref() != Some(TYPE) {
            return None;
        }
        let data = secret.data?;
        let text = std::str::from_utf8(&data.get("expiration")?.0).ok()?;
        Some(Self {
            uid: secret.metadata.uid?,
            // An end that cannot be read is one that has passed: nobody may join by mistake.
            ends: text.trim().parse().unwrap_or(Timestamp::MIN),
        })
    }

    /// What is left of its life; `None` if it has passed.
    fn left(&self, now: Timestamp) -> Option<Duration> {
        let left = Duration::try_from(self.ends.duration_since(now)).ok()?;
        (!left.is_zero()).then_some(left)
    }
}

pub(crate) async fn run(client: Client, stop: CancellationToken) {
    let secrets: Api<Secret> = Api::namespaced(client, NAMESPACE);
    let tokens = Known::new();
    let queue = Queue::new();
    let news = keep(
        secrets.clone(),
        Config::default().fields(&format!("type={TYPE}")),
        &tokens,
        Token::read,
        |key, _, new| {
            if new.is_some() {
                queue.add(key.name.clone());
            }
        },
    );
    let work = queue.drive("tokens", AT_ONCE, &stop, |name| {
        look(&secrets, &tokens, &queue, name)
    });
    tokio::select! {
        () = work => {}
        () = news => {}
    }
}

async fn look(
    secrets: &Api<Secret>,
    tokens: &Known<Token>,
    queue: &Queue<String>,
    name: String,
) -> Result<Next, Fault> {
    let Some(token) = tokens.get(NAMESPACE, &name) else {
        return Ok(Next::Done);
    };
    if let Some(left) = token.left(Timestamp::now()) {
        queue.add_after(name, left);
        return Ok(Next::Done);
    }
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(token.uid.clone()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match ask(secrets.delete(&name, &parameters)).await {
        Err(fault) if !fault.is_absent() && !fault.is_conflict() => Err(fault),
        _ => Ok(Next::Done),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{ByteString, jiff::SignedDuration};
    use serde_json::json;

    use super::*;

    fn token(kind: &str, expiration: Option<&str>) -> Option<Token> {
        let mut data = json!({"token-id": ByteString(b"abcdef".to_vec())});
        if let Some(text) = expiration {
            data["expiration"] = json!(ByteString(text.as_bytes().to_vec()));
        }
        let secret = json!({"metadata": {"name": "t", "uid": "u"}, "type": kind, "data": data});
        Token::read(serde_json::from_value(secret).unwrap())
    }

    #[test]
    fn a_token_lives_until_its_end_if_it_has_one() {
        assert_eq!(token(TYPE, None), None);
        assert_eq!(token("Opaque", Some("2026-01-01T00:00:00Z")), None);
        let token = token(TYPE, Some("2026-01-01T00:00:00Z")).unwrap();
        let before = token.ends - SignedDuration::from_secs(5);
        assert_eq!(token.left(before), Some(Duration::from_secs(5)));
        assert_eq!(token.left(token.ends), None);
    }

    #[test]
    fn an_end_that_cannot_be_read_has_passed() {
        let token = token(TYPE, Some("tomorrow")).unwrap();
        assert_eq!(token.left(Timestamp::UNIX_EPOCH), None);
    }
}
