//! An image made of files, with no tool and no registry: how a node gets the image of its own binary.

use std::collections::BTreeSet;
use std::io::{self, Read};

use fs_err as fs;
use jiff::Timestamp;

use super::blobs::{LARGEST_BLOB, LARGEST_DOCUMENT};
use super::digest::Digest;
use super::document::{
    CONFIG_TYPE, Configuration, Descriptor, LAYER_TYPE, MANIFEST_TYPE, Manifest, RootFileSystem,
};
use super::record::{ImageSettings, Layer, Record};
use super::{Images, reference_name};
use crate::{Image, RuntimeError};

/// Something to put into an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildFile {
    /// Inside the image, with or without a leading `/`. Its folders are made.
    pub path: String,
    pub kind: BuildKind,
    /// Permission bits.
    pub mode: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildKind {
    /// The content of a file of this machine.
    File(camino::Utf8PathBuf),
    Content(Vec<u8>),
    Folder,
    /// Where it leads.
    Link(String),
}

impl Images {
    /// Makes an image of one layer. The same files and settings give the same image, at any time and on any
    /// machine.
    pub fn build(
        &self,
        name: &str,
        files: &[BuildFile],
        settings: &ImageSettings,
        now: Timestamp,
    ) -> Result<Image, RuntimeError> {
        let failed = |error| RuntimeError::io(format!("build the image {name}"), error);
        let temporary = self
            .records
            .join(format!("new-{}.tar", uuid::Uuid::new_v4().simple()));
        let stored = (|| {
            let file = fs::File::create_new(&temporary).map_err(failed)?;
            write_layer(file, files).map_err(failed)?;
            let mut written = fs::File::open(&temporary).map_err(failed)?;
            self.blobs.store(&mut written, None, LARGEST_BLOB)
        })();
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let (blob, size) = stored?;
        let layer = Layer {
            diff_id: blob.clone(),
            blob,
            size,
        };
        let _held = self.hold(vec![layer.blob.clone()]);
        self.unpack_layer(&layer)?;
        self.add_built(name, layer, settings, now)
    }

    fn add_built(
        &self,
        name: &str,
        layer: Layer,
        settings: &ImageSettings,
        now: Timestamp,
    ) -> Result<Image, RuntimeError> {
        let configuration = Configuration {
            os: self.platform.os.clone(),
            architecture: self.platform.architecture.clone(),
            os_version: self.platform.os_version.clone(),
            config: Some(settings.clone().into()),
            rootfs: RootFileSystem {
                kind: "layers".to_owned(),
                diff_ids: vec![layer.diff_id.clone()],
            },
        };
        let configuration_bytes = encode(&configuration)?;
        let manifest = Manifest {
            schema_version: 2,
            media_type: MANIFEST_TYPE.to_owned(),
            config: describe(
                CONFIG_TYPE,
                Digest::of(&configuration_bytes),
                configuration_bytes.len() as u64,
            ),
            layers: vec![describe(LAYER_TYPE, layer.blob.clone(), layer.size)],
        };
        let manifest_bytes = encode(&manifest)?;
        let id = Digest::of(&configuration_bytes);
        let manifest_digest = Digest::of(&manifest_bytes);
        let _held = self.hold(vec![
            id.clone(),
            manifest_digest.clone(),
            layer.blob.clone(),
        ]);
        for bytes in [configuration_bytes, manifest_bytes] {
            self.blobs
                .store(&mut bytes.as_slice(), None, LARGEST_DOCUMENT)?;
        }
        self.add(Record {
            id,
            manifest: manifest_digest,
            layers: vec![layer],
            tags: vec![reference_name(name)],
            digests: Vec::new(),
            settings: settings.clone(),
            os: configuration.os,
            architecture: configuration.architecture,
            os_version: configuration.os_version,
            // Nobody could pull it again.
            pinned: true,
            last_used: now,
        })
    }
}

fn encode(document: &impl serde::Serialize) -> Result<Vec<u8>, RuntimeError> {
    serde_json::to_vec(document).map_err(|error| RuntimeError::Other(error.to_string()))
}

fn describe(media_type: &str, digest: Digest, size: u64) -> Descriptor {
    Descriptor {
        media_type: media_type.to_owned(),
        digest,
        size,
        platform: None,
        annotations: None,
    }
}

/// Writes the files in the order of their paths, owned by root, with no time in them.
fn write_layer(target: fs::File, files: &[BuildFile]) -> io::Result<()> {
    let mut archive = tar::Builder::new(io::BufWriter::new(target));
    let mut made = BTreeSet::new();
    let mut sorted: Vec<(String, &BuildFile)> = files
        .iter()
        .map(|file| (file.path.trim_matches('/').to_owned(), file))
        .collect();
    sorted.sort_by(|left, right| left.0.cmp(&right.0));
    for (path, file) in sorted {
        for (slash, _) in path.match_indices('/') {
            if made.insert(path[..slash].to_owned()) {
                let mut header = header(tar::EntryType::Directory, 0o755, 0);
                archive.append_data(&mut header, &path[..slash], io::empty())?;
            }
        }
        if !made.insert(path.clone()) {
            continue;
        }
        match &file.kind {
            BuildKind::File(source) => {
                let source = fs::File::open(source)?;
                let size = source.metadata()?.len();
                let mut header = header(tar::EntryType::Regular, file.mode, size);
                archive.append_data(&mut header, &path, source.take(size))?;
            }
            BuildKind::Content(bytes) => {
                let mut header = header(tar::EntryType::Regular, file.mode, bytes.len() as u64);
                archive.append_data(&mut header, &path, bytes.as_slice())?;
            }
            BuildKind::Folder => {
                let mut header = header(tar::EntryType::Directory, file.mode, 0);
                archive.append_data(&mut header, &path, io::empty())?;
            }
            BuildKind::Link(target) => {
                let mut header = header(tar::EntryType::Symlink, 0o777, 0);
                archive.append_link(&mut header, &path, target)?;
            }
        }
    }
    let buffered = archive.into_inner()?;
    buffered
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    Ok(())
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header
}
