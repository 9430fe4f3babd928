//! `transom package`: from a source tree to a node's active packages. Invariant: whatever changes
//! something can first say what it would change.

mod build;
mod graph;
mod id;
mod source;
mod tree;

use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  transom package tree                      The packages of a source tree, in build order
  transom package id etcd                   The id that a package would have
  transom package build etcd --recursive    Build it, and what it requires
  transom package graph --format svg        A picture of who requires whom";

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
}

impl Package {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        match self.verb {
            Verb::Id(verb) => verb.run(cx),
            Verb::Tree(verb) => verb.run(cx),
            Verb::Build(verb) => verb.run(cx),
            Verb::Graph(verb) => verb.run(cx),
        }
    }
}
