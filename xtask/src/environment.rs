//! The environment variables that the project's commands listen to, read once at start. Nothing else
//! here asks the process for a variable, so every choice can be tested with a made-up environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Where our own tools are installed.
pub(crate) const TOOLS: &str = "TRANSOM_TOOLS";
/// Where cargo builds, unless `CARGO_TARGET_DIR` says so already.
pub(crate) const TARGET_DIR: &str = "TRANSOM_TARGET_DIR";
/// The folder whose `lib/rustlib` gets the standard library for Windows.
pub(crate) const WINDOWS_SYSROOT: &str = "TRANSOM_WINDOWS_SYSROOT";

/// A snapshot of the process environment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    pub(crate) fn of_this_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// The variable, unless it is unset or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        let value = self.0.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(value)
    }

    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// The folders programs are looked for in.
    pub(crate) fn search_path(&self) -> Vec<PathBuf> {
        self.get("PATH")
            .map(|path| std::env::split_paths(path).collect())
            .unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn made_of(pairs: &[(&str, &str)]) -> Self {
        Self(
            pairs
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}
