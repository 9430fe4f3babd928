//! `transom package id`: the ids that packages would have, with no tree needed.

use serde::Serialize;
use transom_model::package::PackageName;
use transom_package::tree::{Key, TreePackage};

use super::source::{Machine, SourceOptions, accept};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Cell, Column, Row, Shown};

const EXAMPLES: &str = "\
Examples:
  transom package id                        Every package of the folder
  transom package id etcd containerd        These
  transom package id etcd --variant windows A variant of it
  transom package id etcd -o json           With all that the id is made of";

/// Show the ids of packages, and what they are made of
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Id {
    /// Packages by name [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<PackageName>,

    #[command(flatten)]
    source: SourceOptions,
}

impl Id {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let machine = Machine::new(&self.source)?;
        let folder = machine.read();
        let variant = self.source.variant();
        let names = if self.names.is_empty() {
            folder
                .packages()
                .filter(|(_, variants)| variants.contains(&&variant))
                .filter_map(|(name, _)| name.parse().ok())
                .collect()
        } else {
            self.names
        };
        let keys: Vec<Key> = names
            .into_iter()
            .map(|name| (name, variant.clone()))
            .collect();
        let resolved = folder.resolve_packages(&keys, &machine.surroundings());
        let packages = match accept(cx, resolved)? {
            Ok(packages) => packages,
            Err(exit) => return Ok(exit),
        };
        let rows: Vec<IdRow> = packages
            .iter()
            .filter(|package| {
                let recipe = &package.recipe;
                keys.contains(&(recipe.name.clone(), recipe.variant.clone()))
            })
            .map(IdRow::of)
            .collect();
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
struct IdRow {
    name: String,
    variant: String,
    id: String,
    build_ids: serde_json::Value,
}

impl IdRow {
    fn of(package: &TreePackage) -> Self {
        Self {
            name: package.recipe.name.to_string(),
            variant: package.recipe.variant.to_string(),
            id: package.id.to_string(),
            build_ids: package.build_ids.clone(),
        }
    }
}

impl Row for IdRow {
    const PLURAL: &'static str = "packages";

    fn columns() -> &'static [Column] {
        const COLUMNS: &[Column] = &[
            Column::new("PACKAGE"),
            Column::new("VARIANT"),
            Column::new("ID"),
        ];
        COLUMNS
    }

    fn cells(&self, _shown: Shown) -> Vec<Cell> {
        vec![
            Cell::new(&self.name),
            Cell::new(&self.variant),
            Cell::new(&self.id),
        ]
    }

    fn name(&self) -> String {
        self.id.clone()
    }
}
