//! The same verbs under the name `systemctl`. Options of the real one that have no meaning here are
//! accepted, so that scripts run unchanged.

use clap::Parser;

use super::Verb;
use crate::arguments::GlobalOptions;
use crate::commands::{Entry, run_entry};
use crate::context::Context;
use crate::failure::Exit;
use crate::invocation::Invocation;

/// Control services: systemctl, as Transom's supervisor understands it
#[derive(Debug, Parser)]
#[command(
    name = "systemctl",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Systemctl {
    #[command(subcommand)]
    verb: Option<Verb>,

    /// Accepted and without effect: output is never paged
    #[arg(long, global = true, hide = true)]
    no_pager: bool,

    /// Accepted and without effect: there is one supervisor, the system's
    #[arg(long, global = true, hide = true)]
    system: bool,

    /// Accepted and without effect: nobody is asked for a password
    #[arg(long, global = true, hide = true)]
    no_ask_password: bool,

    #[command(flatten)]
    options: GlobalOptions,
}

impl Entry for Systemctl {
    fn options(&self) -> GlobalOptions {
        self.options.clone()
    }

    fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        match self.verb {
            Some(verb) => verb.run(cx),
            None => super::list::ListUnits::default().run(cx),
        }
    }
}

/// Runs `systemctl`.
pub(crate) fn run(invocation: &Invocation) -> Exit {
    run_entry::<Systemctl>(invocation, <Systemctl as clap::CommandFactory>::command())
}
