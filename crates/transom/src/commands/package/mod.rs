//! `transom package`: from a source tree to a node's active packages. Invariant: whatever changes
//! something can first say what it would change.

mod activate;
mod active;
mod build;
mod check;
mod fetch;
mod fetching;
mod generations;
mod graph;
mod id;
mod node;
mod pkgpanda;
mod remove;
mod serve;
mod services;
mod setup;
mod source;
mod tree;

use crate::context::Context;
use crate::failure::Exit;

pub(crate) use pkgpanda::run as run_pkgpanda;

const EXAMPLES: &str = "\
Examples:
  transom package tree                      The packages of a source tree, in build order
  transom package id etcd                   The id that a package would have
  transom package build etcd --recursive    Build it, and what it requires
  transom package graph --format svg        A picture of who requires whom
  transom package activate etcd--1f0c…      Make packages active on this node
  transom package generations               What was active, and can be again
  transom package rollback                  Return to the generation before";

/// Make packages, and choose those that are active on this node
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(super) struct Package {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Id(id::Id),
    Tree(tree::Tree),
    Build(build::Build),
    Graph(graph::Graph),
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
    Generations(generations::Generations),
    Diff(generations::Diff),
    Rollback(generations::Rollback),
    Pin(generations::Pin),
    Unpin(generations::Unpin),
    Serve(serve::Serve),
    #[command(name = "gc")]
    Collect(remove::Collect),
}

impl Package {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        match self.verb {
            Verb::Id(verb) => verb.run(cx),
            Verb::Tree(verb) => verb.run(cx),
            Verb::Build(verb) => verb.run(cx),
            Verb::Graph(verb) => verb.run(cx),
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
            Verb::Generations(verb) => verb.run(cx),
            Verb::Diff(verb) => verb.run(cx),
            Verb::Rollback(verb) => verb.run(cx),
            Verb::Pin(verb) => verb.run(cx),
            Verb::Unpin(verb) => verb.run(cx),
            Verb::Serve(verb) => verb.run(cx),
            Verb::Collect(verb) => verb.run(cx),
        }
    }
}
