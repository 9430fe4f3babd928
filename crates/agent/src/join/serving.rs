//! The certificate that the agent shows to who asks it for logs and shells: got once the node is known, renewed
//! before it ends, taken into use without a restart.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use tokio_util::sync::CancellationToken;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::JoinError;
use super::authority::certificates;
use super::certificate::{Purpose, Wish, request};
use super::folder::{Credentials, Folder, FolderFault};
use super::life::Life;
use crate::options::Clock;

/// How soon to try again: the node may not be registered yet, or nobody has approved.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Clocks are set and machines sleep: the time is looked at again at least so often.
const ROUND: SignedDuration = SignedDuration::from_hours(1);
/// How soon a certificate that is just signed is looked at again.
const REST: SignedDuration = SignedDuration::from_secs(1);

/// What the agent's listener shows at this moment; nothing before the first certificate.
pub struct Serving {
    provider: Arc<CryptoProvider>,
    shown: RwLock<Option<Arc<CertifiedKey>>>,
}

impl fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Serving").finish_non_exhaustive()
    }
}

impl Default for Serving {
    fn default() -> Self {
        Self {
            provider: Arc::new(aws_lc_rs::default_provider()),
            shown: RwLock::default(),
        }
    }
}

/// Whose certificate it is, and where it is kept.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub node: &'a str,
    pub addresses: &'a [IpAddr],
    /// The certificates that vouch for the cluster, in PEM.
    pub authority: &'a str,
    pub folder: &'a Folder,
    pub clock: &'a Clock,
}

impl Serving {
    /// For the listener. Clients may show a certificate of the cluster; any other is refused.
    pub fn config(self: &Arc<Self>, authority: &str) -> Result<ServerConfig, rustls::Error> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authority) {
            roots.add(CertificateDer::from(certificate))?;
        }
        let clients = WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&self.provider),
        )
        .allow_unauthenticated()
        .build()
        .map_err(|fault| rustls::Error::General(fault.to_string()))?;
        Ok(
            ServerConfig::builder_with_provider(Arc::clone(&self.provider))
                .with_safe_default_protocol_versions()?
                .with_client_cert_verifier(clients)
                .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>),
        )
    }

    /// Gets the certificate, and a new one in time, until `stop`.
    pub async fn keep(&self, client: &Client, wanted: &Wanted<'_>, stop: &CancellationToken) {
        let mut pause = FIRST_PAUSE;
        loop {
            let now = wanted.clock.now();
            let ensured = stop.run_until_cancelled(self.ensure(client, wanted)).await;
            let next = match ensured {
                None => return,
                Some(Ok(renewal)) => {
                    pause = FIRST_PAUSE;
                    let (soon, late) = (now.saturating_add(REST), now.saturating_add(ROUND));
                    renewal.clamp(soon.unwrap_or(now), late.unwrap_or(now))
                }
                Some(Err(fault)) => {
                    let cause = std::error::Error::source(&fault).map(ToString::to_string);
                    tracing::info!(%fault, cause, ?pause, "no certificate to serve with yet");
                    let next = wanted.clock.now().saturating_add(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    next.unwrap_or(now)
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = wanted.clock.sleep_until(next) => {}
            }
        }
    }

    /// Shows a good certificate. Returns when its successor is to be asked for.
    async fn ensure(&self, client: &Client, wanted: &Wanted<'_>) -> Result<Timestamp, JoinError> {
        let found = match wanted.folder.credentials(Purpose::Serving) {
            // Another one can be had.
            Err(FolderFault::Damaged { path }) => {
                tracing::warn!(%path, "the certificate to serve with is damaged and asked for anew");
                None
            }
            found => found?,
        };
        let renewal =
            |certificate: &str| Life::of(certificate).map_or(Timestamp::MIN, |life| life.renewal());
        if let Some(found) = found.as_ref().filter(|found| found.node == wanted.node) {
            let renewal = renewal(&found.certificate);
            let is_fresh = wanted.clock.now() < renewal;
            if is_fresh && names(&found.certificate, wanted.addresses) {
                self.show(found)?;
                return Ok(renewal);
            }
            // It may still do until there is a better one.
            if self.is_empty() {
                self.show(found)?;
            }
        }
        let key = wanted.folder.next_key(Purpose::Serving)?;
        let wish = Wish {
            purpose: Purpose::Serving,
            node: wanted.node,
            addresses: wanted.addresses,
            replaces: found.as_ref().map(|found| found.certificate.as_str()),
        };
        let certificate = request(client, &key, &wish).await?;
        let kept = wanted.folder.keep(
            Purpose::Serving,
            wanted.node,
            wanted.authority,
            &certificate,
        )?;
        self.show(&kept)?;
        Ok(renewal(&kept.certificate))
    }

    fn is_empty(&self) -> bool {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        shown.is_none()
    }

    fn show(&self, credentials: &Credentials) -> Result<(), Unusable> {
        let chain = certificates(&credentials.certificate);
        let chain = chain.into_iter().map(CertificateDer::from).collect();
        let key =
            PrivateKeyDer::from_pem_slice(credentials.key.as_bytes()).map_err(|_| Unusable)?;
        let key = CertifiedKey::from_der(chain, key, &self.provider).map_err(|_| Unusable)?;
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(key));
        Ok(())
    }
}

/// Certificate and key do not make a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the certificate to serve with cannot be used")]
pub struct Unusable;

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.shown
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Whether a certificate names all addresses.
fn names(certificate: &str, addresses: &[IpAddr]) -> bool {
    let Ok(block) = pem::parse(certificate) else {
        return false;
    };
    let Ok((_, parsed)) = X509Certificate::from_der(block.contents()) else {
        return false;
    };
    let names = parsed.subject_alternative_name().ok().flatten();
    let is_named = |address: &IpAddr| {
        let bytes = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        names.as_ref().is_some_and(|names| {
            names.value.general_names.iter().any(|name| {
                matches!(name, x509_parser::extensions::GeneralName::IPAddress(found) if *found == bytes)
            })
        })
    };
    addresses.iter().all(is_named)
}
