//! Tokens of service accounts for pods, each asked for once and again when it grows old.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection},
};
use kube::{Api, api::PostParams};

use crate::{compose::ComposeError, fault::ask, site::Site};

/// Older tokens are replaced, however long they would last.
const OLDEST: SignedDuration = SignedDuration::from_hours(24);

#[derive(Clone)]
struct Token {
    text: String,
    given: Timestamp,
    expires: Timestamp,
}

/// By pod, audience and length of life. Never printed.
#[derive(Default)]
pub(crate) struct Tokens {
    known: Mutex<BTreeMap<(String, String, i64), Token>>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tokens(…)")
    }
}

fn is_due(token: &Token, now: Timestamp) -> bool {
    let life = token.expires.duration_since(token.given);
    let age = now.duration_since(token.given);
    age > OLDEST || age.as_secs().saturating_mul(10) > life.as_secs().saturating_mul(8)
}

impl Tokens {
    pub(super) async fn token(
        &self,
        site: &Site,
        pod: &Pod,
        source: &ServiceAccountTokenProjection,
    ) -> Result<String, ComposeError> {
        let seconds = source.expiration_seconds.unwrap_or(3600);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let key = (uid, source.audience.clone().unwrap_or_default(), seconds);
        let now = site.options.clock.now();
        let known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        if let Some(known) = &known
            && !is_due(known, now)
        {
            return Ok(known.text.clone());
        }
        let asked = request(site, pod, &key.1, seconds).await;
        match (asked, known) {
            (Ok(token), _) => {
                let text = token.text.clone();
                let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                all.insert(key, token);
                Ok(text)
            }
            // An old token is better than none while nobody gives a new one.
            (Err(_), Some(known)) if known.expires > now => Ok(known.text),
            (Err(error), _) => Err(error),
        }
    }

    pub(crate) fn forget(&self, uid: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(pod, _, _), _| pod != uid);
    }
}

async fn request(
    site: &Site,
    pod: &Pod,
    audience: &str,
    seconds: i64,
) -> Result<Token, ComposeError> {
    let account = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.service_account_name.clone());
    let account = account.unwrap_or_else(|| "default".to_owned());
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let wanted = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: (!audience.is_empty()).then(|| vec![audience.to_owned()]),
            expiration_seconds: Some(seconds),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: pod.metadata.name.clone(),
                uid: pod.metadata.uid.clone(),
            }),
        }),
        ..TokenRequest::default()
    };
    let accounts = Api::<ServiceAccount>::namespaced(site.client.clone(), namespace);
    let given = site.options.clock.now();
    let answer =
        ask(accounts.create_token_request(&account, &PostParams::default(), &wanted)).await?;
    let status = answer.status.unwrap_or_default();
    match (status.token, status.expiration_timestamp) {
        (Some(text), Some(expires)) => Ok(Token {
            text,
            given,
            expires: expires.0,
        }),
        _ => Err(ComposeError::Invalid("the API gave no token".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_replaced_after_four_fifths_of_their_life_or_a_day() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let token = |life| Token {
            text: String::new(),
            given: at(0),
            expires: at(life),
        };
        assert!(!is_due(&token(3600), at(2880)));
        assert!(is_due(&token(3600), at(2881)));
        assert!(!is_due(&token(1_000_000), at(86_400)));
        assert!(is_due(&token(1_000_000), at(86_401)));
    }
}
