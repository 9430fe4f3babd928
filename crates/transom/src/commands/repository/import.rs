//! `transom repository import`: a bundle becomes a mirror, after all of it was checked.

use camino::Utf8PathBuf;
use transom_package::repository::{Entry, TrustedRoot, import};

use super::list::EntryRow;
use super::{Place, advise_bundle, block_on, downloader, now};
use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  transom repository import --trusted-root root.json site.bundle     The first time: say whom to trust
  transom repository import --root-sha256 3b… site.bundle            The same by digest
  transom repository import site.bundle                              Later: what is there knows whom";

/// Take an offline bundle in, after all of it was checked
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Import {
    /// The bundle
    #[arg(value_name = "BUNDLE")]
    bundle: Utf8PathBuf,

    /// A root of the repository that came by a way you trust
    #[arg(long, value_name = "FILE", conflicts_with = "root_sha256")]
    trusted_root: Option<Utf8PathBuf>,

    /// The SHA-256 digest of a root of the repository
    #[arg(long, value_name = "DIGEST")]
    root_sha256: Option<String>,

    #[command(flatten)]
    place: Place,
}

impl Import {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let root = match (self.trusted_root, self.root_sha256) {
            (Some(file), _) => Some(TrustedRoot::File(file)),
            (None, Some(digest)) => Some(TrustedRoot::Sha256(digest)),
            (None, None) => None,
        };
        let folder = self.place.folder()?;
        let imported = block_on(async {
            let task = cx.progress.start("importing");
            let copied = |entry: &Entry| task.step(&entry.path());
            let downloader = downloader()?;
            let imported = import(
                &self.bundle,
                &folder,
                &downloader,
                root.as_ref(),
                now(cx),
                &copied,
            );
            advise_bundle(imported.await)
        })?;
        let rows: Vec<EntryRow> = imported.entries.iter().map(EntryRow::new).collect();
        cx.out.list(&rows)?;
        cx.out.remark(&format!(
            "{} new, {} there already",
            imported.entries.len() - imported.already,
            imported.already
        ));
        Ok(Exit::Success)
    }
}
