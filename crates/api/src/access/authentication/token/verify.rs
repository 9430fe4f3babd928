//! Whether a token is good.
//!
//! The signature comes first: nothing that a stranger wrote is looked at, except which key they claim.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::de::DeserializeOwned;

use super::{
    super::{
        Live, Objects, User, certificate::CREDENTIAL_ID, service_account_groups,
        service_account_name,
    },
    Claims, Reference, Tokens,
    remembered::{self, Known},
};
use crate::access::{
    pki::{TokenKey, TokenKeys},
    quoted,
};

/// Clocks differ by so much at most.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);
/// Ours have about one KiB; whoever sends more wants something else.
const LONGEST: usize = 16 << 10;

/// A token that is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub user: User,
    /// Those that were asked for and that the token has.
    pub audiences: Vec<String>,
    pub claims: Arc<Claims>,
}

/// Why a token is not good, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// It is no token of a service account: somebody else may know it.
    #[error("the token is not one of a service account")]
    Foreign,
    #[error("the token is too long")]
    TooLong,
    #[error("the token has no valid signature")]
    Signature,
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is not valid yet")]
    NotYet,
    #[error(
        "token audiences {} is invalid for the target audiences {}",
        quoted(found),
        quoted(wanted)
    )]
    Audience {
        found: Vec<String>,
        wanted: Vec<String>,
    },
    #[error("service account token claims could not be validated")]
    Claims,
    #[error("serviceaccounts {name:?} not found")]
    NoAccount { name: String },
    #[error("service account {namespace}/{name} has been deleted")]
    AccountDeleted { namespace: String, name: String },
    #[error("service account UID ({found}) does not match claim ({claimed})")]
    AccountUid { found: String, claimed: String },
    #[error("service account token has been invalidated")]
    Invalidated,
    #[error("{kind} UID ({found}) does not match service account {kind} ref claim ({claimed})")]
    BoundUid {
        kind: &'static str,
        found: String,
        claimed: String,
    },
}

impl Tokens {
    /// Verifies a token for one of `audiences`; without any, for this server.
    pub fn verify(
        &self,
        keys: &TokenKeys,
        token: &str,
        audiences: &[String],
        objects: &dyn Objects,
        now: Timestamp,
    ) -> Result<Verified, TokenFault> {
        let claims = match self.verified_claims(keys, token) {
            // It is signed by us and says something else: maybe what stands in a secret.
            Err(TokenFault::Claims) => {
                return self.verify_held(keys, token, audiences, objects, now);
            }
            other => other?,
        };
        check_times(&claims, now)?;
        let wanted = if audiences.is_empty() {
            self.audiences()
        } else {
            audiences
        };
        let shared: Vec<String> = wanted
            .iter()
            .filter(|audience| claims.audiences.contains(audience))
            .cloned()
            .collect();
        if shared.is_empty() {
            return Err(TokenFault::Audience {
                found: claims.audiences.clone(),
                wanted: wanted.to_vec(),
            });
        }
        check_objects(&claims, objects, now)?;
        Ok(Verified {
            user: user_of(&claims),
            audiences: shared,
            claims,
        })
    }

    /// What a token says, once its signature, issuer and subject are right.
    fn verified_claims(&self, keys: &TokenKeys, token: &str) -> Result<Arc<Claims>, TokenFault> {
        if token.len() > LONGEST {
            return Err(TokenFault::TooLong);
        }
        let fingerprint = remembered::fingerprint(token);
        if let Some(known) = self.remembered.find(&fingerprint)
            && keys.find(&known.key_id).is_some()
        {
            return Ok(known.claims);
        }
        let (key, claims) = Self::signed::<Claims>(keys, token)?;
        let account = &claims.kubernetes;
        let subject = service_account_name(&account.namespace, &account.service_account.name);
        if claims.issuer != self.issuer() || claims.subject != subject {
            return Err(TokenFault::Claims);
        }
        let claims = Arc::new(claims);
        let known = Known {
            key_id: key.id().into(),
            claims: Arc::clone(&claims),
        };
        self.remembered.keep(fingerprint, known);
        Ok(claims)
    }

    /// What stands in a token that one of our keys signed, and that key.
    pub(super) fn signed<'a, T: DeserializeOwned>(
        keys: &'a TokenKeys,
        token: &str,
    ) -> Result<(&'a TokenKey, T), TokenFault> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| TokenFault::Foreign)?;
        if header.alg != Algorithm::ES256 || header.crit.is_some() {
            return Err(TokenFault::Foreign);
        }
        let key = header.kid.as_deref().and_then(|id| keys.find(id));
        let key = key.ok_or(TokenFault::Foreign)?;
        let mut rules = Validation::new(Algorithm::ES256);
        // Times and audiences are checked elsewhere, against the clock and the audiences that were given.
        rules.required_spec_claims.clear();
        rules.validate_exp = false;
        rules.validate_nbf = false;
        rules.validate_aud = false;
        let public = DecodingKey::from_ec_der(key.public());
        let decoded =
            jsonwebtoken::decode::<T>(token, &public, &rules).map_err(|error| {
                match error.kind() {
                    jsonwebtoken::errors::ErrorKind::InvalidSignature => TokenFault::Signature,
                    _ => TokenFault::Claims,
                }
            })?;
        Ok((key, decoded.claims))
    }
}

fn check_times(claims: &Claims, now: Timestamp) -> Result<(), TokenFault> {
    let now = now.as_second();
    let leeway = LEEWAY.as_secs();
    if now.saturating_sub(leeway) > claims.expires {
        return Err(TokenFault::Expired);
    }
    let soonest = claims.not_before.max(claims.issued);
    if now.saturating_add(leeway) < soonest {
        return Err(TokenFault::NotYet);
    }
    Ok(())
}

fn check_objects(claims: &Claims, objects: &dyn Objects, now: Timestamp) -> Result<(), TokenFault> {
    let about = &claims.kubernetes;
    let namespace = &about.namespace;
    check_account(namespace, &about.service_account, objects, now)?;
    if let Some(secret) = &about.secret {
        let live = objects.secret(namespace, &secret.name);
        check_bound("secret", secret, live, now)?;
    }
    if let Some(pod) = &about.pod {
        let live = objects.pod(namespace, &pod.name);
        check_bound("pod", pod, live, now)?;
    } else if let Some(node) = &about.node {
        // The node of a pod is only told; without a pod the token is bound to the node itself.
        let live = objects.node(&node.name);
        check_bound("node", node, live, now)?;
    }
    Ok(())
}

/// Whether the account is the one that the token was made for.
pub(super) fn check_account(
    namespace: &str,
    account: &Reference,
    objects: &dyn Objects,
    now: Timestamp,
) -> Result<(), TokenFault> {
    let Some(live) = objects.service_account(namespace, &account.name) else {
        return Err(TokenFault::NoAccount {
            name: account.name.clone(),
        });
    };
    if is_gone(&live, now) {
        return Err(TokenFault::AccountDeleted {
            namespace: namespace.to_owned(),
            name: account.name.clone(),
        });
    }
    if live.uid != account.uid {
        return Err(TokenFault::AccountUid {
            found: live.uid,
            claimed: account.uid.clone(),
        });
    }
    Ok(())
}

fn check_bound(
    kind: &'static str,
    claimed: &Reference,
    live: Option<Live>,
    now: Timestamp,
) -> Result<(), TokenFault> {
    let live = live.filter(|live| !is_gone(live, now));
    let live = live.ok_or(TokenFault::Invalidated)?;
    if live.uid == claimed.uid {
        return Ok(());
    }
    Err(TokenFault::BoundUid {
        kind,
        found: live.uid,
        claimed: claimed.uid.clone(),
    })
}

/// It was to be gone a while ago, and only a finalizer holds it.
pub(super) fn is_gone(live: &Live, now: Timestamp) -> bool {
    live.deletion
        .is_some_and(|deletion| now.duration_since(deletion) > LEEWAY)
}

pub(super) fn user_of(claims: &Claims) -> User {
    let about = &claims.kubernetes;
    let groups = service_account_groups(&about.namespace);
    let mut user = User::authenticated(claims.subject.clone(), groups);
    user.uid.clone_from(&about.service_account.uid);
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            user.extra.insert(key.to_owned(), vec![value.to_owned()]);
        }
    };
    if !claims.id.is_empty() {
        add(CREDENTIAL_ID, &format!("JTI={}", claims.id));
    }
    if let Some(pod) = &about.pod {
        add("authentication.kubernetes.io/pod-name", &pod.name);
        add("authentication.kubernetes.io/pod-uid", &pod.uid);
    }
    if let Some(node) = &about.node {
        add("authentication.kubernetes.io/node-name", &node.name);
        add("authentication.kubernetes.io/node-uid", &node.uid);
    }
    user
}
