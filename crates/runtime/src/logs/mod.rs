//! Logs of containers as all runtimes write them (`timestamp stream tag text`, one entry per line), and how they
//! are read, followed and rotated.
//!
//! Invariant: no input makes a reader or a writer hold more than a bounded piece of a line in memory.

mod entry;
mod files;
mod reader;
mod recent;
mod rotation;
mod splitter;
mod tail;
mod writer;

#[cfg(test)]
mod tests;

use std::io;

use camino::Utf8PathBuf;
use thiserror::Error;

pub use entry::{BadEntry, Entry, Stream, Tag, render_entry};
pub use reader::{LogReader, ReadOptions};
pub use recent::Recent;
pub use rotation::{Rotation, rotate};
pub use splitter::{LONGEST_PIECE, Splitter};
pub use writer::LogWriter;

/// A line of a log file that is longer is not an entry: writers cut at a fraction of that.
const LONGEST_LINE: usize = 1 << 20;

/// Why a log could not be read or rotated.
#[derive(Debug, Error)]
pub enum LogError {
    #[error("there is no log {path}")]
    Missing { path: Utf8PathBuf },
    #[error("{action} {path}")]
    Io {
        action: &'static str,
        path: Utf8PathBuf,
        #[source]
        source: io::Error,
    },
    /// The old file was renamed, and its writer did not begin a new one.
    #[error("the writer of {path} did not begin a new file: {cause}")]
    Reopen { path: Utf8PathBuf, cause: String },
}
