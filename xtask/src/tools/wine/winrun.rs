//! `winrun program.exe …`: cargo's runner for Windows programs, and what tests start them with.

use std::os::unix::fs::PermissionsExt;

use anyhow::Result;

use crate::tools::{State, Tool};
use crate::workspace::Workspace;

const SCRIPT: &str = include_str!("winrun.sh");

pub(crate) struct Winrun<'w> {
    workspace: &'w Workspace,
}

impl<'w> Winrun<'w> {
    pub(crate) fn new(workspace: &'w Workspace) -> Self {
        Self { workspace }
    }

    fn text(&self) -> String {
        SCRIPT.replace("@WINE@", &self.workspace.wine().display().to_string())
    }
}

impl Tool for Winrun<'_> {
    fn name(&self) -> String {
        "winrun".to_owned()
    }

    fn state(&self) -> Result<State> {
        let there = fs_err::read_to_string(self.workspace.winrun());
        Ok(match there {
            Ok(text) if text == self.text() => State::Present,
            Ok(_) => State::Missing("another version".into()),
            Err(_) => State::Missing("not installed".into()),
        })
    }

    fn needs_root(&self) -> bool {
        false
    }

    fn install(&self) -> Result<()> {
        fs_err::create_dir_all(self.workspace.bin())?;
        let fresh = self.workspace.bin().join("winrun.new");
        fs_err::write(&fresh, self.text())?;
        fs_err::set_permissions(&fresh, PermissionsExt::from_mode(0o755))?;
        Ok(fs_err::rename(&fresh, self.workspace.winrun())?)
    }

    fn by_hand(&self) -> String {
        "cargo xtask tools install wine".to_owned()
    }
}
