//! Certificates of a node, asked of the API with a signing request.
//!
//! Invariant: a request is named after what it asks for, so asking again after a crash finds the first request.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec,
};
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::watcher::{self, watch_object};
use kube::{Api, Client};
use rcgen::{CertificateParams, DnType, KeyPair, PublicKeyData as _, SanType};
use sha2::{Digest as _, Sha256};

/// How long somebody may take to approve. An administrator who has to do it by hand gets the next try.
const PATIENCE: Duration = Duration::from_mins(2);

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The node asks the API.
    Client,
    /// The API asks the node.
    Serving,
}

impl Purpose {
    fn signer(self) -> &'static str {
        match self {
            Self::Client => "kubernetes.io/kube-apiserver-client-kubelet",
            Self::Serving => "kubernetes.io/kubelet-serving",
        }
    }

    fn usages(self) -> Vec<String> {
        let own = match self {
            Self::Client => "client auth",
            Self::Serving => "server auth",
        };
        vec!["digital signature".to_owned(), own.to_owned()]
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Serving => "serving",
        }
    }
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFault {
    #[error("could not make a signing request")]
    Request(#[from] rcgen::Error),
    #[error("the API server did not take the signing request")]
    Api(#[source] Box<kube::Error>),
    #[error("lost sight of the signing request `{name}`")]
    Watch {
        name: String,
        #[source]
        source: Box<watcher::Error>,
    },
    #[error("the signing request `{name}` was denied: {message}")]
    Denied { name: String, message: String },
    #[error(
        "nobody has signed the request `{name}` yet: approve it with `kubectl certificate approve {name}`"
    )]
    NotSigned { name: String },
}

/// A certificate that is wanted.
#[derive(Debug)]
pub struct Wish<'a> {
    pub purpose: Purpose,
    pub node: &'a str,
    pub addresses: &'a [IpAddr],
    /// The certificate that it comes after, in PEM.
    pub replaces: Option<&'a str>,
}

/// Asks for a certificate for `key`, and waits until it is signed. Returns it in PEM.
pub async fn request(
    client: &Client,
    key: &KeyPair,
    wish: &Wish<'_>,
) -> Result<String, CertificateFault> {
    let object = object(key, wish)?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    match requests.create(&PostParams::default(), &object).await {
        Ok(_) => {}
        // Of a join that died after this: it is for the same key.
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(fault) => return Err(CertificateFault::Api(Box::new(fault))),
    }
    let mut sights = watch_object(requests, &name).boxed();
    let signed = async {
        while let Some(sight) = sights.try_next().await.transpose() {
            let sight = sight.map_err(|source| CertificateFault::Watch {
                name: name.clone(),
                source: Box::new(source),
            })?;
            if let Some(outcome) = sight.as_ref().and_then(outcome) {
                return outcome.map_err(|message| CertificateFault::Denied {
                    name: name.clone(),
                    message,
                });
            }
        }
        Err(CertificateFault::NotSigned { name: name.clone() })
    };
    tokio::time::timeout(PATIENCE, signed)
        .await
        .unwrap_or_else(|_| Err(CertificateFault::NotSigned { name: name.clone() }))
}

fn object(key: &KeyPair, wish: &Wish<'_>) -> Result<CertificateSigningRequest, rcgen::Error> {
    let mut asked = CertificateParams::default();
    let name = &mut asked.distinguished_name;
    name.push(DnType::OrganizationName, "system:nodes");
    name.push(DnType::CommonName, format!("system:node:{}", wish.node));
    if wish.purpose == Purpose::Serving {
        let addresses = wish.addresses.iter().copied().map(SanType::IpAddress);
        asked
            .subject_alt_names
            .push(SanType::DnsName(wish.node.try_into()?));
        asked.subject_alt_names.extend(addresses);
    }
    let text = asked.serialize_request(key)?.pem()?;
    Ok(CertificateSigningRequest {
        metadata: ObjectMeta {
            name: Some(name_of(key, wish)),
            ..ObjectMeta::default()
        },
        spec: CertificateSigningRequestSpec {
            request: ByteString(text.into_bytes()),
            signer_name: wish.purpose.signer().to_owned(),
            usages: Some(wish.purpose.usages()),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    })
}

fn name_of(key: &KeyPair, wish: &Wish<'_>) -> String {
    let mut digest = Sha256::new();
    digest.update(key.subject_public_key_info());
    for address in wish.addresses {
        digest.update(address.to_string());
    }
    digest.update(wish.replaces.unwrap_or_default());
    let mut name = format!("node-{}-", wish.purpose.word());
    for byte in &digest.finalize()[..12] {
        // Writing to a text cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// The certificate, or why there will be none. `None` while nothing is decided.
fn outcome(object: &CertificateSigningRequest) -> Option<Result<String, String>> {
    let status = object.status.as_ref()?;
    let refused = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| matches!(condition.type_.as_str(), "Denied" | "Failed"));
    if let Some(condition) = refused {
        return Some(Err(condition.message.clone().unwrap_or_default()));
    }
    let certificate = status.certificate.as_ref()?;
    String::from_utf8(certificate.0.clone()).ok().map(Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_named_after_what_it_asks_for() {
        let key = KeyPair::generate().unwrap();
        let wish = |addresses, replaces| Wish {
            purpose: Purpose::Serving,
            node: "n1",
            addresses,
            replaces,
        };
        let here: &[IpAddr] = &["10.0.0.1".parse().unwrap()];
        let first = name_of(&key, &wish(here, None));
        assert_eq!(name_of(&key, &wish(here, None)), first);
        assert_ne!(name_of(&key, &wish(&[], None)), first);
        assert_ne!(name_of(&key, &wish(here, Some("old"))), first);
        assert_ne!(
            name_of(&KeyPair::generate().unwrap(), &wish(here, None)),
            first
        );
    }
}
