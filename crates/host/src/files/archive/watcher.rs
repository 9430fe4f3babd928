//! Somebody who looks at all that is unpacked, while it is unpacked, and has the last word. Nothing
//! becomes visible that its watcher did not agree to.

use std::error::Error;

use camino::Utf8Path;

/// Why a watcher does not want an archive.
pub type Objection = Box<dyn Error + Send + Sync>;

/// One entry of an archive, its name already found harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<'a> {
    /// Plain names joined by `/`.
    pub path: &'a Utf8Path,
    /// The permissions, as they will be set.
    pub mode: u32,
    pub what: What<'a>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
    Dir,
    /// Followed by its content, unless it is empty.
    File {
        size: u64,
    },
    Symlink {
        target: &'a str,
    },
    HardLink {
        existing: &'a Utf8Path,
    },
}

/// Looks at an archive while it is unpacked.
pub trait Watcher {
    /// Sees an entry before anything of it is made.
    fn entry(&mut self, entry: &Seen<'_>) -> Result<(), Objection>;
    /// Sees the next bytes of the file seen last: the first `length` of `chunk`. The watcher may keep
    /// the buffer and leave another one, of any length, in its place.
    fn content(&mut self, chunk: &mut Vec<u8>, length: usize) -> Result<(), Objection>;
    /// Agrees to all of it, or not.
    fn finish(&mut self) -> Result<(), Objection>;
}

/// Agrees to everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {
    fn entry(&mut self, _entry: &Seen<'_>) -> Result<(), Objection> {
        Ok(())
    }

    fn content(&mut self, _chunk: &mut Vec<u8>, _length: usize) -> Result<(), Objection> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Objection> {
        Ok(())
    }
}
