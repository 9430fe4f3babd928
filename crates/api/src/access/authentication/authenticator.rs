//! All ways to say who one is, in the order in which they are tried.
//!
//! A request without credentials is anonymous, and gets no further than a few paths.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{
    Fault, Objects, User, bootstrap, group,
    token::{TokenFault, Tokens},
    user_of_certificate,
};
use crate::{
    access::pki::{ADMIN_NAME, TokenKeys},
    status::ApiError,
};

/// What a request brought along.
#[derive(Clone, Copy, Default)]
pub struct Presented<'a> {
    /// The client's own certificate, verified in the handshake.
    pub certificate: Option<&'a [u8]>,
    /// The value of the header `Authorization`.
    pub authorization: Option<&'a str>,
}

impl fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presented")
            .field("certificate", &self.certificate.is_some())
            .field("authorization", &self.authorization.is_some())
            .finish()
    }
}

/// Who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    pub user: User,
    /// Those of a token that were asked for; empty for everything else.
    pub audiences: Vec<String>,
}

/// The paths that need no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnonymousPaths(Vec<String>);

impl Default for AnonymousPaths {
    fn default() -> Self {
        Self::new(["/livez", "/readyz", "/healthz", "/version"])
    }
}

impl AnonymousPaths {
    pub fn new<T: Into<String>>(paths: impl IntoIterator<Item = T>) -> Self {
        Self(paths.into_iter().map(Into::into).collect())
    }

    /// Whether the path, or the folder it is in, is open to all.
    pub fn allow(&self, path: &str) -> bool {
        self.0.iter().any(|open| {
            path.strip_prefix(open.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// A token that an administrator chose. Only its hash is kept.
#[derive(Clone)]
pub struct StaticToken([u8; 32]);

impl StaticToken {
    pub fn new(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    fn is(&self, token: &str) -> bool {
        let offered: [u8; 32] = Sha256::digest(token).into();
        verify_slices_are_equal(&self.0, &offered).is_ok()
    }
}

impl fmt::Debug for StaticToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StaticToken")
    }
}

/// Finds out who is asking.
#[derive(Clone, Debug, Default)]
pub struct Authenticator {
    pub tokens: Tokens,
    pub admin_token: Option<StaticToken>,
    pub anonymous: AnonymousPaths,
}

impl Authenticator {
    /// Who sent a request for `path`. All that a stranger learns is that they are not let in.
    pub fn authenticate(
        &self,
        presented: Presented<'_>,
        path: &str,
        keys: &TokenKeys,
        objects: &dyn Objects,
        now: Timestamp,
    ) -> Result<User, ApiError> {
        match self.identify(presented, keys, objects, now) {
            Ok(found) => Ok(found.user),
            Err(Fault::Nothing) if self.anonymous.allow(path) => Ok(User::anonymous()),
            Err(fault) => {
                tracing::debug!(%fault, path, "refused a request");
                Err(ApiError::unauthorized())
            }
        }
    }

    /// As [`Authenticator::authenticate`], with the reason.
    pub fn identify(
        &self,
        presented: Presented<'_>,
        keys: &TokenKeys,
        objects: &dyn Objects,
        now: Timestamp,
    ) -> Result<Authenticated, Fault> {
        let mut fault = Fault::Nothing;
        if let Some(certificate) = presented.certificate {
            match user_of_certificate(certificate, now) {
                Ok(user) => {
                    return Ok(Authenticated {
                        user,
                        audiences: Vec::new(),
                    });
                }
                Err(wrong) => fault = wrong.into(),
            }
        }
        match presented.authorization.map(bearer) {
            None => Err(fault),
            Some(None) => Err(Fault::InvalidToken),
            Some(Some(token)) => self.identify_token(token, &[], keys, objects, now),
        }
    }

    /// Whose token it is, if it is good for one of `audiences`; without any, for this server.
    pub fn identify_token(
        &self,
        token: &str,
        audiences: &[String],
        keys: &TokenKeys,
        objects: &dyn Objects,
        now: Timestamp,
    ) -> Result<Authenticated, Fault> {
        let reason = match self.tokens.verify(keys, token, audiences, objects, now) {
            Ok(verified) => {
                return Ok(Authenticated {
                    user: verified.user,
                    audiences: verified.audiences,
                });
            }
            Err(reason) => reason,
        };
        // Other tokens say nothing of an audience: they are for this server only.
        let for_us: Vec<String> = if audiences.is_empty() {
            Vec::new()
        } else {
            let ours = self.tokens.audiences().iter();
            ours.filter(|ours| audiences.contains(ours))
                .cloned()
                .collect()
        };
        if reason == TokenFault::Foreign
            && (audiences.is_empty() || !for_us.is_empty())
            && let Some(user) = self.other_token(token, objects, now)
        {
            return Ok(Authenticated {
                user,
                audiences: for_us,
            });
        }
        Err(match reason {
            TokenFault::Foreign => Fault::InvalidToken,
            reason => Fault::Token {
                reason: reason.to_string(),
            },
        })
    }

    fn other_token(&self, token: &str, objects: &dyn Objects, now: Timestamp) -> Option<User> {
        let is_admin = self
            .admin_token
            .as_ref()
            .is_some_and(|known| known.is(token));
        if is_admin {
            let groups = vec![group::MASTERS.to_owned()];
            return Some(User::authenticated(ADMIN_NAME, groups));
        }
        bootstrap::authenticate(token, objects, now)
    }
}

/// The token in `Bearer <token>`. The word may be in any case.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
