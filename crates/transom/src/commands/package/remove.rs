//! `transom package remove`, `gc` and `uninstall`: what takes software away from a node.

use serde::Serialize;
use transom_model::package::PackageId;
use transom_package::node::{Collected, Collection, Removed};

use super::node::{NodeOptions, advised};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::output::{Document, Shown};

/// Remove packages that nothing needs
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom package remove etcd--1f0c…\n\nOne that is active, or part of a kept generation, is refused; one that is not there is fine."
)]
pub(super) struct Remove {
    /// Packages by id
    #[arg(value_name = "ID", required = true)]
    ids: Vec<PackageId>,

    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

/// Remove old generations, and packages that no generation has
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom package gc\n  transom package gc --keep 1 --dry-run\n\nThe active generation, the one before it, pinned ones and those in use always stay."
)]
pub(super) struct Collect {
    /// How many of the newest generations stay
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    keep: usize,

    /// Leave packages alone
    #[arg(long)]
    keep_packages: bool,

    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

/// Stop the services and remove all software of this node
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom package uninstall --dry-run\n  transom package uninstall\n\nWhat packages keep as their state stays."
)]
pub(super) struct Uninstall {
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

impl Remove {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        if self.dry_run {
            for id in &self.ids {
                if advised(node.plan_removal(id))? {
                    cx.out.write(&format!("{id}\n"))?;
                }
            }
            return Ok(Exit::Success);
        }
        let services = self.node.services(cx);
        let session = self.node.begin(cx, &node, services.as_ref())?;
        for id in &self.ids {
            match advised(session.remove(id))? {
                Removed::Now => self.node.remark(cx, &format!("removed {id}")),
                Removed::Absent => self.node.remark(cx, &format!("{id} was not here")),
                Removed::Later { why } => self
                    .node
                    .remark(cx, &format!("{id} is out of sight, and goes later: {why}")),
            }
        }
        Ok(Exit::Success)
    }
}

impl Collect {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        let collection = Collection {
            keep: self.keep,
            packages: !self.keep_packages,
            spare: std::collections::BTreeSet::new(),
        };
        let collected = if self.dry_run {
            advised(node.plan_collection(&collection))?
        } else {
            let services = self.node.services(cx);
            let session = self.node.begin(cx, &node, services.as_ref())?;
            advised(session.collect(&collection))?
        };
        cx.out.document(&Gone(&collected))?;
        Ok(Exit::Success)
    }
}

impl Uninstall {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        let root = node.places().root.clone();
        if self.dry_run {
            let generations = node.generations()?.len();
            let packages = node.packages()?.len();
            cx.out.write(&format!(
                "{root}: {generations} generations and {packages} packages would be removed\n"
            ))?;
            return Ok(Exit::Success);
        }
        let services = self.node.services(cx);
        let session = self.node.begin(cx, &node, services.as_ref())?;
        let uninstalled = advised(session.uninstall(services.as_ref()))
            .hint(format!("is {root} the right root?"))?;
        for remark in &uninstalled.remarks {
            self.node.remark(cx, remark);
        }
        for path in &uninstalled.left {
            self.node
                .remark(cx, &format!("{path} is not ours, and stays"));
        }
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Gone<'a>(&'a Collected);

impl Document for Gone<'_> {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        let mut text = String::new();
        for number in &self.0.generations {
            text.push_str("generation ");
            text.push_str(&number.to_string());
            text.push('\n');
        }
        for id in &self.0.packages {
            text.extend([id.as_str(), "\n"]);
        }
        for kept in &self.0.in_use {
            text.extend([&kept.what, " stays: ", &kept.why, "\n"]);
        }
        text
    }

    fn names(&self) -> Vec<String> {
        let generations = self.0.generations.iter().map(ToString::to_string);
        generations
            .chain(self.0.packages.iter().map(ToString::to_string))
            .collect()
    }
}
