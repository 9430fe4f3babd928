//! Files: one contract for every system, and what only one of them can show.

mod archive;
mod child;
mod contract;
mod crash;
mod fake;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::Files;
use transom_host::files::path;

/// A machine under test and a folder of its own on it.
struct Machine {
    files: Box<dyn Files>,
    root: Utf8PathBuf,
    /// Removes the folder of a real machine, however the test ends.
    _folder: Option<tempfile::TempDir>,
}

impl Machine {
    fn native() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8Path::from_path(folder.path())
            .expect("a Unicode path")
            .to_owned();
        Self {
            files: Box::new(transom_host::files::Native),
            root,
            _folder: Some(folder),
        }
    }

    /// A path below the folder, in the spelling of the machine.
    fn path(&self, below: &str) -> Utf8PathBuf {
        path::join(self.files.os(), &self.root, below)
    }
}
