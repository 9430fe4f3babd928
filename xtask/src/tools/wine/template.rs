//! The Windows machine that all others are copied from: no screen, no crash dialogs. Making one takes
//! Wine several seconds; copying one does not.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::machine::{Machine, wine_command};
use crate::run;
use crate::tools::stamp::Stamped;
use crate::tools::{State, Tool};
use crate::workspace::Workspace;

/// To be raised when the steps below change.
const RECIPE: u32 = 1;
const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) struct Template<'w> {
    workspace: &'w Workspace,
}

impl<'w> Template<'w> {
    pub(crate) fn new(workspace: &'w Workspace) -> Self {
        Self { workspace }
    }

    fn place(&self) -> Stamped {
        Stamped {
            folder: self.workspace.wine().join("template"),
            made_from: format!("recipe {RECIPE}"),
        }
    }

    fn fill(&self, prefix: &Path) -> Result<()> {
        let wine = self.workspace.wine();
        let graphics = [
            r"HKCU\Software\Wine\Drivers",
            "/v",
            "Graphics",
            "/d",
            "null",
            "/f",
        ];
        let debugger = [
            r"HKLM\Software\Microsoft\Windows NT\CurrentVersion\AeDebug",
            "/v",
            "Debugger",
            "/d",
            "",
            "/f",
        ];
        let made = run::bounded(
            wine_command(&wine, prefix).args(["wineboot", "-i"]),
            PATIENCE,
        )
        .and_then(|_| {
            run::bounded(
                wine_command(&wine, prefix)
                    .args(["reg", "add"])
                    .args(graphics),
                PATIENCE,
            )
        })
        .and_then(|_| {
            run::bounded(
                wine_command(&wine, prefix)
                    .args(["reg", "add"])
                    .args(debugger),
                PATIENCE,
            )
        });
        // Also after a failure: nothing of ours stays running. It writes the registry before it ends.
        let ended = Machine::shut_down(&wine, prefix);
        made.context("Wine could not make its first machine")?;
        ended?;
        let socket = prefix.join("wineserver");
        if socket.exists() {
            // Names the server of this very run.
            fs_err::remove_file(socket)?;
        }
        Ok(())
    }
}

impl Tool for Template<'_> {
    fn name(&self) -> String {
        "Windows machine template".to_owned()
    }

    fn state(&self) -> Result<State> {
        self.place().state()
    }

    fn needs_root(&self) -> bool {
        false
    }

    fn install(&self) -> Result<()> {
        self.place().make(|fresh| self.fill(fresh))
    }

    fn by_hand(&self) -> String {
        "cargo xtask tools install wine".to_owned()
    }
}
