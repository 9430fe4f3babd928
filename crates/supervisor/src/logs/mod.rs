//! Per-unit logs: written with rotation, read with follow and since.
//!
//! One line of a service is one line of the file: `time stream pid text`. A file is only ever appended
//! to or renamed, so a reader that knows how far it got misses nothing.

mod line;
mod reader;
mod writer;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

pub use line::{LogLine, Stream};
pub use reader::{LogReader, Query};
pub use writer::LogWriter;

use crate::unit::UnitName;

/// Longer lines are broken, as journald does.
pub const LONGEST_LOG_LINE: usize = 48 * 1024;

/// When a log file is put aside, and how many of those are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    pub bytes: u64,
    pub keep: u32,
}

impl Default for Rotation {
    fn default() -> Self {
        Self {
            bytes: 10 << 20,
            keep: 4,
        }
    }
}

/// The log file of a unit in the folder of unit logs.
pub fn log_path(folder: &Utf8Path, unit: &UnitName) -> Utf8PathBuf {
    // Escaped unit names contain backslashes, and colons are allowed: neither can stand in a file
    // name on Windows. `%` cannot be in a unit name, so the replacement is unambiguous.
    let name = unit.as_str().replace('\\', "%5C").replace(':', "%3A");
    folder.join(format!("{name}.log"))
}

/// The names of a log, newest first: the file itself, then those put aside.
fn generations(path: &Utf8Path, keep: u32) -> impl DoubleEndedIterator<Item = Utf8PathBuf> {
    let aside = path.to_owned();
    std::iter::once(path.to_owned())
        .chain((1..=keep).map(move |number| Utf8PathBuf::from(format!("{aside}.{number}"))))
}

#[cfg(test)]
mod tests;
