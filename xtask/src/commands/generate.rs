//! `cargo xtask generate`: the table of Kubernetes' types, and reference pages written by the program that
//! they describe, so that they cannot say something else.

use anyhow::{Context as _, Result, bail};

use super::schema;
use crate::console;
use crate::run;
use crate::workspace::Workspace;

/// What `transom reference <topic>` prints, and where it is kept.
const PAGES: [(&str, &str); 5] = [
    ("cli", "docs/reference/cli.md"),
    ("config", "docs/reference/configuration.md"),
    ("environment", "docs/reference/environment.md"),
    ("kubernetes", "docs/reference/kubernetes.md"),
    ("schema", "docs/reference/transom.schema.json"),
];

/// Write the table of types, the reference pages and the schema of the configuration file
#[derive(Debug, clap::Args)]
pub(crate) struct Generate {
    /// Change nothing; fail if a file is not what would be written
    #[arg(long)]
    check: bool,
    /// Write the table of types alone, which needs nothing to be built
    #[arg(long, conflicts_with = "check")]
    types: bool,
}

impl Generate {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        if self.check {
            return check(workspace);
        }
        // First, since the program that writes the pages is built with it.
        write_types(workspace)?;
        if self.types {
            return Ok(());
        }
        write_pages(workspace)
    }
}

fn write_types(workspace: &Workspace) -> Result<()> {
    fs_err::write(workspace.root.join(schema::PATH), schema::table(workspace)?)?;
    console::line(&format!("  wrote {}", schema::PATH));
    Ok(())
}

fn write_pages(workspace: &Workspace) -> Result<()> {
    for (path, text) in pages(workspace)? {
        let place = workspace.root.join(path);
        if let Some(folder) = place.parent() {
            fs_err::create_dir_all(folder)?;
        }
        fs_err::write(&place, text)?;
        console::line(&format!("  wrote {path}"));
    }
    Ok(())
}

/// Fails if a page in the checkout is not the one that the program would write.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let table = (schema::PATH, schema::table(workspace)?);
    let drifted: Vec<_> = pages(workspace)?
        .into_iter()
        .chain([table])
        .filter(|(path, text)| {
            let there = fs_err::read_to_string(workspace.root.join(path));
            !there.is_ok_and(|there| there == *text)
        })
        .map(|(path, _)| path)
        .collect();
    if drifted.is_empty() {
        return Ok(());
    }
    bail!(
        "not what the program says: {}; run `cargo xtask generate`",
        drifted.join(", ")
    )
}

fn pages(workspace: &Workspace) -> Result<Vec<(&'static str, String)>> {
    // Exactly what the tests build, so that CI builds it once.
    let mut build = workspace.cargo();
    build.args(["build", "--workspace", "--bins", "--tests"]);
    run::visibly(&mut build)?;
    PAGES
        .into_iter()
        .map(|(topic, path)| {
            let mut transom = workspace.command(workspace.transom());
            let text = run::output(transom.args(["reference", topic]))
                .with_context(|| format!("could not get the text for {path}"))?;
            if text.trim().is_empty() {
                bail!("`transom reference {topic}` printed nothing");
            }
            Ok((path, text))
        })
        .collect()
}
