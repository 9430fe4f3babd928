//! Images from registries. Layers come several at a time, each goes on where an earlier attempt stopped, and
//! nothing is believed before its digest is checked.
//!
//! Who waits for a pull of the same image asks the registry himself afterwards, with his own credentials, and
//! finds all blobs here: nothing is fetched twice, and nobody gets what he may not have.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use oci_client::Reference;
use oci_client::client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol};
use oci_client::secrets::RegistryAuth;

use super::blobs::{LARGEST_BLOB, LARGEST_DOCUMENT};
use super::digest::Digest;
use super::document::{self, Descriptor, Document, Manifest};
use super::registries::{Registries, RegistryHost};
use super::{Images, reference_name};
use crate::{Credentials, Image, Progress, Pull, RuntimeError};

const AT_ONCE: usize = 4;
/// How often a blob is gone on with after its connection broke.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(15);
const SILENCE: Duration = Duration::from_mins(1);
const ACCEPTED: [&str; 4] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

/// A registry to ask, and as whom.
pub(super) struct Source {
    pub(super) client: oci_client::Client,
    pub(super) reference: Reference,
    pub(super) auth: RegistryAuth,
}

impl Source {
    /// Reads a manifest or an index. Its digest is still to be checked.
    pub(super) async fn document(&self, reference: &Reference) -> Result<Vec<u8>, RuntimeError> {
        let (bytes, _) = self
            .client
            .pull_manifest_raw(reference, &self.auth, &ACCEPTED)
            .await
            .map_err(|error| RuntimeError::Other(error.to_string()))?;
        if bytes.len() as u64 > LARGEST_DOCUMENT {
            return Err(RuntimeError::Invalid(format!(
                "the manifest has {} bytes",
                bytes.len()
            )));
        }
        Ok(bytes.to_vec())
    }
}

type Told<'a> = &'a (dyn Fn(Progress) + Send + Sync);

impl Images {
    /// Gets an image from its registry. One that is here and is named by its digest, or was
    /// built here, is not asked for.
    pub async fn pull(self: &Arc<Self>, pull: &Pull) -> Result<Image, RuntimeError> {
        let invalid = |cause: String| RuntimeError::InvalidReference {
            reference: pull.reference.clone(),
            cause,
        };
        let parsed = pull.reference.parse();
        let reference: Reference = parsed.map_err(|error| invalid(format!("{error}")))?;
        if reference
            .repository()
            .bytes()
            .any(|byte| byte.is_ascii_uppercase())
        {
            return Err(invalid("repository name must be lowercase".to_owned()));
        }
        let name = reference_name(&pull.reference);
        // What was built here no registry has.
        if let Some(image) = self.find(&name)
            && (image.pinned || reference.digest().is_some())
        {
            return Ok(image);
        }
        let turn = self.turn(&name);
        let _turn = turn.lock().await;
        let mut last = None;
        for source in self.registries.sources(&reference, &pull.credentials) {
            match self
                .pull_from(
                    &source,
                    &reference,
                    pull.progress.as_deref().unwrap_or(&|_| {}),
                )
                .await
            {
                Ok(image) => return Ok(image),
                Err(error) => {
                    tracing::debug!(reference = name, registry = source.reference.resolve_registry(), %error, "a pull failed");
                    last = Some(error);
                }
            }
        }
        Err(RuntimeError::Pull {
            reference: pull.reference.clone(),
            cause: last.map_or_else(
                || "no registry to ask".to_owned(),
                |error| error.to_string(),
            ),
        })
    }

    /// Pulls of one image come one after the other, and so do those who need one blob.
    fn turn(&self, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut known = self.known();
        known.turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(known.turns.entry(name.to_owned()).or_default())
    }
}

impl Registries {
    /// Whom to ask, in turn: the mirrors of a registry, then itself.
    pub(super) fn sources(
        &self,
        reference: &Reference,
        credentials: &[Credentials],
    ) -> Vec<Source> {
        let mut sources = Vec::new();
        for mirror in self.mirrors_of(reference.registry()) {
            let mut mirrored = reference.clone();
            mirrored.set_mirror_registry(mirror.clone());
            // What was given for a registry is not for its mirrors to see.
            sources.extend(self.sources_at(&mirrored, &[], &[mirror]));
        }
        let names = [reference.registry(), reference.resolve_registry()];
        sources.extend(self.sources_at(reference, credentials, &names));
        sources
    }

    /// One host, asked as all who may be known there: `names` are those it has in the settings.
    fn sources_at(
        &self,
        reference: &Reference,
        credentials: &[Credentials],
        names: &[&str],
    ) -> Vec<Source> {
        let known = self.host(names);
        let own = known.and_then(|host| host.credentials.as_ref());
        let mut auths: Vec<RegistryAuth> = credentials.iter().chain(own).map(auth).collect();
        if auths.is_empty() {
            auths.push(RegistryAuth::Anonymous);
        }
        auths
            .into_iter()
            .map(|auth| Source {
                client: self.client(reference.resolve_registry(), known),
                reference: reference.clone(),
                auth,
            })
            .collect()
    }

    fn client(&self, registry: &str, known: Option<&RegistryHost>) -> oci_client::Client {
        let is_local = ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| {
            registry == *host
                || registry
                    .strip_prefix(host)
                    .is_some_and(|rest| rest.starts_with(':'))
        });
        let is_plain = is_local || self.plain.contains(registry);
        let certificates = known.and_then(|host| host.certificates.as_ref());
        let extra_root_certificates = certificates.map(|pem| Certificate {
            encoding: CertificateEncoding::Pem,
            data: pem.clone(),
        });
        oci_client::Client::new(ClientConfig {
            protocol: if is_plain {
                ClientProtocol::Http
            } else {
                ClientProtocol::Https
            },
            connect_timeout: Some(CONNECT),
            read_timeout: Some(SILENCE),
            accept_invalid_certificates: known.is_some_and(|host| host.any_certificate),
            extra_root_certificates: extra_root_certificates.into_iter().collect(),
            ..ClientConfig::default()
        })
    }
}

impl Images {
    async fn pull_from(
        self: &Arc<Self>,
        source: &Source,
        reference: &Reference,
        told: Told<'_>,
    ) -> Result<Image, RuntimeError> {
        let (top, bytes) = self.fetch_manifest(source, &source.reference).await?;
        let (digest, manifest) = match document::parse(&bytes)? {
            Document::Manifest(manifest) => (top.clone(), manifest),
            Document::Index(index) => {
                let chosen = document::choose(&index, &self.platform)?.digest.clone();
                let inner = source.reference.clone_with_digest(chosen.to_string());
                let (digest, bytes) = self.fetch_manifest(source, &inner).await?;
                match document::parse(&bytes)? {
                    Document::Manifest(manifest) => (digest, manifest),
                    Document::Index(_) => {
                        return Err(RuntimeError::Invalid(
                            "an index leads to another index".to_owned(),
                        ));
                    }
                }
            }
        };
        let mut needed = vec![digest.clone(), manifest.config.digest.clone()];
        needed.extend(manifest.layers.iter().map(|layer| layer.digest.clone()));
        let _held = self.hold(needed);
        self.fetch_blobs(source, &manifest, told).await?;
        let repository = format!("{}/{}", reference.registry(), reference.repository());
        let tags: Vec<String> = reference
            .tag()
            .map(|tag| format!("{repository}:{tag}"))
            .into_iter()
            .collect();
        let digests = vec![format!("{repository}@{top}")];
        let images = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            images.complete(digest, &manifest, tags, digests, Timestamp::now())
        })
        .await
        .map_err(|error| RuntimeError::Other(error.to_string()))?
    }

    async fn fetch_manifest(
        &self,
        source: &Source,
        reference: &Reference,
    ) -> Result<(Digest, Vec<u8>), RuntimeError> {
        let bytes = source.document(reference).await?;
        let expected = reference
            .digest()
            .map(Digest::try_from)
            .transpose()
            .map_err(RuntimeError::Invalid)?;
        let (digest, _) =
            self.blobs
                .store(&mut bytes.as_slice(), expected.as_ref(), LARGEST_DOCUMENT)?;
        Ok((digest, bytes))
    }

    async fn fetch_blobs(
        &self,
        source: &Source,
        manifest: &Manifest,
        told: Told<'_>,
    ) -> Result<(), RuntimeError> {
        let all = std::iter::once(&manifest.config).chain(&manifest.layers);
        let mut seen = BTreeSet::new();
        let blobs: Vec<&Descriptor> = all.filter(|blob| seen.insert(&blob.digest)).collect();
        let total = blobs.iter().map(|blob| blob.size).sum();
        let done = AtomicU64::new(0);
        let progress = |count: u64| {
            let done = done.fetch_add(count, Ordering::Relaxed) + count;
            told(Progress { done, total });
        };
        futures::stream::iter(blobs.into_iter().map(Ok))
            .try_for_each_concurrent(AT_ONCE, |blob| self.fetch_blob(source, blob, &progress))
            .await
    }

    async fn fetch_blob(
        &self,
        source: &Source,
        blob: &Descriptor,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), RuntimeError> {
        // Another image may have the same layer, and both would write to one file.
        let turn = self.turn(blob.digest.as_str());
        let _turn = turn.lock().await;
        if self.blobs.has(&blob.digest) {
            progress(blob.size);
            return Ok(());
        }
        if blob.size > LARGEST_BLOB {
            return Err(RuntimeError::Invalid(format!(
                "the blob {} has {} bytes",
                blob.digest, blob.size
            )));
        }
        let mut incoming = self.blobs.resume(&blob.digest, blob.size)?;
        progress(incoming.received());
        let mut attempts: u32 = 0;
        while !incoming.is_complete() {
            attempts += 1;
            match receive(source, blob, &mut incoming, progress).await {
                Ok(()) => break,
                Err(error) if attempts == ATTEMPTS => return Err(error),
                Err(error) => {
                    tracing::debug!(blob = %blob.digest, %error, "a download broke and goes on");
                    tokio::time::sleep(pause_after(attempts)).await;
                }
            }
        }
        self.blobs.finish(incoming)
    }
}

fn auth(credentials: &Credentials) -> RegistryAuth {
    match credentials {
        Credentials::Password { user, password } => {
            RegistryAuth::Basic(user.clone(), password.clone())
        }
        Credentials::Token(token) => RegistryAuth::Bearer(token.clone()),
    }
}

/// A connection that breaks once is taken up at once; a registry in trouble gets time.
fn pause_after(attempts: u32) -> Duration {
    match attempts {
        0 | 1 => Duration::ZERO,
        more => FIRST_PAUSE * 2_u32.saturating_pow(more - 2),
    }
}

async fn receive(
    source: &Source,
    blob: &Descriptor,
    incoming: &mut super::blobs::Incoming,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), RuntimeError> {
    let failed = |error: &dyn std::fmt::Display| {
        RuntimeError::Other(format!("the blob {}: {error}", blob.digest))
    };
    let mut stream = if incoming.received() == 0 {
        let whole = source
            .client
            .pull_blob_stream(&source.reference, blob.digest.as_str())
            .await;
        whole.map_err(|error| failed(&error))?.stream
    } else {
        use oci_client::client::BlobResponse;
        let rest = source
            .client
            .pull_blob_stream_partial(
                &source.reference,
                blob.digest.as_str(),
                incoming.received(),
                None,
            )
            .await;
        match rest.map_err(|error| failed(&error))? {
            BlobResponse::Partial(rest) => rest.stream,
            BlobResponse::Full(whole) => {
                incoming.restart()?;
                whole.stream
            }
        }
    };
    while let Some(bytes) = stream.next().await {
        let bytes = bytes.map_err(|error| failed(&error))?;
        incoming.push(&bytes)?;
        progress(bytes.len() as u64);
    }
    if incoming.is_complete() {
        Ok(())
    } else {
        Err(failed(&"it ended too early"))
    }
}
