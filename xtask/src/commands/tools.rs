//! `cargo xtask tools`: what is installed, installing it, and using it by hand.

use anyhow::Result;

use crate::console;
use crate::tools::{self, Purpose};
use crate::workspace::Workspace;

/// Show, install or use the tools that the other commands need
#[derive(Debug, clap::Args)]
pub(crate) struct Tools {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Install what is missing
    Install {
        /// What the tools are for; everything if not given
        purposes: Vec<Purpose>,
    },
    /// Print shell lines for `eval`, so that `cargo +win` and `winrun` work by hand
    Env,
}

impl Tools {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        match self.action {
            None => {
                console::line(&format!("tools in {}", workspace.tools.display()));
                tools::show(workspace)
            }
            Some(Action::Install { purposes }) if purposes.is_empty() => {
                tools::ensure(workspace, &Purpose::ALL)
            }
            Some(Action::Install { purposes }) => tools::ensure(workspace, &purposes),
            Some(Action::Env) => {
                console::line(&format!(
                    "export CARGO_TARGET_DIR='{}'",
                    workspace.target.display()
                ));
                console::line(&format!(
                    "export PATH='{}':\"$PATH\"",
                    workspace.bin().display()
                ));
                Ok(())
            }
        }
    }
}
