//! `transom package active` and `list`: what is active, and what is there. One id a line, as pkgpanda
//! prints it, unless another form is asked for.

use serde::Serialize;
use transom_model::package::PackageId;
use transom_package::node::NodeError;

use super::node::{NodeOptions, advised};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Document, Shown};

/// Show the active packages of this node
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom package active\n  transom package active -o json")]
pub(super) struct Active {
    #[command(flatten)]
    pub(super) node: NodeOptions,
}

/// List the packages on this node, active or not
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom package list\n  transom package list -o json")]
pub(super) struct List {
    #[command(flatten)]
    pub(super) node: NodeOptions,
}

impl Active {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        // Nothing was ever active: that is no empty set.
        let active = advised(
            node.active()
                .and_then(|active| active.ok_or(NodeError::NothingActive)),
        )?;
        let mut ids = active.ids();
        ids.sort();
        cx.out.document(&Ids(ids))?;
        Ok(Exit::Success)
    }
}

impl List {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        let active = node
            .active()?
            .map(|active| active.ids())
            .unwrap_or_default();
        let packages = node
            .packages()?
            .into_iter()
            .map(|id| Held {
                active: active.contains(&id),
                id,
            })
            .collect();
        cx.out.document(&Store(packages))?;
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Ids(Vec<PackageId>);

impl Document for Ids {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        self.0.iter().flat_map(|id| [id.as_str(), "\n"]).collect()
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Store(Vec<Held>);

#[derive(Serialize)]
struct Held {
    id: PackageId,
    active: bool,
}

impl Document for Store {
    /// Several versions of one name stand below it.
    fn text(&self, wide: bool, _shown: Shown) -> String {
        let mut text = String::new();
        for group in self
            .0
            .chunk_by(|left, right| left.id.name_str() == right.id.name_str())
        {
            let mark = |held: &Held| if wide && held.active { " (active)" } else { "" };
            match group {
                [one] => text.extend([one.id.as_str(), mark(one), "\n"]),
                several => {
                    text.extend([several[0].id.name_str(), ":\n"]);
                    for held in several {
                        text.extend(["  ", held.id.version_str(), mark(held), "\n"]);
                    }
                }
            }
        }
        text
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|held| held.id.to_string()).collect()
    }
}
