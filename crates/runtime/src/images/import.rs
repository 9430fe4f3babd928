//! Images out of an archive: an OCI layout, or what `docker save` writes. Every blob goes through the
//! content store, where its digest is checked; nothing is unpacked by the paths of the archive.

use std::collections::BTreeMap;
use std::io::{self, Read};

use jiff::Timestamp;
use serde::Deserialize;

use super::blobs::{LARGEST_BLOB, LARGEST_DOCUMENT};
use super::digest::Digest;
use super::document::{self, Document, Index, Manifest};
use super::record::{Layer, Record};
use super::{Images, reference_name};
use crate::{Image, RuntimeError};

/// The names an index gives to its images.
const NAME_ANNOTATIONS: [&str; 2] = [
    "io.containerd.image.name",
    "org.opencontainers.image.ref.name",
];
const MOST_FILES: usize = 10_000;

/// `manifest.json` of `docker save`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// The blobs of an archive by the names they have there.
struct Files {
    stored: BTreeMap<String, (Digest, u64)>,
    index: Option<Vec<u8>>,
    saved: Option<Vec<u8>>,
}

impl Images {
    /// Takes all images for this platform out of an archive. `name` is for those that have none.
    pub fn import(
        &self,
        archive: impl Read,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<Image>, RuntimeError> {
        let failed = |error| RuntimeError::io("read the archive of an image", error);
        let mut files = Files {
            stored: BTreeMap::new(),
            index: None,
            saved: None,
        };
        let mut held = Vec::new();
        let mut archive = tar::Archive::new(archive);
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            if entry.header().entry_type() != tar::EntryType::Regular {
                continue;
            }
            let path = entry
                .path()
                .map_err(failed)?
                .to_string_lossy()
                .trim_start_matches("./")
                .to_owned();
            match path.as_str() {
                "index.json" => files.index = Some(read_document(&mut entry).map_err(failed)?),
                "manifest.json" => files.saved = Some(read_document(&mut entry).map_err(failed)?),
                "oci-layout" | "repositories" => {}
                _ if files.stored.len() >= MOST_FILES => {
                    return Err(RuntimeError::Invalid(format!(
                        "the archive has more than {MOST_FILES} files"
                    )));
                }
                _ => {
                    let expected = path
                        .strip_prefix("blobs/sha256/")
                        .and_then(|hex| Digest::try_from(format!("sha256:{hex}")).ok());
                    held.extend(expected.clone().map(|digest| self.hold(vec![digest])));
                    let stored = self
                        .blobs
                        .store(&mut entry, expected.as_ref(), LARGEST_BLOB)?;
                    held.push(self.hold(vec![stored.0.clone()]));
                    files.stored.insert(path, stored);
                }
            }
        }
        let images = match (&files.index, &files.saved) {
            (Some(index), _) => self.import_layout(index, name, now)?,
            (None, Some(saved)) => self.import_saved(saved, &files, name, now)?,
            (None, None) => {
                return Err(RuntimeError::Invalid(
                    "the archive is neither an OCI layout nor saved by Docker: it has no index.json and no manifest.json".to_owned(),
                ));
            }
        };
        drop(held);
        Ok(images)
    }

    fn import_layout(
        &self,
        index: &[u8],
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<Image>, RuntimeError> {
        let Document::Index(index) = document::parse(index)? else {
            return Err(RuntimeError::Invalid(
                "index.json is not an index".to_owned(),
            ));
        };
        let mut images = Vec::new();
        for descriptor in &index.manifests {
            let own = descriptor.annotations.as_ref().and_then(|annotations| {
                NAME_ANNOTATIONS
                    .iter()
                    .find_map(|key| annotations.get(*key))
                    .cloned()
            });
            let tags: Vec<String> = own
                .as_deref()
                .or(name)
                .map(reference_name)
                .into_iter()
                .collect();
            let mut digest = descriptor.digest.clone();
            let mut bytes = self.blobs.read_document(&digest)?;
            if let Document::Index(inner) = document::parse(&bytes)? {
                digest = self.choose_here(&inner)?;
                bytes = self.blobs.read_document(&digest)?;
            }
            let Document::Manifest(manifest) = document::parse(&bytes)? else {
                return Err(RuntimeError::Invalid(
                    "an index leads to an index that leads to an index".to_owned(),
                ));
            };
            images.push(self.complete(digest, &manifest, tags, Vec::new(), now)?);
        }
        Ok(images)
    }

    fn choose_here(&self, index: &Index) -> Result<Digest, RuntimeError> {
        document::choose(index, &self.platform).map(|descriptor| descriptor.digest.clone())
    }

    /// Records the image of a manifest whose blobs are all here.
    pub(super) fn complete(
        &self,
        digest: Digest,
        manifest: &Manifest,
        tags: Vec<String>,
        digests: Vec<String>,
        now: Timestamp,
    ) -> Result<Image, RuntimeError> {
        let configuration =
            document::parse_configuration(&self.blobs.read_document(&manifest.config.digest)?)?;
        let diff_ids = configuration.rootfs.diff_ids;
        if diff_ids.len() != manifest.layers.len() {
            return Err(RuntimeError::Invalid(format!(
                "the image {} has {} layers and {} digests of unpacked layers",
                manifest.config.digest,
                manifest.layers.len(),
                diff_ids.len()
            )));
        }
        let layers: Vec<Layer> = manifest
            .layers
            .iter()
            .zip(diff_ids)
            .map(|(descriptor, diff_id)| Layer {
                blob: descriptor.digest.clone(),
                diff_id,
                size: descriptor.size,
            })
            .collect();
        let _held = self.hold(layers.iter().map(|layer| layer.diff_id.clone()).collect());
        for layer in &layers {
            self.unpack_layer(layer)?;
        }
        self.add(Record {
            id: manifest.config.digest.clone(),
            manifest: digest,
            layers,
            tags,
            digests,
            settings: configuration.config.unwrap_or_default().into(),
            os: configuration.os,
            architecture: configuration.architecture,
            os_version: configuration.os_version,
            pinned: false,
            last_used: now,
        })
    }

    fn import_saved(
        &self,
        saved: &[u8],
        files: &Files,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<Image>, RuntimeError> {
        let saved: Vec<Saved> = serde_json::from_slice(saved).map_err(|error| {
            RuntimeError::Invalid(format!("manifest.json cannot be read: {error}"))
        })?;
        let blob_of = |path: &String| {
            files.stored.get(path).cloned().ok_or_else(|| {
                RuntimeError::Invalid(format!(
                    "manifest.json names {path:?}, which is not in the archive"
                ))
            })
        };
        let mut images = Vec::new();
        for image in saved {
            let (config, config_size) = blob_of(&image.config)?;
            let mut layers = Vec::new();
            for path in &image.layers {
                layers.push(blob_of(path)?);
            }
            let manifest = serde_json::json!({
                "schemaVersion": 2,
                "mediaType": document::MANIFEST_TYPE,
                "config": {"mediaType": document::CONFIG_TYPE, "digest": config, "size": config_size},
                "layers": layers.iter().map(|(digest, size)| {
                    serde_json::json!({"mediaType": document::LAYER_TYPE, "digest": digest, "size": size})
                }).collect::<Vec<_>>(),
            });
            let bytes = manifest.to_string();
            let (digest, _) = self
                .blobs
                .store(&mut bytes.as_bytes(), None, LARGEST_DOCUMENT)?;
            let Document::Manifest(manifest) = document::parse(bytes.as_bytes())? else {
                return Err(RuntimeError::Invalid(
                    "the manifest of a saved image is an index".to_owned(),
                ));
            };
            let mut tags: Vec<String> = image
                .repo_tags
                .unwrap_or_default()
                .iter()
                .map(|tag| reference_name(tag))
                .collect();
            if tags.is_empty() {
                tags.extend(name.map(reference_name));
            }
            images.push(self.complete(digest, &manifest, tags, Vec::new(), now)?);
        }
        Ok(images)
    }
}

fn read_document(entry: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    entry.take(LARGEST_DOCUMENT).read_to_end(&mut bytes)?;
    Ok(bytes)
}
