//! Tokens that stand in a secret of type `kubernetes.io/service-account-token`. They have no end of their own.
//!
//! Such a token is good only while the secret that it names still holds it, and the account exists under its uid.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    super::{Live, Objects, service_account_name},
    Claims, Kubernetes, Reference, SignError, TokenFault, Tokens, Verified,
    verify::{check_account, is_gone, user_of},
};
use crate::access::pki::TokenKeys;

/// Who signs these, for every cluster the same.
const ISSUER: &str = "kubernetes/serviceaccount";

/// What such a token says, in the names of upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LegacyClaims {
    #[serde(rename = "iss")]
    issuer: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    account: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    account_uid: String,
    #[serde(rename = "sub")]
    subject: String,
}

/// Which account a token is for, and the secret that will hold it.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    pub namespace: &'a str,
    pub secret: &'a str,
    pub account: &'a str,
    pub account_uid: &'a str,
}

impl Tokens {
    /// Signs a token that is to stand in a secret.
    pub fn sign_for_secret(
        &self,
        keys: &TokenKeys,
        holder: Holder<'_>,
    ) -> Result<String, SignError> {
        let claims = LegacyClaims {
            issuer: ISSUER.to_owned(),
            namespace: holder.namespace.to_owned(),
            secret: holder.secret.to_owned(),
            account: holder.account.to_owned(),
            account_uid: holder.account_uid.to_owned(),
            subject: service_account_name(holder.namespace, holder.account),
        };
        Self::sign_claims(keys, &claims)
    }

    /// Verifies a token that is to stand in a secret. It is for this server and nobody else.
    pub(super) fn verify_held(
        &self,
        keys: &TokenKeys,
        token: &str,
        audiences: &[String],
        objects: &dyn Objects,
        now: Timestamp,
    ) -> Result<Verified, TokenFault> {
        let (_, found) = Self::signed::<LegacyClaims>(keys, token)?;
        if found.issuer != ISSUER
            || found.subject != service_account_name(&found.namespace, &found.account)
        {
            return Err(TokenFault::Claims);
        }
        let ours = self.audiences().iter();
        let shared: Vec<String> = ours
            .filter(|ours| audiences.is_empty() || audiences.contains(ours))
            .cloned()
            .collect();
        if shared.is_empty() {
            return Err(TokenFault::Audience {
                found: self.audiences().to_vec(),
                wanted: audiences.to_vec(),
            });
        }
        let account = Reference {
            name: found.account,
            uid: found.account_uid,
        };
        check_account(&found.namespace, &account, objects, now)?;
        let secret = objects
            .whole_secret(&found.namespace, &found.secret)
            .filter(|secret| !is_gone(&Live::of(secret), now));
        let held = secret
            .as_ref()
            .and_then(|secret| STANDARD.decode(secret["data"]["token"].as_str()?).ok())
            .is_some_and(|held| verify_slices_are_equal(&held, token.as_bytes()).is_ok());
        if !held {
            return Err(TokenFault::Invalidated);
        }
        let claims = Claims {
            audiences: self.audiences().to_vec(),
            expires: i64::MAX,
            issued: 0,
            not_before: 0,
            issuer: found.issuer,
            id: String::new(),
            subject: found.subject,
            kubernetes: Kubernetes {
                namespace: found.namespace,
                service_account: account,
                secret: Some(Reference {
                    name: found.secret,
                    uid: String::new(),
                }),
                ..Kubernetes::default()
            },
        };
        Ok(Verified {
            user: user_of(&claims),
            audiences: shared,
            claims: Arc::new(claims),
        })
    }
}
