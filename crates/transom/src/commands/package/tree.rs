//! `transom package tree`: the packages of a source tree with their ids. Its JSON form is a contract for
//! tools: fields are added, never changed.

use serde::Serialize;
use transom_package::tree::{self, TreePackage};

use super::source::{Machine, SourceOptions, accept, refuse};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Cell, Document, Shown, render_table};

const EXAMPLES: &str = "\
Examples:
  transom package tree                                The default tree around this folder
  transom package tree --packages dcos/packages       Another one
  transom package tree --variant windows -o json      One of its variants, for programs

Without --variant all trees of the folder are checked, and the default one is shown. Mistakes are
shown all at once, with file and line; the command then ends with 1.";

/// Show the packages of a source tree and their ids, in build order
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Tree {
    #[command(flatten)]
    source: SourceOptions,
}

impl Tree {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let machine = Machine::new(&self.source)?;
        let folder = machine.read();
        let variant = self.source.variant();
        let resolved = folder.resolve(&variant, &machine.surroundings());
        let tree = match accept(cx, resolved)? {
            Ok(tree) => tree,
            Err(exit) => return Ok(exit),
        };
        if self.source.variant.is_none() {
            let faults = folder.faults_of_other_trees(&variant);
            if !faults.is_empty() {
                return refuse(cx, &faults);
            }
        }
        cx.out.document(&Shape::of(&tree))?;
        Ok(Exit::Success)
    }
}

/// A tree as it is printed.
#[derive(Serialize)]
struct Shape {
    variant: String,
    bootstrap: String,
    packages: Vec<Member>,
}

#[derive(Serialize)]
struct Member {
    name: String,
    variant: String,
    id: String,
    requires: Vec<String>,
    os: String,
}

impl Shape {
    fn of(tree: &tree::Tree) -> Self {
        Self {
            variant: tree.variant.to_string(),
            bootstrap: tree.bootstrap.clone(),
            packages: tree.packages.iter().map(Member::of).collect(),
        }
    }
}

impl Member {
    fn of(package: &TreePackage) -> Self {
        Self {
            name: package.recipe.name.to_string(),
            variant: package.recipe.variant.to_string(),
            id: package.id.to_string(),
            // A tree has each package in one variant, so names tell all.
            requires: package
                .requires
                .iter()
                .map(|id| id.name_str().to_owned())
                .collect(),
            os: package.recipe.os.to_string(),
        }
    }
}

impl Document for Shape {
    fn text(&self, wide: bool, shown: Shown) -> String {
        let titles: &[&str] = if wide {
            &["PACKAGE", "VARIANT", "OS", "ID", "REQUIRES"]
        } else {
            &["PACKAGE", "VARIANT", "OS", "VERSION", "REQUIRES"]
        };
        let rows: Vec<Vec<Cell>> = self
            .packages
            .iter()
            .map(|member| {
                let version = member.id.rsplit("--").next().unwrap_or_default();
                let id = if wide { member.id.as_str() } else { version };
                let requires = member.requires.join(",");
                vec![
                    Cell::new(&member.name),
                    Cell::new(&member.variant),
                    Cell::new(&member.os),
                    Cell::new(id),
                    Cell::optional((!requires.is_empty()).then_some(requires)),
                ]
            })
            .collect();
        let table = render_table(titles, &rows, shown);
        format!("{table}\nbootstrap {}\n", self.bootstrap)
    }

    fn names(&self) -> Vec<String> {
        self.packages
            .iter()
            .map(|member| member.id.clone())
            .collect()
    }
}
