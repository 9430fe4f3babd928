//! One file per command: its arguments and what it does.

mod bench;
mod ci;
mod dist;
mod fuzz;
mod generate;
mod real_windows;
mod schema;
mod test;
mod tools;
mod up;
mod windows;

use anyhow::Result;

use crate::tidy;
use crate::workspace::Workspace;

/// The project's own commands
#[derive(Debug, clap::Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Up(up::Up),
    Test(test::Test),
    Windows(windows::Windows),
    Ci(ci::Ci),
    /// Check the shape of the code: crate edges, OS `cfg`s, sizes, names, docs
    Tidy,
    Generate(generate::Generate),
    Dist(dist::Dist),
    Bench(bench::Bench),
    Fuzz(fuzz::Fuzz),
    Tools(tools::Tools),
}

impl Command {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        match self {
            Self::Up(command) => command.run(workspace),
            Self::Test(command) => command.run(workspace),
            Self::Windows(command) => command.run(workspace),
            Self::Ci(command) => command.run(workspace),
            Self::Tidy => tidy::run(workspace),
            Self::Generate(command) => command.run(workspace),
            Self::Dist(command) => command.run(workspace),
            Self::Bench(command) => command.run(workspace),
            Self::Fuzz(command) => command.run(workspace),
            Self::Tools(command) => command.run(workspace),
        }
    }
}
