//! Who holds a file open. Asked only after an operation failed: the answer is for a person, and may
//! be out of date when it arrives.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;
#[cfg(target_os = "linux")]
pub(super) use linux::holders;
#[cfg(windows)]
pub(super) use windows::holders;

use std::fmt;

use serde::{Deserialize, Serialize};

/// A process that holds a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub name: String,
}

/// What the system could say about who holds a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holders {
    /// Sorted by process id; empty when nobody does.
    Known(Vec<Holder>),
    Unknown {
        reason: String,
    },
}

impl fmt::Display for Holders {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(holders) if holders.is_empty() => {
                out.write_str("a process that has let go of it since")
            }
            Self::Known(holders) => {
                for (index, holder) in holders.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(out, "{comma}process {} ({})", holder.pid, holder.name)?;
                }
                Ok(())
            }
            Self::Unknown { reason } => write!(out, "an unknown process: {reason}"),
        }
    }
}
