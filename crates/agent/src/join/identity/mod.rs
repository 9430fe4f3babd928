//! Who the node is to the API at this moment: a certificate that is renewed in time, and a client that always
//! shows the newest one.
//!
//! Requests that go on keep the connection that they have. Every new one is sent over connections that were made
//! with the certificate of now, because the API asks for every request whether its certificate is still good.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http::{Request, Response, StatusCode, Uri};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use rustls::{AlertDescription, CertificateError};
use tokio_util::sync::CancellationToken;

use super::certificate::{Purpose, Wish, request};
use super::folder::{Credentials, Folder};
use super::life::Life;
use super::{JoinError, JoinToken, Lack, client, with_token};
use crate::options::Clock;

/// How soon to try again; a certificate that is just renewed is looked at again no sooner.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// Clocks are set and machines sleep: the time is looked at again at least so often.
const ROUND: SignedDuration = SignedDuration::from_hours(1);
/// A cluster that does not know us any more is named no more often.
const COMPLAINT: SignedDuration = SignedDuration::from_mins(5);

/// Who the node is, and the way to the API that shows it.
pub struct Identity {
    server: Uri,
    clock: Clock,
    now: RwLock<Shown>,
    complained: Mutex<Option<Timestamp>>,
}

#[derive(Clone)]
struct Shown {
    credentials: Credentials,
    client: Client,
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Identity({})", self.shown().credentials.node)
    }
}

impl Identity {
    /// What a join gave, taken into use.
    pub fn new(
        server: &Uri,
        credentials: Credentials,
        clock: Clock,
    ) -> Result<Arc<Self>, JoinError> {
        let client = client(server, &credentials)?;
        Ok(Arc::new(Self {
            server: server.clone(),
            clock,
            now: RwLock::new(Shown {
                credentials,
                client,
            }),
            complained: Mutex::default(),
        }))
    }

    /// The certificates that vouch for the cluster, in PEM.
    pub fn authority(&self) -> String {
        self.shown().credentials.authority
    }

    /// A client that shows, with every request, the certificate of that moment.
    pub fn client(self: &Arc<Self>) -> Client {
        let identity = Arc::clone(self);
        let send = move |request: Request<Body>| {
            let identity = Arc::clone(&identity);
            async move { identity.send(request).await }
        };
        Client::new(tower::service_fn(send), "default")
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let answer = self.shown().client.send(request).await;
        if let Some(rejection) = rejection(&answer) {
            self.complain(rejection);
        }
        answer
    }

    fn shown(&self) -> Shown {
        self.now
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn complain(&self, rejection: Rejection) {
        let now = self.clock.now();
        let mut last = self
            .complained
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| now.duration_since(last) >= COMPLAINT) {
            *last = Some(now);
            tracing::error!(server = %self.server, "{rejection}");
        }
    }

    /// Renews the certificate in time, until `stop`. Pods go on running without it, so nothing here is fatal.
    pub async fn keep(&self, folder: &Folder, token: Option<&JoinToken>, stop: &CancellationToken) {
        let mut pause = FIRST_PAUSE;
        loop {
            let now = self.clock.now();
            let certificate = self.shown().credentials.certificate;
            let renewal = Life::of(&certificate).map_or(now, |life| life.renewal());
            let next = if now < renewal {
                renewal.min(now.saturating_add(ROUND).unwrap_or(renewal))
            } else {
                let renewed = stop.run_until_cancelled(self.renew(folder, token)).await;
                let waited = match renewed {
                    None => return,
                    Some(Ok(ends)) => {
                        tracing::info!(%ends, "the node has a new certificate");
                        pause = FIRST_PAUSE;
                        FIRST_PAUSE
                    }
                    Some(Err(fault)) => {
                        let cause = fault.source().map(ToString::to_string);
                        tracing::warn!(%fault, cause, ?pause, "the node's certificate was not renewed");
                        let waited = pause;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                        waited
                    }
                };
                let now = self.clock.now();
                now.saturating_add(waited).unwrap_or(now)
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.clock.sleep_until(next) => {}
            }
        }
    }

    /// Gets the next certificate and takes it into use. Returns when that one ends.
    async fn renew(
        &self,
        folder: &Folder,
        token: Option<&JoinToken>,
    ) -> Result<Timestamp, JoinError> {
        let Shown {
            credentials,
            client: own,
        } = self.shown();
        let is_over =
            Life::of(&credentials.certificate).is_none_or(|life| life.is_over(self.clock.now()));
        let next = if is_over {
            let token = token.ok_or(JoinError::NoToken(Lack::Expired))?;
            with_token(folder, &self.server, &credentials.node, token).await?
        } else {
            let key = folder.next_key(Purpose::Client)?;
            let wish = Wish {
                purpose: Purpose::Client,
                node: &credentials.node,
                addresses: &[],
                replaces: Some(&credentials.certificate),
            };
            let certificate = request(&own, &key, &wish).await?;
            folder.keep(
                Purpose::Client,
                &credentials.node,
                &credentials.authority,
                &certificate,
            )?
        };
        let ends = Life::of(&next.certificate).map_or(Timestamp::MIN, |life| life.ends());
        let client = client(&self.server, &next)?;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Shown {
            credentials: next,
            client,
        };
        Ok(ends)
    }
}

/// How a cluster says that it is not the one that we know, or that it does not know us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Rejection {
    #[error(
        "the server shows a certificate of an authority that this node does not know; if the cluster got a new authority, make a token with `transom token create` on a server and start the agent again with it"
    )]
    OtherAuthority,
    #[error(
        "the server does not accept the certificate of this node; make a token with `transom token create` on a server, remove the folder `pki` of the agent and start it again with the token"
    )]
    NotAccepted,
}

fn rejection(answer: &Result<Response<Body>, kube::Error>) -> Option<Rejection> {
    match answer {
        Ok(answer) if answer.status() == StatusCode::UNAUTHORIZED => Some(Rejection::NotAccepted),
        Ok(_) => None,
        Err(error) => tls_fault(error).and_then(of_tls),
    }
}

/// An error of TLS, which hides in errors of the system, which hide in each other.
fn tls_fault<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(found) = error.downcast_ref() {
        return Some(found);
    }
    let within = error
        .downcast_ref::<io::Error>()
        .and_then(|error| error.get_ref());
    match within {
        Some(within) => tls_fault(within),
        None => error.source().and_then(tls_fault),
    }
}

fn of_tls(fault: &rustls::Error) -> Option<Rejection> {
    match fault {
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => Some(Rejection::OtherAuthority),
        rustls::Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::DecryptError,
        ) => Some(Rejection::NotAccepted),
        _ => None,
    }
}
