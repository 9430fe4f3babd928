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
    pub(super) fn save(&mut self) {
        let saved = Saved {
            boot: &self.boot,
            memory: self.engine.memory(),
        };
        let bytes = serde_json::to_vec(&saved).unwrap_or_default();
        if bytes == self.saved {
            return;
        }
        let path = self.config.run_folder().join(FILE);
        match self.files.write_durable(&path, &bytes, Access::Secret) {
            Ok(()) => {
                self.saved = bytes;
                self.unsaved = false;
            }
            // A full disk must not take services down. The next step tries again.
            Err(error) if !self.unsaved => {
                self.unsaved = true;
                let error = super::keepers::chain(&error);
                tracing::error!(error, "could not save what the supervisor knows");
            }
            Err(_) => {}
        }
    }

    /// All units went down in order: the next daemon starts as after a boot.
    pub(super) fn forget(&self) -> Result<(), DaemonError> {
        let path = self.config.run_folder().join(FILE);
        self.files.remove_file(&path).map_err(DaemonError::Forget)
    }
}
