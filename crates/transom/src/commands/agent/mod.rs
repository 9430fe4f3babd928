//! `transom agent`: makes this machine a node.

mod install;
mod run;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::{Advice as _, Exit};

pub(super) use run::inherited;

/// Join a cluster and run its pods on this machine
#[derive(Debug, clap::Args)]
#[command(after_help = run::EXAMPLES, subcommand_negates_reqs = true)]
pub(super) struct Agent {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    run: run::Run,
}

#[derive(Debug, Subcommand)]
enum Command {
    Install(Box<install::Install>),
    Uninstall(install::Uninstall),
}

impl Agent {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if let (Some(_), true) = (&self.command, self.run.has_flags()) {
            // Options that every command takes may stand here; these would be ignored.
            let misplaced: anyhow::Result<Exit> = Err(anyhow::anyhow!(
                "an option of the agent itself, which was not asked to run, is before the command"
            ));
            return misplaced
                .hint("put it behind the command, if that one has it; try --help")
                .exit(Exit::Usage);
        }
        match self.command {
            None => self.run.run(cx),
            Some(Command::Install(command)) => command.run(cx),
            Some(Command::Uninstall(command)) => command.run(cx),
        }
    }
}
