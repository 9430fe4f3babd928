//! `transom package fetch` and `add`: packages come to this node. Neither makes anything active.

use anyhow::Context as _;
use camino::Utf8PathBuf;
use transom_model::package::PackageId;
use transom_package::node::Added;
use transom_package::repository::Identity;

use super::fetching::{self, RepositoryOptions};
use super::node::{NodeOptions, absolute};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

const FETCH_EXAMPLES: &str = "\
Examples:
  transom package fetch --repository-url https://packages.example.org etcd--1f0c…
  transom package fetch --repository-url ./repository --trusted-root ./repository/root.json etcd--1f0c…

What is there already is left alone. Downloads go on where they broke off, and are checked before
anything is unpacked.";

const ADD_EXAMPLES: &str = "\
Examples:
  transom package add etcd--1f0c….tar.zst
  transom package add --unsigned mesos--0.22.0.tar.xz    One that DC/OS made";

/// Fetch packages from a repository
#[derive(Debug, clap::Args)]
#[command(after_help = FETCH_EXAMPLES)]
pub(super) struct Fetch {
    /// Packages by id
    #[arg(value_name = "ID", required = true)]
    ids: Vec<PackageId>,

    /// The repository: an address or a folder
    #[arg(long, value_name = "URL")]
    repository_url: String,

    /// Say what would be fetched, and fetch nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    repository: RepositoryOptions,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

/// Add a package from an archive
#[derive(Debug, clap::Args)]
#[command(after_help = ADD_EXAMPLES)]
pub(super) struct Add {
    /// The archive
    #[arg(value_name = "ARCHIVE")]
    archive: Utf8PathBuf,

    /// Accept an archive without a manifest, named by its id, as DC/OS makes them
    #[arg(long)]
    unsigned: bool,

    /// Say what would be added, and add nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

impl Fetch {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        if self.dry_run {
            for id in &self.ids {
                if !node.contains(id)? {
                    cx.out.write(&format!("{id}\n"))?;
                }
            }
            return Ok(Exit::Success);
        }
        let repository = self.repository.open(cx, &node, &self.repository_url)?;
        let fetched = repository.download(cx, &node, &self.ids)?;
        let services = self.node.services(cx);
        let session = self.node.begin(cx, &node, services.as_ref())?;
        fetching::store(cx, &session, fetched)?;
        for id in &self.ids {
            self.node.remark(cx, &format!("fetched {id}"));
        }
        Ok(Exit::Success)
    }
}

impl Add {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        let archive = absolute(&self.archive)?;
        let identity =
            Identity::of(&archive).with_context(|| format!("{archive} is not a package"))?;
        if !identity.has_manifest && !self.unsigned {
            return Err(anyhow::anyhow!(
                "{archive} has no manifest: nothing proves what is in it"
            ))
            .hint("if it is one that DC/OS made, and you trust it, say `--unsigned`");
        }
        let id = identity.id;
        if self.dry_run {
            let is_there = node.contains(&id)?;
            let what = if is_there {
                "is there already"
            } else {
                "would be added"
            };
            cx.out.write(&format!("{id} {what}\n"))?;
            return Ok(Exit::Success);
        }
        let services = self.node.services(cx);
        let session = self.node.begin(cx, &node, services.as_ref())?;
        let task = cx.progress.start(&format!("unpacking {id}"));
        let added = fetching::add_archive(&session, &id, &archive, !identity.has_manifest)?;
        drop(task);
        match added {
            Added::Now => self.node.remark(cx, &format!("added {id}")),
            Added::Already => self.node.remark(cx, &format!("{id} is there already")),
        }
        Ok(Exit::Success)
    }
}
