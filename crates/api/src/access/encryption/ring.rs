//! The keys, in one file that only its owner reads.
//!
//! One key to a line, the newest first, as `<id> <base64>`. A file that is damaged is an error and is never
//! replaced: with a new key, everything that is stored would be lost.

use std::{collections::BTreeSet, fmt};

use aws_lc_rs::rand;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use camino::{Utf8Path, Utf8PathBuf};
use transom_host::{
    access::{Access as Permissions, AccessError, Restricted},
    files::{Access, FileError, Files, path},
};

use super::KEY_ID_LENGTH;

const LONGEST_FILE: u64 = 1 << 20;

/// Why there are no keys to work with.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    #[error("`{path}` is damaged: restore it from a backup, without it no secret can be read")]
    Damaged { path: Utf8PathBuf },
    #[error("the system gave no randomness")]
    Random,
    #[error("could not read or write the keys")]
    File {
        #[from]
        source: FileError,
    },
    #[error("could not keep the keys private")]
    Private {
        #[from]
        source: AccessError,
    },
}

pub(super) struct Key {
    pub(super) id: [u8; KEY_ID_LENGTH],
    pub(super) secret: [u8; 32],
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("id", &hex(&self.id))
            .finish_non_exhaustive()
    }
}

impl Key {
    fn generate() -> Result<Self, RingError> {
        let mut key = Self {
            id: [0; KEY_ID_LENGTH],
            secret: [0; 32],
        };
        rand::fill(&mut key.id).map_err(|_| RingError::Random)?;
        rand::fill(&mut key.secret).map_err(|_| RingError::Random)?;
        Ok(key)
    }

    fn of_line(line: &str) -> Option<Self> {
        let (id, secret) = line.split_once(' ')?;
        let secret = STANDARD.decode(secret.trim()).ok()?;
        Some(Self {
            id: unhex(id)?,
            secret: secret.try_into().ok()?,
        })
    }

    fn to_line(&self) -> String {
        format!("{} {}\n", hex(&self.id), STANDARD.encode(self.secret))
    }
}

/// All keys, the newest first. There is always one.
#[derive(Debug)]
pub struct KeyRing {
    newest: Key,
    older: Vec<Key>,
}

impl KeyRing {
    /// Reads the keys at `file`, or makes the first one. No other process may do this at the same time.
    pub fn ensure(
        files: &dyn Files,
        permissions: &dyn Permissions,
        file: &Utf8Path,
    ) -> Result<Self, RingError> {
        if let Some(folder) = path::parent(files.os(), file) {
            files.create_dir_all(&folder)?;
            if let Restricted::NotVerified { why } = permissions.restrict_to_owner(&folder)? {
                tracing::warn!(%folder, why, "could not verify that the keys are private");
            }
        }
        if let Some(ring) = Self::read(files, file)? {
            return Ok(ring);
        }
        let ring = Self {
            newest: Key::generate()?,
            older: Vec::new(),
        };
        ring.write(files, file)?;
        Ok(ring)
    }

    /// The keys at `file`, if there are some.
    pub fn read(files: &dyn Files, file: &Utf8Path) -> Result<Option<Self>, RingError> {
        match files.read(file, LONGEST_FILE) {
            Ok(bytes) => Self::of_bytes(&bytes)
                .map(Some)
                .ok_or_else(|| RingError::Damaged {
                    path: file.to_owned(),
                }),
            Err(FileError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What stored values call the keys, the newest first.
    pub fn ids(&self) -> impl Iterator<Item = String> {
        self.all().map(|key| hex(&key.id))
    }

    /// Makes a new key in front of the others. Once nothing stored needs a rewrite, [`KeyRing::retire`] may
    /// follow.
    pub fn rotate(self, files: &dyn Files, file: &Utf8Path) -> Result<Self, RingError> {
        let mut older = vec![self.newest];
        older.extend(self.older);
        let ring = Self {
            newest: Key::generate()?,
            older,
        };
        ring.write(files, file)?;
        Ok(ring)
    }

    /// Forgets all keys but the newest. What is still sealed with another is lost.
    pub fn retire(self, files: &dyn Files, file: &Utf8Path) -> Result<Self, RingError> {
        let ring = Self {
            newest: self.newest,
            older: Vec::new(),
        };
        ring.write(files, file)?;
        Ok(ring)
    }

    fn write(&self, files: &dyn Files, file: &Utf8Path) -> Result<(), RingError> {
        let text: String = self.all().map(Key::to_line).collect();
        Ok(files.write_durable(file, text.as_bytes(), Access::Secret)?)
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let mut keys = text.lines().map(Key::of_line);
        let newest = keys.next()??;
        let older = keys.collect::<Option<Vec<_>>>()?;
        let ring = Self { newest, older };
        let distinct: BTreeSet<_> = ring.all().map(|key| key.id).collect();
        (distinct.len() == ring.all().count()).then_some(ring)
    }

    fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.newest).chain(&self.older)
    }

    pub(super) fn newest(&self) -> &Key {
        &self.newest
    }

    pub(super) fn find(&self, id: [u8; KEY_ID_LENGTH]) -> Option<&Key> {
        self.all().find(|key| key.id == id)
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<[u8; KEY_ID_LENGTH]> {
    let mut id = [0; KEY_ID_LENGTH];
    if text.len() != 2 * KEY_ID_LENGTH || !text.is_ascii() {
        return None;
    }
    for (index, byte) in id.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(id)
}
