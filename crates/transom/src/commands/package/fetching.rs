//! How packages come to a node: from a signed repository, or from one without signatures if people say so.
//! Invariant: nothing is held locked while the network is waited for.

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{Files as _, Native, path};
use transom_model::Os;
use transom_model::package::PackageId;
use transom_package::archive::{Unpack, unpack};
use transom_package::download::{Downloader, Event, Policy};
use transom_package::node::{Added, Node, Session};
use transom_package::repository::{
    PackageListId, PlainRepository, RepositoryClient, RepositoryError, TrustedRoot, location,
};

use super::node::advised;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::progress::Task;

/// Below the node's root: archives that are being fetched.
pub(super) const DOWNLOADS: &str = "downloads";

/// Below the node's root: what was last seen of repositories.
pub(super) const SEEN: &str = "repositories";

/// Where the installer puts the root of trust.
const TRUSTED: [&str; 2] = ["repository", "root.json"];

/// Unpacked, an archive is rarely larger than this many times itself.
const EXPANSION: u64 = 4;

/// Options that say where packages come from, and why they are trusted.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct RepositoryOptions {
    /// The file that says whose signatures to trust [default: repository/root.json in the
    /// configuration folder]
    #[arg(long, value_name = "FILE")]
    trusted_root: Option<Utf8PathBuf>,

    /// The same by the SHA-256 digest of that file
    #[arg(long, value_name = "DIGEST", conflicts_with = "trusted_root")]
    root_sha256: Option<String>,

    /// Take what the server sends: the repository has no signatures
    #[arg(long, conflicts_with_all = ["trusted_root", "root_sha256"])]
    unsigned: bool,
}

/// A repository that is open.
pub(super) struct Fetcher {
    runtime: tokio::runtime::Runtime,
    origin: Origin,
}

enum Origin {
    Signed(Box<RepositoryClient>),
    Plain(Box<PlainRepository>),
}

/// An archive on its way to the store.
pub(super) struct Fetched {
    id: PackageId,
    archive: Utf8PathBuf,
    unverified: bool,
}

impl RepositoryOptions {
    /// Opens a repository, and checks its metadata.
    pub(super) fn open(&self, cx: &Context, node: &Node, at: &str) -> anyhow::Result<Fetcher> {
        let base = location(at)
            .with_context(|| format!("`{at}` is neither an address nor a folder"))
            .exit(Exit::Usage)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let downloader = Downloader::new(Policy::default())?;
        let origin = if self.unsigned {
            cx.out.warn(&format!(
                "packages from {at} are not signed: nothing proves where they come from"
            ));
            Origin::Plain(Box::new(PlainRepository::unsigned(&downloader, &base)))
        } else {
            let seen = node.places().in_root(SEEN);
            let seen = path::join(node.places().os, &seen, &folder_name(base.as_str()));
            Native.create_dir_all(&seen)?;
            let root = self.root(node)?;
            let client = runtime
                .block_on(RepositoryClient::open(
                    &downloader,
                    &base,
                    &root,
                    &seen,
                    cx.out.shown().now,
                ))
                .map_err(|error| explain(error, at))?;
            Origin::Signed(Box::new(client))
        };
        Ok(Fetcher { runtime, origin })
    }

    fn root(&self, node: &Node) -> anyhow::Result<TrustedRoot> {
        if let Some(digest) = &self.root_sha256 {
            return Ok(TrustedRoot::Sha256(digest.clone()));
        }
        match &self.trusted_root {
            Some(file) => Ok(TrustedRoot::File(super::node::absolute(file)?)),
            None => {
                let places = node.places();
                let file = TRUSTED
                    .iter()
                    .fold(places.config_dir.clone(), |folder, name| {
                        path::join(places.os, &folder, name)
                    });
                if Native.metadata(&file).is_err() {
                    return Err(anyhow::anyhow!(
                        "this node trusts no repository: there is no {file}"
                    ))
                    .hint(
                        "name the repository's root with `--trusted-root`, or say `--unsigned` \
                             if it has no signatures",
                    );
                }
                Ok(TrustedRoot::File(file))
            }
        }
    }
}

impl Fetcher {
    /// The packages of a list.
    pub(super) fn package_list(&self, id: &PackageListId) -> anyhow::Result<Vec<PackageId>> {
        let packages = match &self.origin {
            Origin::Signed(client) => self.runtime.block_on(client.package_list(id)),
            Origin::Plain(plain) => self.runtime.block_on(plain.package_list(id)),
        };
        packages.map_err(|error| explain(error, "the repository"))
    }

    /// Downloads the archives of those packages that the node does not have.
    pub(super) fn download(
        &self,
        cx: &Context,
        node: &Node,
        ids: &[PackageId],
    ) -> anyhow::Result<Vec<Fetched>> {
        let folder = node.places().in_root(DOWNLOADS);
        Native.create_dir_all(&folder)?;
        let mut fetched = Vec::new();
        for id in ids {
            if !node.contains(id)? {
                fetched.push(self.one(cx, node, id, &folder)?);
            }
        }
        Ok(fetched)
    }

    fn one(
        &self,
        cx: &Context,
        node: &Node,
        id: &PackageId,
        folder: &Utf8Path,
    ) -> anyhow::Result<Fetched> {
        let os = node.places().os;
        let task = cx.progress.start(&format!("fetching {id}"));
        let listener = |event: Event| tell(&task, event);
        match &self.origin {
            Origin::Signed(client) => {
                let entry = client
                    .find(id, os)
                    .map_err(|error| explain(error, "the repository"))?;
                advised(node.ensure_space(entry.length.saturating_mul(1 + EXPANSION)))?;
                let archive = archive_of(os, folder, id);
                self.runtime
                    .block_on(client.fetch(id, os, &archive, &listener))
                    .map_err(|error| explain(error, "the repository"))?;
                Ok(Fetched {
                    id: id.clone(),
                    archive,
                    unverified: entry.unsigned,
                })
            }
            Origin::Plain(plain) => {
                let archive = archive_of(os, folder, id);
                self.runtime
                    .block_on(plain.fetch(id, &archive, &listener))
                    .map_err(|error| explain(error, "the repository"))?;
                Ok(Fetched {
                    id: id.clone(),
                    archive,
                    unverified: true,
                })
            }
        }
    }
}

/// Unpacks what was downloaded into the node's store.
pub(super) fn store(
    cx: &Context,
    session: &Session<'_>,
    fetched: Vec<Fetched>,
) -> anyhow::Result<()> {
    for one in fetched {
        let task = cx.progress.start(&format!("unpacking {}", one.id));
        add_archive(session, &one.id, &one.archive, one.unverified)?;
        drop(task);
    }
    sweep(session.node())
}

/// Removes the archives of packages that the store has: ours, and those of a command that was stopped before
/// it could. Whoever still waits to unpack one of them will find that its package is there.
fn sweep(node: &Node) -> anyhow::Result<()> {
    let places = node.places();
    let folder = places.in_root(DOWNLOADS);
    for id in node.packages()? {
        Native.remove_file(&archive_of(places.os, &folder, &id))?;
    }
    Ok(())
}

/// Where the archive of a package is while it is on its way.
fn archive_of(os: Os, folder: &Utf8Path, id: &PackageId) -> Utf8PathBuf {
    let name = format!("{}.archive", folder_name(id.as_str()));
    path::join(os, folder, &name)
}

/// Unpacks one archive into the node's store.
pub(super) fn add_archive(
    session: &Session<'_>,
    id: &PackageId,
    archive: &Utf8Path,
    unverified: bool,
) -> anyhow::Result<Added> {
    let wanted = Unpack {
        os: Some(session.node().places().os),
        unverified,
        ..Unpack::of(id)
    };
    advised(session.add_at(id, |destination| {
        unpack(session.node().files(), archive, destination, &wanted)?;
        Ok(())
    }))
}

fn tell(task: &Task, event: Event) {
    match event {
        Event::Progress { done, total } => {
            let done = done >> 10;
            task.step(&match total {
                Some(total) => format!("{done} of {} KiB", total >> 10),
                None => format!("{done} KiB"),
            });
        }
        Event::Retry { after, why } => {
            task.step(&format!("{why}; again in {} s", after.as_secs().max(1)));
        }
    }
}

/// Adds the way forward to what a repository refuses.
fn explain(error: RepositoryError, at: &str) -> anyhow::Error {
    let outcome: anyhow::Result<()> = Err(error).hint(format!(
        "see what is wrong with it with `transom repository verify`, run where {at} is made"
    ));
    match outcome {
        Err(error) => error,
        Ok(()) => anyhow::anyhow!("refused"),
    }
}

/// A name for a folder or file that stands for some text.
fn folder_name(text: &str) -> String {
    transom_package::hash::sha1_hex(text.as_bytes())
}
