//! `transom package setup`: what a node does at every boot. It ends what was interrupted; on the first boot
//! after installation it fetches and activates what the installer asked for.

use anyhow::Context as _;
use camino::Utf8PathBuf;
use transom_host::files::{FileError, Files as _, Native, path};
use transom_model::package::PackageId;
use transom_package::node::Node;
use transom_package::repository::PackageListId;

use super::activate;
use super::fetching::{self, RepositoryOptions};
use super::node::{NodeOptions, SwitchOptions, advised};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// Made by the installer, removed when the node is set up.
const MARKER: &str = "bootstrap";

/// A flag file has no reason to be larger.
const LIMIT: u64 = 4 << 20;

const EXAMPLES: &str = "\
Examples:
  transom package setup

Reads setup-flags/{repository-url,active.json,cluster-package-list} in the configuration folder. Without
the marker file `bootstrap` below the root there is nothing to install, and only what an interrupted
command left is put right.";

/// Finish what was interrupted, and install what the installer asked for
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Setup {
    #[command(flatten)]
    switch: SwitchOptions,

    #[command(flatten)]
    repository: RepositoryOptions,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

impl Setup {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        let marker = node.places().in_root(MARKER);
        let is_first = Native.metadata(&marker).is_ok();
        if !is_first {
            if self.switch.dry_run {
                return Ok(Exit::Success);
            }
            let services = self.node.services(cx);
            let _session = self.node.begin(cx, &node, services.as_ref())?;
            return Ok(Exit::Success);
        }
        refuse_late_configuration(&node)?;
        let ids = self.wanted(cx, &node)?;
        if !self.switch.dry_run {
            // Before anything is wanted by it: the next boot starts what is active then.
            let services = self.node.services(cx);
            let session = self.node.begin(cx, &node, services.as_ref())?;
            advised(session.write_target())?;
        }
        let exit = activate::run(cx, &self.node, &self.switch, |node| {
            node.plan_activation(&ids)
        })?;
        if exit == Exit::Success && !self.switch.dry_run {
            Native.remove_file(&marker)?;
        }
        Ok(exit)
    }

    /// What is to be active, all of it on the node.
    fn wanted(&self, cx: &Context, node: &Node) -> anyhow::Result<Vec<PackageId>> {
        let mut ids: Vec<PackageId> = match flag(node, "active.json")? {
            Some(text) => serde_json::from_str(&text).with_context(|| {
                format!(
                    "{} is no list of package ids",
                    flag_file(node, "active.json")
                )
            })?,
            None => node
                .active()?
                .map(|active| active.ids())
                .unwrap_or_default(),
        };
        let list = flag(node, "cluster-package-list")?;
        let url = flag(node, "repository-url")?;
        let missing = |ids: &[PackageId]| -> anyhow::Result<bool> {
            for id in ids {
                if !node.contains(id)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        if list.is_none() && !missing(&ids)? {
            return Ok(ids);
        }
        let url = url
            .with_context(|| {
                let file = flag_file(node, "repository-url");
                format!("packages are missing, and {file} does not say where they are")
            })
            .hint("write the repository's address into that file")?;
        let repository = self.repository.open(cx, node, url.trim())?;
        if let Some(list) = list {
            let list: PackageListId = list.trim().parse().with_context(|| {
                format!(
                    "{} is no id of a package list",
                    flag_file(node, "cluster-package-list")
                )
            })?;
            ids.extend(repository.package_list(&list)?);
        }
        ids.sort();
        ids.dedup();
        if self.switch.dry_run {
            return Ok(ids);
        }
        let fetched = repository.download(cx, node, &ids)?;
        let services = self.node.services(cx);
        let session = self.node.begin(cx, node, services.as_ref())?;
        fetching::store(cx, &session, fetched)?;
        Ok(ids)
    }
}

/// Values that are known only on the node belong to the installation, which is not there yet.
fn refuse_late_configuration(node: &Node) -> anyhow::Result<()> {
    match flag(node, "late-config.yaml")? {
        None => Ok(()),
        Some(_) => Err(anyhow::anyhow!(
            "{} is not supported yet",
            flag_file(node, "late-config.yaml")
        ))
        .hint("leave it out; see docs/compatibility.md"),
    }
}

fn flag_file(node: &Node, name: &str) -> Utf8PathBuf {
    let places = node.places();
    let folder = path::join(places.os, &places.config_dir, "setup-flags");
    path::join(places.os, &folder, name)
}

fn flag(node: &Node, name: &str) -> anyhow::Result<Option<String>> {
    let file = flag_file(node, name);
    match Native.read(&file, LIMIT) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).with_context(|| format!("{file} is not text"))?;
            Ok(Some(text))
        }
        Err(FileError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
