//! `transom config`: the settings of the command itself. Invariant: only looks; the file belongs to
//! whoever wrote it.

mod path;
mod show;

use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  transom config show         What holds, and where each value came from
  transom config path         Where the configuration file is looked for";

/// Show settings and where they come from
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(super) struct Config {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Show(show::Show),
    Path(path::Path),
}

impl Config {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        match self.verb {
            Verb::Show(verb) => verb.run(cx),
            Verb::Path(verb) => verb.run(cx),
        }
    }
}
