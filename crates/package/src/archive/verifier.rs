//! Compares an archive with its own manifest while it is unpacked. Digests are made on a thread of their
//! own, from the buffers that were just written, so checking costs hardly any time.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;

use camino::Utf8Path;
use sha2::{Digest as _, Sha256};
use transom_host::files::archive::{Objection, Seen, Watcher, What};
use transom_model::Os;
use transom_model::package::PackageId;

use super::{Digest, Kind, MANIFEST, Manifest, ManifestEntry, ManifestError};

/// A manifest of a million files has about 200 MB.
pub(super) const LARGEST_MANIFEST: u64 = 256 << 20;
/// Buffers are handed on together when they hold this much: waking a thread costs more than a small file.
const BATCH_BYTES: usize = 256 * 1024;
/// How many batches may wait for their digests.
const QUEUE: usize = 8;

/// How an archive differs from what it should be.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("it does not begin with {MANIFEST}, so nothing in it can be checked")]
    NoManifest,
    #[error("its {MANIFEST} has more than {LARGEST_MANIFEST} bytes")]
    ManifestTooLarge,
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("it is the package `{found}`, and `{expected}` is wanted")]
    OtherPackage {
        found: PackageId,
        expected: PackageId,
    },
    #[error("it is for {found}, and its format or its use is for {expected}")]
    OtherSystem { found: Os, expected: Os },
    #[error("`{path}` is not in its {MANIFEST}, or is there twice")]
    Extra { path: String },
    #[error("`{path}` is in its {MANIFEST} only")]
    Missing { path: String },
    #[error("`{path}` has another {what} than its {MANIFEST} says")]
    Differs { path: String, what: &'static str },
    #[error("`{path}` has the SHA-256 {found}, and its {MANIFEST} says {expected}")]
    Altered {
        path: String,
        found: Digest,
        expected: Digest,
    },
    #[error("checking ended early")]
    Stopped,
}

/// What an archive must be.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) id: Option<PackageId>,
    pub(super) os: Os,
    /// Whether an archive without a manifest passes.
    pub(super) unverified: bool,
}

pub(super) struct Verifier {
    expected: Expected,
    stage: Stage,
    manifest: Option<Manifest>,
    digests: Digests,
}

enum Stage {
    /// Nothing was seen.
    Start,
    /// The manifest is being read.
    Manifest(Vec<u8>),
    /// What the manifest names and was not seen yet.
    Entries(BTreeMap<String, ManifestEntry>),
    /// There is no manifest, and that is fine.
    Unverified,
}

impl Verifier {
    pub(super) fn new(expected: Expected) -> Self {
        Self {
            expected,
            stage: Stage::Start,
            manifest: None,
            digests: Digests::start(),
        }
    }

    /// The manifest that all was compared with.
    pub(super) fn into_manifest(mut self) -> Option<Manifest> {
        self.manifest.take()
    }

    fn first(&mut self, entry: &Seen<'_>) -> Result<(), VerifyError> {
        match entry.what {
            What::File { size } if entry.path == MANIFEST => {
                if size > LARGEST_MANIFEST {
                    return Err(VerifyError::ManifestTooLarge);
                }
                self.stage = Stage::Manifest(Vec::new());
                Ok(())
            }
            _ if self.expected.unverified => {
                self.stage = Stage::Unverified;
                Ok(())
            }
            _ => Err(VerifyError::NoManifest),
        }
    }

    /// The manifest is complete.
    fn open(&mut self) -> Result<(), VerifyError> {
        let Stage::Manifest(bytes) = &self.stage else {
            return Ok(());
        };
        let manifest = Manifest::parse(bytes)?;
        if let Some(expected) = &self.expected.id
            && *expected != manifest.id
        {
            return Err(VerifyError::OtherPackage {
                found: manifest.id,
                expected: expected.clone(),
            });
        }
        if manifest.os != self.expected.os {
            return Err(VerifyError::OtherSystem {
                found: manifest.os,
                expected: self.expected.os,
            });
        }
        self.stage = Stage::Entries(manifest.entries.clone());
        self.manifest = Some(manifest);
        Ok(())
    }

    fn next(&mut self, entry: &Seen<'_>) -> Result<(), VerifyError> {
        let Stage::Entries(left) = &mut self.stage else {
            return Ok(());
        };
        let path = entry.path.as_str();
        let named = left.remove(path).ok_or_else(|| VerifyError::Extra {
            path: path.to_owned(),
        })?;
        let differs = |what| {
            Err(VerifyError::Differs {
                path: path.to_owned(),
                what,
            })
        };
        match (&named.kind, entry.what) {
            (Kind::Dir, What::Dir) => {}
            (Kind::File { size: named, .. }, What::File { size }) if *named != size => {
                return differs("size");
            }
            (Kind::File { size, sha256 }, What::File { .. }) => {
                self.digests.begin(entry.path, *size, *sha256)?;
            }
            (Kind::Link { target: named }, What::Symlink { target }) if named != target => {
                return differs("target");
            }
            (Kind::Link { .. }, What::Symlink { .. }) => return Ok(()),
            _ => return differs("kind"),
        }
        if named.mode != entry.mode {
            return differs("mode");
        }
        Ok(())
    }
}

impl Watcher for Verifier {
    fn entry(&mut self, entry: &Seen<'_>) -> Result<(), Objection> {
        match self.stage {
            Stage::Start => self.first(entry)?,
            Stage::Manifest(_) => {
                self.open()?;
                self.next(entry)?;
            }
            Stage::Entries(_) => self.next(entry)?,
            Stage::Unverified => {}
        }
        Ok(())
    }

    fn content(&mut self, chunk: &mut Vec<u8>, length: usize) -> Result<(), Objection> {
        match &mut self.stage {
            // Its size was checked before.
            Stage::Manifest(bytes) => bytes.extend_from_slice(&chunk[..length]),
            Stage::Entries(_) => self.digests.feed(chunk, length)?,
            Stage::Start | Stage::Unverified => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Objection> {
        if let Stage::Start = self.stage
            && !self.expected.unverified
        {
            return Err(VerifyError::NoManifest.into());
        }
        self.open()?;
        if let Stage::Entries(left) = &self.stage
            && let Some(path) = left.keys().next()
        {
            return Err(VerifyError::Missing { path: path.clone() }.into());
        }
        Ok(self.digests.finish()?)
    }
}

/// Bytes on their way to a digest.
struct Part {
    buffer: Vec<u8>,
    length: usize,
    /// With the last bytes of a file.
    end: Option<(String, Digest)>,
}

/// The thread that makes digests, and the way to it.
struct Digests {
    batches: Option<SyncSender<Vec<Part>>>,
    /// What is handed on next, and how many bytes that is.
    batch: Vec<Part>,
    batch_bytes: usize,
    /// Buffers to be used again.
    used: Receiver<Vec<Part>>,
    free: Vec<Vec<u8>>,
    thread: Option<JoinHandle<Result<(), VerifyError>>>,
    /// The file being read: its name, how many bytes are to come, and its digest.
    current: Option<(String, u64, Digest)>,
}

impl Digests {
    fn start() -> Self {
        let (batches, incoming) = mpsc::sync_channel(QUEUE);
        // As many batches as the queue has places, and no more, are ever under way.
        let (done, used) = mpsc::channel();
        let thread = std::thread::spawn(move || make_digests(&incoming, &done));
        Self {
            batches: Some(batches),
            batch: Vec::new(),
            batch_bytes: 0,
            used,
            free: Vec::new(),
            thread: Some(thread),
            current: None,
        }
    }

    fn begin(&mut self, path: &Utf8Path, size: u64, sha256: Digest) -> Result<(), VerifyError> {
        if size == 0 {
            return compare(path.to_string(), Digest::of(b""), sha256);
        }
        self.current = Some((path.to_string(), size, sha256));
        Ok(())
    }

    fn feed(&mut self, chunk: &mut Vec<u8>, length: usize) -> Result<(), VerifyError> {
        let Some((_, left, _)) = &mut self.current else {
            return Ok(());
        };
        *left = left.saturating_sub(length as u64);
        let end = if *left == 0 {
            self.current.take().map(|(path, _, sha256)| (path, sha256))
        } else {
            None
        };
        if self.free.is_empty()
            && let Ok(batch) = self.used.try_recv()
        {
            self.free.extend(batch.into_iter().map(|part| part.buffer));
        }
        self.batch.push(Part {
            buffer: std::mem::replace(chunk, self.free.pop().unwrap_or_default()),
            length,
            end,
        });
        self.batch_bytes += length;
        if self.batch_bytes < BATCH_BYTES {
            return Ok(());
        }
        if self.hand_on() {
            Ok(())
        } else {
            self.finish().and(Err(VerifyError::Stopped))
        }
    }

    /// Gives the batch to the thread. `false`: it has ended.
    fn hand_on(&mut self) -> bool {
        self.batch_bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        let batches = self.batches.as_ref();
        batch.is_empty() || batches.is_some_and(|batches| batches.send(batch).is_ok())
    }

    /// Waits until all that was fed is compared.
    fn finish(&mut self) -> Result<(), VerifyError> {
        // If the thread has ended, its own answer says why.
        self.hand_on();
        self.batches = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(VerifyError::Stopped),
            None => Ok(()),
        }
    }
}

impl Drop for Digests {
    fn drop(&mut self) {
        // Whatever made us stop is known already.
        let _ = self.finish();
    }
}

fn make_digests(
    batches: &Receiver<Vec<Part>>,
    done: &Sender<Vec<Part>>,
) -> Result<(), VerifyError> {
    let mut sum = Sha256::new();
    for mut batch in batches {
        for part in &mut batch {
            sum.update(&part.buffer[..part.length]);
            if let Some((path, expected)) = part.end.take() {
                compare(path, Digest::from_bytes(sum.finalize_reset()), expected)?;
            }
        }
        // Nobody needs it back when the archive is at its end.
        let _ = done.send(batch);
    }
    Ok(())
}

fn compare(path: String, found: Digest, expected: Digest) -> Result<(), VerifyError> {
    if found == expected {
        Ok(())
    } else {
        Err(VerifyError::Altered {
            path,
            found,
            expected,
        })
    }
}
