//! How a machine becomes a node: one token in, two certificates out.
//!
//! The token names the cluster's authority by digest, so nothing is ever sent to a server that another
//! authority vouches for. Keys are made here and never leave the machine. Every step can be taken again:
//! what a join that died has left is used or replaced.

mod authority;
mod certificate;
mod folder;
mod identity;
mod life;
mod serving;
#[cfg(test)]
mod tests;
mod token;

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use http::Uri;
use kube::Client;
use kube::config::{AuthInfo, Config};
use transom_host::files::Files;

use crate::options::Clock;
use life::Life;

pub use authority::{AuthorityFault, Pin, fetch_authority};
pub use certificate::{CertificateFault, Purpose, Wish, request};
pub use folder::{Credentials, Folder, FolderFault};
pub use identity::Identity;
pub use serving::{Serving, Unusable, Wanted};
pub use token::{InvalidToken, JoinToken, NoRandomness};

/// Why a machine did not become a node.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error(transparent)]
    Authority(#[from] AuthorityFault),
    #[error(transparent)]
    Folder(#[from] FolderFault),
    #[error(transparent)]
    Certificate(#[from] CertificateFault),
    #[error(transparent)]
    Unusable(#[from] Unusable),
    #[error("could not make a client of the API server")]
    Client(#[source] kube::Error),
    #[error(
        "{0}, and there is no token to get one: make one with `transom token create` on a server and give it with --token-file or TRANSOM_TOKEN"
    )]
    NoToken(Lack),
    #[error("the certificates in this folder are those of node {found:?}, not of {wanted:?}")]
    OtherNode { found: String, wanted: String },
}

/// Why a machine needs a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lack {
    #[error("this machine has no certificate of a cluster yet")]
    None,
    #[error("the certificate of this node has expired")]
    Expired,
    #[error("the certificate of this node, `{path}`, is damaged")]
    Damaged { path: Utf8PathBuf },
}

/// What a join needs to know.
#[derive(Clone, Debug)]
pub struct Join<'a> {
    pub server: &'a Uri,
    pub node: &'a str,
    pub token: Option<&'a JoinToken>,
    /// Where certificates and keys are kept.
    pub folder: &'a Utf8Path,
}

/// Uses the certificates that are there, or gets them with the token. Returns what the agent shows to the API.
pub async fn join(
    files: Arc<dyn Files>,
    join: &Join<'_>,
    clock: &Clock,
) -> Result<Credentials, JoinError> {
    let folder = Folder::prepare(files, join.folder)?;
    let lack = match folder.credentials(Purpose::Client) {
        Ok(Some(found)) if found.node != join.node => {
            return Err(JoinError::OtherNode {
                found: found.node,
                wanted: join.node.to_owned(),
            });
        }
        Ok(Some(found)) => {
            let is_over = Life::of(&found.certificate).is_none_or(|life| life.is_over(clock.now()));
            match join.token {
                Some(token) if names_another_authority(token, &found) => {
                    return Ok(rejoin(&folder, join, token, found).await);
                }
                _ if !is_over => return Ok(found),
                _ => Lack::Expired,
            }
        }
        Ok(None) => Lack::None,
        Err(FolderFault::Damaged { path }) => Lack::Damaged { path },
        Err(fault) => return Err(fault.into()),
    };
    let token = join.token.ok_or_else(|| JoinError::NoToken(lack.clone()))?;
    if lack != Lack::None {
        tracing::warn!("{lack}: a new one is asked for with the token");
    }
    with_token(&folder, join.server, join.node, token).await
}

/// Whether a token was made after the cluster got another authority than the one this node knows.
fn names_another_authority(token: &JoinToken, found: &Credentials) -> bool {
    let mut known = authority::certificates(&found.authority).into_iter();
    !known.any(|certificate| Pin::of(&certificate) == token.pin)
}

/// Joins a cluster that has a new authority. Until that works the old certificate is better than none: the server
/// may be away, and the token an old one.
async fn rejoin(
    folder: &Folder,
    join: &Join<'_>,
    token: &JoinToken,
    found: Credentials,
) -> Credentials {
    match with_token(folder, join.server, join.node, token).await {
        Ok(new) => {
            tracing::info!("the cluster has a new authority: joined again with the token");
            new
        }
        Err(fault) => {
            tracing::warn!(%fault, "the token is for another authority than this node knows, and could not be used");
            found
        }
    }
}

/// Gets a certificate with a token, and keeps it.
async fn with_token(
    folder: &Folder,
    server: &Uri,
    node: &str,
    token: &JoinToken,
) -> Result<Credentials, JoinError> {
    let authority = fetch_authority(server, &token.pin).await?;
    let client = token_client(server, &authority, token)?;
    let key = folder.next_key(Purpose::Client)?;
    let wish = Wish {
        purpose: Purpose::Client,
        node,
        addresses: &[],
        replaces: None,
    };
    let certificate = request(&client, &key, &wish).await?;
    Ok(folder.keep(Purpose::Client, node, &authority, &certificate)?)
}

fn token_client(server: &Uri, authority: &str, token: &JoinToken) -> Result<Client, JoinError> {
    let mut config = Config::new(server.clone());
    config.root_cert = Some(authority::certificates(authority));
    config.auth_info = AuthInfo {
        token: Some(token.bearer().into()),
        ..AuthInfo::default()
    };
    Client::try_from(config).map_err(JoinError::Client)
}

/// A client of the API that shows these credentials.
fn client(server: &Uri, credentials: &Credentials) -> Result<Client, JoinError> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    let mut config = Config::new(server.clone());
    config.root_cert = Some(authority::certificates(&credentials.authority));
    config.auth_info = AuthInfo {
        client_certificate_data: Some(STANDARD.encode(&credentials.certificate)),
        client_key_data: Some(STANDARD.encode(&credentials.key).into()),
        ..AuthInfo::default()
    };
    Client::try_from(config).map_err(JoinError::Client)
}
