//! `cargo xtask up`: from a checkout to a running Transom, as far as there is one.

use anyhow::Result;

use crate::console;
use crate::run;
use crate::workspace::Workspace;

/// Build Transom and show what it can do on this machine
#[derive(Debug, clap::Args)]
pub(crate) struct Up {
    /// Build with optimizations
    #[arg(long)]
    release: bool,
}

impl Up {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        console::heading("build");
        let mut build = workspace.cargo();
        build.args(["build", "--package", "transom"]);
        if self.release {
            build.arg("--release");
        }
        run::visibly(&mut build)?;

        let transom = if self.release {
            workspace.target.join("release/transom")
        } else {
            workspace.transom()
        };
        console::heading("what this machine can do");
        run::visibly(workspace.command(&transom).arg("doctor"))?;

        console::heading("next");
        console::line(&format!("  {} --help", transom.display()));
        console::line("  cargo xtask test");
        Ok(())
    }
}
