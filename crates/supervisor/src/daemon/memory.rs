//! The engine's memory on disk. It is worth something only until the machine reboots.

use camino::Utf8Path;
use serde::{Deserialize, Serialize};
use transom_host::files::{Access, FileError, Files};

use super::{Daemon, DaemonError};
use crate::engine::Memory;

const FILE: &str = "memory.json";
const LARGEST: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Saved<B, M> {
    boot: B,
    memory: M,
}

/// The memory of an earlier daemon of this boot. Damaged or foreign memory counts as none: the
/// keepers that belong to it are ended by `resume`.
pub(super) fn read(files: &dyn Files, folder: &Utf8Path, boot: &str) -> Option<Memory> {
    let bytes = match files.read(&folder.join(FILE), LARGEST) {
        Ok(bytes) => bytes,
        Err(FileError::NotFound { .. }) => return None,
        Err(error) => {
            tracing::warn!(error = %error, "the memory of the last supervisor cannot be read");
            return None;
        }
    };
    match serde_json::from_slice::<Saved<String, Memory>>(&bytes) {
        Ok(saved) if saved.boot == boot => Some(saved.memory),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(error = %error, "the memory of the last supervisor is damaged");
            None
        }
    }
}

impl Daemon {
    /// Writes the memory down if it has changed.
    pub(super) fn save(&mut self) -> Result<(), DaemonError> {
        let saved = Saved {
            boot: &self.boot,
            memory: self.engine.memory(),
        };
        let bytes = serde_json::to_vec(&saved).unwrap_or_default();
        if bytes == self.saved {
            return Ok(());
        }
        let path = self.config.run_folder().join(FILE);
        self.files
            .write_durable(&path, &bytes, Access::Secret)
            .map_err(DaemonError::Save)?;
        self.saved = bytes;
        Ok(())
    }
}
