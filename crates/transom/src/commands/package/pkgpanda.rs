//! The same verbs under the name `pkgpanda`, in the places of DC/OS, so that scripts written for it run
//! unchanged.

use clap::Parser;

use super::{activate, active, check, fetch, remove, setup};
use crate::arguments::GlobalOptions;
use crate::commands::{Entry, run_entry};
use crate::context::Context;
use crate::failure::Exit;
use crate::invocation::Invocation;

/// Packages of a DC/OS node, as Transom handles them
#[derive(Debug, Parser)]
#[command(
    name = "pkgpanda",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Pkgpanda {
    #[command(subcommand)]
    verb: Verb,

    #[command(flatten)]
    options: GlobalOptions,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Activate(activate::Activate),
    Swap(activate::Swap),
    Active(active::Active),
    Fetch(fetch::Fetch),
    Add(fetch::Add),
    List(active::List),
    Remove(remove::Remove),
    Setup(setup::Setup),
    Uninstall(remove::Uninstall),
    Check(check::Check),
}

impl Entry for Pkgpanda {
    fn options(&self) -> GlobalOptions {
        // `--root` is that of the node's software here.
        GlobalOptions {
            root: None,
            ..self.options.clone()
        }
    }

    fn run(mut self, cx: &Context) -> anyhow::Result<Exit> {
        let node = match &mut self.verb {
            Verb::Activate(verb) => &mut verb.node,
            Verb::Swap(verb) => &mut verb.node,
            Verb::Active(verb) => &mut verb.node,
            Verb::Fetch(verb) => &mut verb.node,
            Verb::Add(verb) => &mut verb.node,
            Verb::List(verb) => &mut verb.node,
            Verb::Remove(verb) => &mut verb.node,
            Verb::Setup(verb) => &mut verb.node,
            Verb::Uninstall(verb) => &mut verb.node,
            Verb::Check(verb) => &mut verb.node,
        };
        node.familiar = true;
        match self.verb {
            Verb::Activate(verb) => verb.run(cx),
            Verb::Swap(verb) => verb.run(cx),
            Verb::Active(verb) => verb.run(cx),
            Verb::Fetch(verb) => verb.run(cx),
            Verb::Add(verb) => verb.run(cx),
            Verb::List(verb) => verb.run(cx),
            Verb::Remove(verb) => verb.run(cx),
            Verb::Setup(verb) => verb.run(cx),
            Verb::Uninstall(verb) => verb.run(cx),
            Verb::Check(verb) => verb.run(cx),
        }
    }
}

/// Runs `pkgpanda`.
pub(crate) fn run(invocation: &Invocation) -> Exit {
    run_entry::<Pkgpanda>(invocation, <Pkgpanda as clap::CommandFactory>::command())
}
