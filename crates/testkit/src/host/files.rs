//! Files of a host, from outside of it. While the host is off, its disk is still there; what was
//! mounted at its start, like `/run`, is not.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;

use super::Host;
use crate::lab::{handle_path, lock};
use crate::tree::{Case, locate};
use crate::wine;

impl Host {
    /// Where this process finds the host's file `remote`, an absolute path of the host's system.
    /// It need not exist. The answer holds until the host is started or stopped.
    pub fn path(&self, remote: &str) -> Result<PathBuf> {
        let (inside, case) = self.inside(remote)?;
        let root = match &lock(&self.inner.state).power {
            Some(power) => handle_path(&power.root),
            None => self
                .inner
                .ground
                .path(&format!("hosts/{}/root", self.name())),
        };
        locate(&root, &inside, case)
    }

    /// Copies a file of the machine to the host, with its mode; makes the folders above it.
    pub fn put_file(&self, local: &Path, remote: &str) -> Result<()> {
        let target = self.path_with_folder(remote)?;
        fs::copy(local, target)
            .with_context(|| format!("could not put `{remote}` on host `{}`", self.name()))?;
        Ok(())
    }

    /// Writes a file of the host; makes the folders above it.
    pub fn write(&self, remote: &str, contents: impl AsRef<[u8]>) -> Result<()> {
        let target = self.path_with_folder(remote)?;
        fs::write(target, contents)
            .with_context(|| format!("could not write `{remote}` on host `{}`", self.name()))
    }

    /// Reads a file of the host.
    pub fn read(&self, remote: &str) -> Result<Vec<u8>> {
        fs::read(self.path(remote)?)
            .with_context(|| format!("could not read `{remote}` of host `{}`", self.name()))
    }

    /// Reads a file of the host that holds text.
    pub fn read_text(&self, remote: &str) -> Result<String> {
        String::from_utf8(self.read(remote)?)
            .with_context(|| format!("`{remote}` of host `{}` is no text", self.name()))
    }

    /// The path that `remote` has for Linux programs of the host.
    pub(super) fn inside(&self, remote: &str) -> Result<(PathBuf, Case)> {
        if self.inner.wine.is_some() && !remote.starts_with('/') {
            return Ok((wine::unix_path(remote)?, Case::Same));
        }
        ensure!(remote.starts_with('/'), "`{remote}` is no absolute path");
        Ok((PathBuf::from(remote), Case::Distinct))
    }

    fn path_with_folder(&self, remote: &str) -> Result<PathBuf> {
        let target = self.path(remote)?;
        let folder = target
            .parent()
            .with_context(|| format!("`{remote}` has no folder"))?;
        fs::create_dir_all(folder)?;
        Ok(target)
    }
}
