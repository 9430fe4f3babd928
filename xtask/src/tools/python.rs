//! Python programs of others that our API must please: client libraries in a folder of their own, with
//! every version fixed. Once it is there, no network is needed.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::Result;

use super::stamp::Stamped;
use super::{State, Tool};
use crate::run;
use crate::workspace::Workspace;

/// The libraries with all that they need.
const REQUIREMENTS: &str = include_str!("python-requirements.txt");

pub(crate) struct Python<'w> {
    workspace: &'w Workspace,
}

impl<'w> Python<'w> {
    pub(crate) fn new(workspace: &'w Workspace) -> Self {
        Self { workspace }
    }

    fn folder(&self) -> Stamped {
        Stamped {
            folder: self.workspace.tools.join("python"),
            made_from: REQUIREMENTS.to_owned(),
        }
    }

    /// What tests start: a link would make Python forget where its libraries are.
    fn starter(&self) -> PathBuf {
        self.workspace.bin().join("transom-python")
    }

    fn starter_text(&self) -> String {
        let folder = self.folder().folder;
        let libraries = folder.join("lib");
        format!(
            "#!/bin/sh\nPYTHONPATH='{}' exec /usr/bin/python3 \"$@\"\n",
            libraries.display()
        )
    }
}

impl Tool for Python<'_> {
    fn name(&self) -> String {
        "Python client libraries".to_owned()
    }

    fn state(&self) -> Result<State> {
        Ok(match self.folder().state()? {
            State::Present => match fs_err::read_to_string(self.starter()) {
                Ok(text) if text == self.starter_text() => State::Present,
                Ok(_) => State::Missing("another version of its starter".into()),
                Err(_) => State::Missing("no starter".into()),
            },
            missing @ State::Missing(_) => missing,
        })
    }

    fn needs_root(&self) -> bool {
        false
    }

    fn install(&self) -> Result<()> {
        let folder = self.folder();
        if folder.state()? != State::Present {
            folder.make(|fresh| {
                let requirements = fresh.join("requirements.txt");
                fs_err::write(&requirements, REQUIREMENTS)?;
                run::announced(
                    self.workspace
                        .command("/usr/bin/python3")
                        .args(["-m", "pip", "install", "--quiet", "--no-input"])
                        .args(["--disable-pip-version-check", "--no-compile", "--no-deps"])
                        .args(["--only-binary", ":all:", "--target"])
                        .arg(fresh.join("lib"))
                        .arg("--requirement")
                        .arg(&requirements),
                )
            })?;
        }
        fs_err::create_dir_all(self.workspace.bin())?;
        let fresh = self.workspace.bin().join("transom-python.new");
        fs_err::write(&fresh, self.starter_text())?;
        fs_err::set_permissions(&fresh, PermissionsExt::from_mode(0o755))?;
        Ok(fs_err::rename(&fresh, self.starter())?)
    }

    fn by_hand(&self) -> String {
        "cargo xtask tools install linux".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_has_one_version() {
        for line in REQUIREMENTS.lines().filter(|line| !line.starts_with('#')) {
            let (name, version) = line.split_once("==").unwrap();
            assert!(!name.is_empty() && !version.is_empty(), "{line}");
        }
    }
}
