//! `transom package graph`: who requires whom.

use serde::Serialize;
use transom_package::tree;

use super::source::{Machine, SourceOptions, accept};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Document, Shown};

const EXAMPLES: &str = "\
Examples:
  transom package graph                             As text
  transom package graph -o json                     For programs
  transom package graph --format dot | dot -Tpdf    For Graphviz
  transom package graph --format svg > tree.svg     A picture, with no other program";

/// How a graph is drawn.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Drawing {
    /// Lines of text
    Text,
    /// The language of Graphviz
    Dot,
    /// A picture
    Svg,
}

/// Show which packages of a tree require which
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Graph {
    #[command(flatten)]
    source: SourceOptions,

    /// How it is drawn; `-o json` and `-o yaml` print it as data instead
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: Drawing,
}

impl Graph {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let machine = Machine::new(&self.source)?;
        let folder = machine.read();
        let resolved = folder.resolve(&self.source.variant(), &machine.surroundings());
        let tree = match accept(cx, resolved)? {
            Ok(tree) => tree,
            Err(exit) => return Ok(exit),
        };
        cx.out.document(&Drawn {
            graph: tree::Graph::of(&tree.packages),
            drawing: self.format,
        })?;
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
struct Drawn {
    #[serde(flatten)]
    graph: tree::Graph,
    #[serde(skip)]
    drawing: Drawing,
}

impl Document for Drawn {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        match self.drawing {
            Drawing::Text => self.graph.render_text(),
            Drawing::Dot => self.graph.render_dot(),
            Drawing::Svg => self.graph.render_svg(),
        }
    }

    fn names(&self) -> Vec<String> {
        self.graph
            .packages
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}
