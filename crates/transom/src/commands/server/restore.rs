//! `transom server restore`: a store from a backup.

use camino::Utf8PathBuf;
use transom_api::server::{StoreError, restore_store};

use super::{DataFolder, runtime};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// Make the local store from a backup
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom server restore /backup/transom-2026-11-16 --data-dir /srv/transom\n\nThe folder must not have a store yet. Copy the saved folder pki beside it: without the old keys\nsecrets cannot be read, and nodes do not know the server."
)]
pub(super) struct Restore {
    /// A file that `transom server backup` wrote
    file: Utf8PathBuf,

    #[command(flatten)]
    data: DataFolder,
}

impl Restore {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let folder = self.data.state(cx);
        let revision = {
            let _task = cx.progress.start("restoring the store");
            runtime()?.block_on(restore_store(&self.file, &folder))
        };
        let revision = match revision {
            Err(error @ StoreError::NotEmpty { .. }) => {
                Err(error).hint(format!("move the old store away first: it is in {folder}"))?
            }
            other => other?,
        };
        cx.out
            .remark(&format!("{folder} is at revision {revision}"));
        Ok(Exit::Success)
    }
}
