//! `transom reference`: pages for the documentation, generated from what the program itself uses.
//! Invariant: the same binary always prints the same bytes.

mod cli;
mod config;
mod environment;
mod kubernetes;
mod schema;

use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  transom reference cli > docs/reference/cli.md
  transom reference schema > docs/reference/transom.schema.json";

/// Print a generated reference page
#[derive(Debug, clap::Args)]
#[command(hide = true, after_help = EXAMPLES)]
pub(super) struct Reference {
    page: Page,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Page {
    /// Every command with its options, as Markdown
    Cli,
    /// The configuration file, as Markdown
    Config,
    /// Environment variables, as Markdown
    Environment,
    /// Kubernetes kinds and what works of them, as Markdown
    Kubernetes,
    /// The configuration file as a JSON schema
    Schema,
}

impl Reference {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let text = match self.page {
            Page::Cli => cli::render_page(),
            Page::Config => config::render_page(),
            Page::Environment => environment::render_page(),
            Page::Kubernetes => kubernetes::render_page(),
            Page::Schema => schema::render_schema()?,
        };
        cx.out.write(&text)?;
        Ok(Exit::Success)
    }
}

/// A field of a Markdown table; a bar would end it early.
fn field(text: &str) -> String {
    text.replace('|', r"\|")
}
