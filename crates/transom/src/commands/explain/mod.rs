//! `transom explain`: why the cluster decided as it did.

mod decision;
mod placement;

use clap::Subcommand;

use crate::client;
use crate::context::Context;
use crate::failure::Exit;

/// Say why the cluster decided as it did
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom explain placement web")]
pub(super) struct Explain {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Placement(placement::Placement),
}

impl Explain {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        client::block_on(async {
            match self.command {
                Command::Placement(command) => command.run(cx).await,
            }
        })
    }
}
