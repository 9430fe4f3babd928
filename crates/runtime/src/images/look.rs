//! What an image is for, without getting it: a manifest or an index and, where that does not say it, a
//! configuration. Nothing is believed before its digest is checked, and nothing is kept.

use std::time::Duration;

use futures::StreamExt as _;
use oci_client::Reference;
use transom_model::images::ImagePlatform;

use super::blobs::LARGEST_DOCUMENT;
use super::digest::Digest;
use super::document::{self, Descriptor, Document, Index, Manifest};
use super::pull::Source;
use super::{Images, Registries, reference_name};
use crate::{Credentials, Image, Pull, RuntimeError};

/// How long all of it may take, whoever has to be asked.
const LIMIT: Duration = Duration::from_secs(20);

/// What an image is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Of the manifest, or of the index of several.
    pub digest: String,
    pub platforms: Vec<ImagePlatform>,
}

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The name still stands for what is known.
    Same,
    Image(Description),
}

impl Registries {
    /// Looks what an image is for. Where the digest that is `known` is still the right one, nothing is read.
    pub async fn look(
        &self,
        reference: &str,
        credentials: &[Credentials],
        known: Option<&str>,
    ) -> Result<Seen, RuntimeError> {
        let failed = |cause: String| RuntimeError::Pull {
            reference: reference.to_owned(),
            cause,
        };
        let parsed: Reference = match reference.parse() {
            Ok(parsed) => parsed,
            Err(error) => {
                return Err(RuntimeError::InvalidReference {
                    reference: reference.to_owned(),
                    cause: format!("{error}"),
                });
            }
        };
        let ask = async {
            let mut last = None;
            for source in self.sources(&parsed, credentials) {
                match look_at(&source, known).await {
                    Ok(seen) => return Ok(seen),
                    Err(error) => last = Some(error),
                }
            }
            Err(failed(last.map_or_else(
                || "no registry to ask".to_owned(),
                |error| error.to_string(),
            )))
        };
        match tokio::time::timeout(LIMIT, ask).await {
            Ok(answer) => answer,
            Err(_) => Err(failed(format!("no answer within {LIMIT:?}"))),
        }
    }
}

impl Images {
    /// What an image is for: as it is here if it was made here, else as its registry says.
    pub async fn describe(&self, pull: &Pull) -> Result<Description, RuntimeError> {
        // What was made or loaded here no registry need have.
        if let Some(image) = self
            .find(&reference_name(&pull.reference))
            .filter(Image::is_of_this_node)
        {
            return Ok(Description {
                digest: image.id,
                platforms: vec![ImagePlatform {
                    os: image.os,
                    architecture: image.architecture,
                    os_version: image.os_version,
                }],
            });
        }
        let seen = self
            .registries
            .look(&pull.reference, &pull.credentials, None);
        match seen.await? {
            Seen::Image(description) => Ok(description),
            Seen::Same => Err(RuntimeError::Other("nothing was known before".to_owned())),
        }
    }
}

async fn look_at(source: &Source, known: Option<&str>) -> Result<Seen, RuntimeError> {
    // A registry that does not answer the short question is asked the long one.
    if let Some(known) = known
        && let Ok(now) = source
            .client
            .fetch_manifest_digest(&source.reference, &source.auth)
            .await
        && now == known
    {
        return Ok(Seen::Same);
    }
    let (digest, bytes) = manifest(source, &source.reference).await?;
    let platforms = match document::parse(&bytes)? {
        Document::Manifest(manifest) => vec![platform_of(source, &manifest).await?],
        Document::Index(index) => match platforms_of(&index) {
            named if !named.is_empty() => named,
            _ => vec![only_one(source, &index).await?],
        },
    };
    Ok(Seen::Image(Description {
        digest: digest.to_string(),
        platforms,
    }))
}

/// What an index says of its images. Signatures and the like are for no machine.
fn platforms_of(index: &Index) -> Vec<ImagePlatform> {
    let named = index
        .manifests
        .iter()
        .filter_map(|entry| entry.platform.as_ref());
    named
        .filter(|platform| platform.os != "unknown" && !platform.os.is_empty())
        .map(|platform| ImagePlatform {
            os: platform.os.clone(),
            architecture: platform.architecture.clone(),
            os_version: platform.os_version.clone(),
        })
        .collect()
}

/// The platform of an index of one image that does not say it.
async fn only_one(source: &Source, index: &Index) -> Result<ImagePlatform, RuntimeError> {
    let [entry] = &index.manifests[..] else {
        return Err(RuntimeError::Invalid(
            "the index does not say what its images are for".to_owned(),
        ));
    };
    let inner = source.reference.clone_with_digest(entry.digest.to_string());
    let (_, bytes) = manifest(source, &inner).await?;
    match document::parse(&bytes)? {
        Document::Manifest(manifest) => platform_of(source, &manifest).await,
        Document::Index(_) => Err(RuntimeError::Invalid(
            "an index leads to another index".to_owned(),
        )),
    }
}

async fn platform_of(source: &Source, manifest: &Manifest) -> Result<ImagePlatform, RuntimeError> {
    let bytes = small_blob(source, &manifest.config).await?;
    let configuration = document::parse_configuration(&bytes)?;
    Ok(ImagePlatform {
        os: configuration.os,
        architecture: configuration.architecture,
        os_version: configuration.os_version,
    })
}

async fn manifest(
    source: &Source,
    reference: &Reference,
) -> Result<(Digest, Vec<u8>), RuntimeError> {
    let bytes = source.document(reference).await?;
    let digest = Digest::of(&bytes);
    match reference.digest() {
        Some(wanted) if wanted != digest.as_str() => Err(RuntimeError::Invalid(format!(
            "the manifest {wanted} has the digest {digest}"
        ))),
        _ => Ok((digest, bytes)),
    }
}

async fn small_blob(source: &Source, blob: &Descriptor) -> Result<Vec<u8>, RuntimeError> {
    let failed = |error: &dyn std::fmt::Display| {
        RuntimeError::Other(format!("the blob {}: {error}", blob.digest))
    };
    let stream = source
        .client
        .pull_blob_stream(&source.reference, blob.digest.as_str())
        .await;
    let mut stream = stream.map_err(|error| failed(&error))?.stream;
    let mut bytes = Vec::new();
    while let Some(more) = stream.next().await {
        bytes.extend_from_slice(&more.map_err(|error| failed(&error))?);
        if bytes.len() as u64 > LARGEST_DOCUMENT {
            return Err(failed(&"it is too large"));
        }
    }
    if Digest::of(&bytes) == blob.digest {
        Ok(bytes)
    } else {
        Err(failed(&"its content is another"))
    }
}
