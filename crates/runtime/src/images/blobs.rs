//! Content by digest. Invariant: a blob that has its final name is complete and is what its name says.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::digest::{Counted, Digest, Hasher};
use crate::RuntimeError;

/// No layer of an image is larger, packed or unpacked.
pub(super) const LARGEST_BLOB: u64 = 64 << 30;
/// Manifests, indexes and configurations.
pub(super) const LARGEST_DOCUMENT: u64 = 8 << 20;
/// A pull that failed goes on with what it has if it comes back before.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

#[derive(Debug)]
pub(super) struct Blobs {
    complete: Utf8PathBuf,
    partial: Utf8PathBuf,
}

impl Blobs {
    pub(super) fn open(root: &Utf8Path) -> io::Result<Self> {
        let blobs = Self {
            complete: root.join("blobs/sha256"),
            partial: root.join("partial"),
        };
        fs::create_dir_all(&blobs.complete)?;
        fs::create_dir_all(&blobs.partial)?;
        Ok(blobs)
    }

    pub(super) fn path(&self, digest: &Digest) -> Utf8PathBuf {
        self.complete.join(digest.hex())
    }

    pub(super) fn has(&self, digest: &Digest) -> bool {
        self.path(digest).is_file()
    }

    pub(super) fn read_document(&self, digest: &Digest) -> Result<Vec<u8>, RuntimeError> {
        let path = self.path(digest);
        let mut bytes = Vec::new();
        fs::File::open(&path)
            .and_then(|file| file.take(LARGEST_DOCUMENT).read_to_end(&mut bytes))
            .map_err(|error| RuntimeError::io(format!("read the blob {digest}"), error))?;
        Ok(bytes)
    }

    /// Stores what a reader gives and returns its name. With `expected`, other content is refused.
    pub(super) fn store(
        &self,
        content: &mut dyn Read,
        expected: Option<&Digest>,
        limit: u64,
    ) -> Result<(Digest, u64), RuntimeError> {
        let failed = |error| RuntimeError::io("store a blob", error);
        let temporary = self
            .partial
            .join(format!("new-{}", uuid::Uuid::new_v4().simple()));
        let stored = (|| {
            let mut file = fs::File::create_new(&temporary).map_err(failed)?;
            let mut counted = Counted::new(content, limit);
            io::copy(&mut counted, &mut file).map_err(failed)?;
            let (digest, size) = counted.finish();
            if let Some(expected) = expected.filter(|expected| **expected != digest) {
                return Err(RuntimeError::Invalid(format!(
                    "the blob {expected} has the content of {digest}"
                )));
            }
            self.keep(&file, &temporary, &digest)?;
            Ok((digest, size))
        })();
        if stored.is_err() {
            discard(&temporary);
        }
        stored
    }

    /// Begins to receive a blob, or goes on where an earlier attempt stopped.
    pub(super) fn resume(&self, digest: &Digest, size: u64) -> Result<Incoming, RuntimeError> {
        let failed = |error| RuntimeError::io(format!("resume the blob {digest}"), error);
        let path = self.partial.join(digest.hex());
        let mut file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        let mut hasher = Hasher::default();
        let mut received = 0;
        let mut chunk = vec![0; 128 * 1024];
        loop {
            match file.read(&mut chunk).map_err(failed)? {
                0 => break,
                count => {
                    hasher.update(&chunk[..count]);
                    received += count as u64;
                }
            }
        }
        let mut incoming = Incoming {
            digest: digest.clone(),
            path,
            file,
            hasher,
            received,
            size,
        };
        if received > size {
            incoming.restart()?;
        }
        Ok(incoming)
    }

    /// Gives a blob that was received completely its name.
    pub(super) fn finish(&self, incoming: Incoming) -> Result<(), RuntimeError> {
        let Incoming {
            digest,
            path,
            file,
            hasher,
            received,
            size,
        } = incoming;
        let actual = hasher.finish();
        if actual != digest || received != size {
            discard(&path);
            return Err(RuntimeError::Invalid(format!(
                "the blob {digest} of {size} bytes came as {received} bytes with the digest {actual}"
            )));
        }
        let file = fs::File::from_parts(file, path.as_std_path());
        self.keep(&file, &path, &digest)
    }

    fn keep(
        &self,
        file: &fs::File,
        temporary: &Utf8Path,
        digest: &Digest,
    ) -> Result<(), RuntimeError> {
        let failed = |error| RuntimeError::io(format!("keep the blob {digest}"), error);
        file.sync_all().map_err(failed)?;
        match fs::rename(temporary, self.path(digest)) {
            // Windows replaces no file that another has open, who keeps or reads the same content at this moment.
            Err(_) if self.has(digest) => discard(temporary),
            renamed => renamed.map_err(failed)?,
        }
        super::sync_folder(&self.complete).map_err(failed)
    }

    pub(super) fn remove(&self, digest: &Digest) -> io::Result<()> {
        remove_if_there(&self.path(digest))
    }

    /// All complete blobs with their sizes.
    pub(super) fn all(&self) -> io::Result<Vec<(Digest, u64)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.complete)? {
            let entry = entry?;
            let name = entry.file_name();
            if let Some(digest) = name
                .to_str()
                .and_then(|hex| Digest::try_from(format!("sha256:{hex}")).ok())
            {
                found.push((digest, entry.metadata()?.len()));
            }
        }
        Ok(found)
    }

    /// Removes what an import that died left behind.
    pub(super) fn sweep_new(&self) -> io::Result<()> {
        for (name, path) in self.incomplete()? {
            if name.starts_with("new-") {
                remove_if_there(&path)?;
            }
        }
        Ok(())
    }

    /// Removes what a pull left behind that nobody went on with for long.
    pub(super) fn sweep(&self, is_held: impl Fn(&Digest) -> bool) -> io::Result<()> {
        for (name, path) in self.incomplete()? {
            let Ok(digest) = Digest::try_from(format!("sha256:{name}")) else {
                continue;
            };
            let age = fs::metadata(&path)?.modified()?.elapsed();
            if !is_held(&digest) && age.is_ok_and(|age| age > LONGEST_WAIT) {
                remove_if_there(&path)?;
            }
        }
        Ok(())
    }

    fn incomplete(&self) -> io::Result<Vec<(String, Utf8PathBuf)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.partial)? {
            if let Ok(name) = entry?.file_name().into_string() {
                let path = self.partial.join(&name);
                found.push((name, path));
            }
        }
        Ok(found)
    }
}

fn remove_if_there(path: &Utf8Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn discard(path: &Utf8Path) {
    if let Err(error) = remove_if_there(path) {
        tracing::warn!(%path, %error, "could not remove an incomplete blob, the next start will");
    }
}

/// A blob that is on its way.
pub(super) struct Incoming {
    digest: Digest,
    path: Utf8PathBuf,
    file: std::fs::File,
    hasher: Hasher,
    received: u64,
    size: u64,
}

impl Incoming {
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn is_complete(&self) -> bool {
        self.received == self.size
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), RuntimeError> {
        if self.received + bytes.len() as u64 > self.size {
            return Err(RuntimeError::Invalid(format!(
                "the blob {} is longer than the {} bytes its manifest names",
                self.digest, self.size
            )));
        }
        self.file
            .write_all(bytes)
            .map_err(|error| RuntimeError::io(format!("write the blob {}", self.digest), error))?;
        self.hasher.update(bytes);
        self.received += bytes.len() as u64;
        Ok(())
    }

    /// Begins again: what came before was of no use.
    pub(super) fn restart(&mut self) -> Result<(), RuntimeError> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .map_err(|error| {
                RuntimeError::io(format!("restart the blob {}", self.digest), error)
            })?;
        self.hasher = Hasher::default();
        self.received = 0;
        Ok(())
    }
}
