//! Puts the entries of any kind of archive into a staging, within the limits. It remembers every name
//! it made: nothing is made twice, and nothing is made below what is not a folder.

use std::collections::BTreeMap;
use std::io::Read;

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use super::super::{Files, Staging};
use super::names::{self, Refusal};
use super::watcher::{Seen, Watcher, What};
use super::{ExtractError, Extraction, Limits, Summary};

const CHUNK: usize = 64 * 1024;
/// Below this the ratio is not looked at.
const HARMLESS_BYTES: u64 = 1 << 20;
/// Folders that no entry describes.
const FOLDER_MODE: u32 = 0o755;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    File,
    Dir,
    Link,
}

pub(super) struct Unpacker<'a> {
    staging: Staging<'a>,
    target: Os,
    limits: &'a Limits,
    watcher: &'a mut dyn Watcher,
    archive_bytes: Option<u64>,
    /// Between the archive and the file that is being written.
    chunk: Vec<u8>,
    summary: Summary,
    /// By the key of the target system: how it was spelled, and what it is.
    made: BTreeMap<String, (String, Made)>,
}

impl<'a> Unpacker<'a> {
    pub(super) fn begin(
        files: &'a dyn Files,
        job: &'a Extraction,
        archive_bytes: Option<u64>,
        watcher: &'a mut dyn Watcher,
    ) -> Result<Self, ExtractError> {
        Ok(Self {
            staging: files.stage(&job.destination)?,
            target: job.target,
            limits: &job.limits,
            watcher,
            archive_bytes,
            chunk: Vec::new(),
            summary: Summary::default(),
            made: BTreeMap::new(),
        })
    }

    /// Counts an entry and checks its name. `None` for the destination itself.
    pub(super) fn admit(&mut self, raw: &[u8]) -> Result<Option<Utf8PathBuf>, ExtractError> {
        self.summary.entries += 1;
        if self.summary.entries > self.limits.entries {
            return Err(ExtractError::TooManyEntries {
                limit: self.limits.entries,
            });
        }
        let path = names::entry_path(self.target, raw, self.limits.path_bytes)
            .map_err(|reason| refused(&String::from_utf8_lossy(raw), reason))?;
        if path.as_str().matches('/').count() >= self.limits.depth {
            return Err(ExtractError::TooDeep {
                entry: shown(path.as_str()),
                limit: self.limits.depth,
            });
        }
        Ok((!path.as_str().is_empty()).then_some(path))
    }

    pub(super) fn dir(&mut self, path: &Utf8Path, mode: u32) -> Result<(), ExtractError> {
        self.folders_above(path)?;
        self.show(path, mode, What::Dir)?;
        let key = names::key(self.target, path.as_str());
        match self.made.get(&key) {
            // Often described after it was made for what is in it.
            Some((spelled, Made::Dir)) if *spelled == path.as_str() => {
                self.staging.set_dir_mode(path, mode & 0o777);
                Ok(())
            }
            _ => {
                self.claim(path, Made::Dir)?;
                Ok(self.staging.make_dir(path, mode & 0o777)?)
            }
        }
    }

    /// Writes a file of exactly `size` bytes.
    pub(super) fn file(
        &mut self,
        path: &Utf8Path,
        mode: u32,
        size: u64,
        content: &mut dyn Read,
    ) -> Result<(), ExtractError> {
        // A lie about the size is found below; an honest giant is refused before a byte is written.
        self.check_size(path, size)?;
        self.folders_above(path)?;
        self.claim(path, Made::File)?;
        self.show(path, mode, What::File { size })?;
        let mut file = self.staging.create_file(path, mode & 0o777)?;
        let mut written = 0_u64;
        loop {
            // A watcher may have left a shorter one.
            self.chunk.resize(CHUNK, 0);
            let count = content.read(&mut self.chunk).map_err(damaged)?;
            if count == 0 {
                break;
            }
            written += count as u64;
            self.check_size(path, written)?;
            file.write_all(&self.chunk[..count])?;
            self.watcher
                .content(&mut self.chunk, count)
                .map_err(|source| ExtractError::Objected { source })?;
        }
        if written != size {
            return Err(ExtractError::CutOff);
        }
        self.summary.bytes += written;
        Ok(file.finish()?)
    }

    /// Whether one more file of `bytes` is within the limits.
    fn check_size(&self, path: &Utf8Path, bytes: u64) -> Result<(), ExtractError> {
        let limits = self.limits;
        if bytes > limits.file_bytes {
            return Err(ExtractError::FileTooLarge {
                entry: path.to_string(),
                limit: limits.file_bytes,
            });
        }
        let total = self.summary.bytes.saturating_add(bytes);
        if total > limits.total_bytes {
            return Err(ExtractError::TotalTooLarge {
                limit: limits.total_bytes,
            });
        }
        let expected = self
            .archive_bytes
            .map(|archive| archive.saturating_mul(limits.ratio));
        if total > HARMLESS_BYTES && expected.is_some_and(|expected| total > expected) {
            return Err(ExtractError::RatioTooLarge {
                limit: limits.ratio,
            });
        }
        Ok(())
    }

    pub(super) fn symlink(&mut self, path: &Utf8Path, raw: &[u8]) -> Result<(), ExtractError> {
        let refuse = |reason| refused(path.as_str(), reason);
        if self.target == Os::Windows {
            return Err(refuse(Refusal::LinkNotPossible));
        }
        if raw.len() > self.limits.path_bytes {
            return Err(refuse(Refusal::TooLong));
        }
        let target = std::str::from_utf8(raw).map_err(|_| refuse(Refusal::NotUnicode))?;
        names::check_link(path.as_str(), target).map_err(refuse)?;
        self.folders_above(path)?;
        self.claim(path, Made::Link)?;
        self.show(path, 0o777, What::Symlink { target })?;
        Ok(self.staging.symlink(target, path)?)
    }

    /// A second name for a file that came before.
    pub(super) fn hard_link(&mut self, path: &Utf8Path, raw: &[u8]) -> Result<(), ExtractError> {
        let refuse = |reason| refused(path.as_str(), reason);
        let existing =
            names::entry_path(self.target, raw, self.limits.path_bytes).map_err(refuse)?;
        match self.made.get(&names::key(self.target, existing.as_str())) {
            Some((_, Made::File)) => {}
            _ => return Err(refuse(Refusal::LinkToNothing)),
        }
        self.folders_above(path)?;
        self.claim(path, Made::File)?;
        let what = What::HardLink {
            existing: &existing,
        };
        self.show(path, 0, what)?;
        Ok(self.staging.link_within(&existing, path)?)
    }

    pub(super) fn finish(self) -> Result<Summary, ExtractError> {
        self.watcher
            .finish()
            .map_err(|source| ExtractError::Objected { source })?;
        self.staging.commit()?;
        Ok(self.summary)
    }

    fn show(&mut self, path: &Utf8Path, mode: u32, what: What<'_>) -> Result<(), ExtractError> {
        let mode = mode & 0o777;
        self.watcher
            .entry(&Seen { path, mode, what })
            .map_err(|source| ExtractError::Objected { source })
    }

    /// Makes the folders that the archive did not describe, and refuses to go through anything else.
    fn folders_above(&mut self, path: &Utf8Path) -> Result<(), ExtractError> {
        let text = path.as_str();
        for (at, _) in text.match_indices('/') {
            let folder = &text[..at];
            match self.made.get(&names::key(self.target, folder)) {
                Some((spelled, Made::Dir)) if spelled == folder => {}
                Some((_, Made::Dir)) => return Err(refused(text, Refusal::DuplicateButForCase)),
                Some(_) => return Err(refused(text, Refusal::ThroughNonFolder)),
                None => {
                    self.claim(folder.into(), Made::Dir)?;
                    self.staging.make_dir(folder.into(), FOLDER_MODE)?;
                }
            }
        }
        Ok(())
    }

    fn claim(&mut self, path: &Utf8Path, made: Made) -> Result<(), ExtractError> {
        let key = names::key(self.target, path.as_str());
        match self.made.get(&key) {
            Some((spelled, _)) if *spelled == path.as_str() => {
                Err(refused(path.as_str(), Refusal::Duplicate))
            }
            Some(_) => Err(refused(path.as_str(), Refusal::DuplicateButForCase)),
            None => {
                self.made.insert(key, (path.to_string(), made));
                Ok(())
            }
        }
    }
}

pub(super) fn refused(entry: &str, reason: Refusal) -> ExtractError {
    ExtractError::Refused {
        entry: shown(entry),
        reason,
    }
}

/// A hostile name must not write to a terminal.
fn shown(entry: &str) -> String {
    entry.escape_debug().take(200).collect()
}

pub(super) fn damaged(source: std::io::Error) -> ExtractError {
    if source.kind() == std::io::ErrorKind::UnexpectedEof {
        return ExtractError::CutOff;
    }
    ExtractError::Damaged { source }
}
