//! Packing a folder. Everything is read twice: once for the manifest, which comes first, and once for
//! the content; a file that changes in between fails the packing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err::File;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use transom_host::files::Files;
use transom_model::Os;
use transom_model::package::PackageId;

use super::sbom::Origin;
use super::tar_writer::TarWriter;
use super::walk::{Content, Item, WalkError, walk};
use super::zip_writer::ZipPacker;
use super::{BUILD_INFO, Digest, Kind, MANIFEST, Manifest, ManifestEntry, SBOM, sbom};
use crate::info::{self, PackageInfo};

/// What a package says about itself.
#[derive(Debug, Clone, Copy)]
pub struct Description<'a> {
    pub id: &'a PackageId,
    /// The system that the package is for: it decides the format and which names are possible.
    pub os: Os,
    /// For the node that activates it.
    pub info: &'a PackageInfo,
    /// The content of `buildinfo.full.json`.
    pub build: &'a Value,
    /// For the bill of materials.
    pub origins: &'a [Origin],
    pub requires: &'a BTreeSet<PackageId>,
    /// Where the package will be on a node. Absolute links to there are turned into relative ones, all
    /// other absolute links are refused.
    pub home: Option<&'a Utf8Path>,
}

/// What was packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Of the archive.
    pub sha256: Digest,
    /// Bytes of the archive.
    pub size: u64,
    pub manifest: Manifest,
}

/// Why a folder was not packed. There is no archive then.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error("`{path}` cannot be read")]
    Read {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("`{path}` changed while it was packed")]
    Changed { path: Utf8PathBuf },
    #[error("the archive `{path}` cannot be written")]
    Write {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("what describes the package cannot be written as JSON")]
    Json(#[source] serde_json::Error),
}

/// Where packed entries go.
pub(super) trait Sink {
    fn dir(&mut self, path: &str, mode: u32) -> io::Result<()>;
    fn link(&mut self, path: &str, target: &str) -> io::Result<()>;
    fn file(&mut self, path: &str, mode: u32, size: u64, content: &mut dyn Read) -> io::Result<()>;
    /// Makes the archive complete, and durable.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Packs `folder` into the new file `output`. The same files give the same bytes, on any machine, at
/// any time, wherever they are. A failure removes what was written.
pub fn pack(
    files: &dyn Files,
    folder: &Utf8Path,
    description: &Description<'_>,
    output: &Utf8Path,
) -> Result<Packed, PackError> {
    let mut items = walk(files, folder, description.os, description.home)?;
    add_ours(&mut items, description)?;
    let manifest = Manifest {
        id: description.id.clone(),
        os: description.os,
        entries: describe(&items)?,
    };
    let write_error = |source| PackError::Write {
        path: output.to_owned(),
        source,
    };
    let file = File::create_new(output).map_err(write_error)?;
    let packed = write(file, &items, &manifest).and_then(|()| {
        File::open(output)
            .and_then(|mut file| Digest::of_reader(&mut file))
            .map_err(Failure::Write)
    });
    match packed {
        Ok((sha256, size)) => Ok(Packed {
            sha256,
            size,
            manifest,
        }),
        Err(failure) => {
            if let Err(error) = files.remove_file(output) {
                tracing::warn!(%output, %error, "could not remove an incomplete archive");
            }
            Err(match failure {
                Failure::Pack(error) => error,
                Failure::Write(source) => write_error(source),
            })
        }
    }
}

/// Either it is the archive that failed, or something else with its own name.
enum Failure {
    Pack(PackError),
    Write(io::Error),
}

/// The files that every package has and no build makes.
fn add_ours(
    items: &mut BTreeMap<String, Item>,
    description: &Description<'_>,
) -> Result<(), PackError> {
    let bom = sbom::render(
        description.id,
        description.os,
        description.origins,
        description.requires,
    );
    let pretty = |value: &Value| {
        let mut bytes = serde_json::to_vec_pretty(value)?;
        bytes.push(b'\n');
        Ok(bytes)
    };
    for (name, bytes) in [
        (SBOM, pretty(&bom)),
        (BUILD_INFO, pretty(description.build)),
        (info::FILE_NAME, description.info.render()),
    ] {
        let bytes = bytes.map_err(PackError::Json)?;
        items.insert(name.to_owned(), Item::bytes(bytes));
    }
    Ok(())
}

/// Hashes all files, on all cores.
fn describe(items: &BTreeMap<String, Item>) -> Result<BTreeMap<String, ManifestEntry>, PackError> {
    let jobs: Vec<(&String, &Item)> = items.iter().collect();
    let next = AtomicUsize::new(0);
    let entries = Mutex::new(BTreeMap::new());
    let failure = Mutex::new(None);
    let work = || {
        while let Some((path, item)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            match describe_one(item) {
                Ok(entry) => {
                    let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
                    entries.insert((*path).clone(), entry);
                }
                Err(error) => {
                    next.store(jobs.len(), Ordering::Relaxed);
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        }
    };
    let helpers = std::thread::available_parallelism().map_or(1, usize::from) - 1;
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(work);
        }
        work();
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(entries.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

fn describe_one(item: &Item) -> Result<ManifestEntry, PackError> {
    let kind = match &item.content {
        Content::Dir => Kind::Dir,
        Content::Link(target) => Kind::Link {
            target: target.clone(),
        },
        Content::Bytes(bytes) => Kind::File {
            size: bytes.len() as u64,
            sha256: Digest::of(bytes),
        },
        Content::File(path) => {
            let (sha256, size) = File::open(path)
                .and_then(|mut file| Digest::of_reader(&mut file))
                .map_err(|source| PackError::Read {
                    path: path.clone(),
                    source,
                })?;
            Kind::File { size, sha256 }
        }
    };
    Ok(ManifestEntry {
        mode: item.mode,
        kind,
    })
}

fn write(file: File, items: &BTreeMap<String, Item>, manifest: &Manifest) -> Result<(), Failure> {
    let mut sink: Box<dyn Sink> = match manifest.os {
        Os::Linux => Box::new(TarWriter::begin(file).map_err(Failure::Write)?),
        Os::Windows => Box::new(ZipPacker::begin(file)),
    };
    let own = manifest
        .render()
        .map_err(|error| Failure::Pack(PackError::Json(error)))?;
    let own_item = Item::bytes(own);
    let entry = describe_one(&own_item).map_err(Failure::Pack)?;
    write_one(sink.as_mut(), MANIFEST, &own_item, &entry)?;
    for ((path, item), entry) in items.iter().zip(manifest.entries.values()) {
        write_one(sink.as_mut(), path, item, entry)?;
    }
    sink.finish().map_err(Failure::Write)
}

fn write_one(
    sink: &mut dyn Sink,
    path: &str,
    item: &Item,
    entry: &ManifestEntry,
) -> Result<(), Failure> {
    match (&item.content, &entry.kind) {
        (Content::Link(target), _) => sink.link(path, target),
        (Content::Bytes(bytes), Kind::File { size, .. }) => {
            sink.file(path, item.mode, *size, &mut bytes.as_slice())
        }
        (Content::File(from), Kind::File { size, sha256 }) => {
            return write_file(sink, (path, item.mode), from, *size, *sha256);
        }
        _ => sink.dir(path, item.mode),
    }
    .map_err(Failure::Write)
}

fn write_file(
    sink: &mut dyn Sink,
    (path, mode): (&str, u32),
    from: &Utf8Path,
    size: u64,
    sha256: Digest,
) -> Result<(), Failure> {
    let read_error = |source| {
        Failure::Pack(PackError::Read {
            path: from.to_owned(),
            source,
        })
    };
    let mut content = Watched {
        file: File::open(from).map_err(read_error)?,
        left: size,
        sum: Sha256::new(),
        error: None,
    };
    let written = sink.file(path, mode, size, &mut content);
    let changed = || {
        Failure::Pack(PackError::Changed {
            path: from.to_owned(),
        })
    };
    if let Some(error) = content.error.take() {
        return Err(read_error(error));
    }
    if content.left > 0 && written.is_ok() {
        return Err(changed());
    }
    written.map_err(Failure::Write)?;
    let longer = content.file.read(&mut [0]).map_err(read_error)? > 0;
    if longer || Digest::from_bytes(content.sum.finalize()) != sha256 {
        return Err(changed());
    }
    Ok(())
}

/// A file being read for the second time. It always gives as many bytes as it had the first time, so
/// that a shorter one spoils no header; the caller sees from the rest what happened.
struct Watched {
    file: File,
    left: u64,
    sum: Sha256,
    error: Option<io::Error>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        match self.file.read(&mut buffer[..most]) {
            Ok(count) => {
                self.left -= count as u64;
                self.sum.update(&buffer[..count]);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.error = Some(error);
                Ok(0)
            }
        }
    }
}
