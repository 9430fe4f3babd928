//! `transom server backup`: the whole store at one revision, in one file.

use camino::Utf8PathBuf;
use transom_api::server::{StoreError, backup_store};

use super::{DataFolder, runtime};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// Write everything in the local store to a file
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom server backup /backup/transom-$(date +%F)\n\nSecrets in the file are encrypted; the keys to them are in the folder pki of the data folder.\nKeep a copy of that folder too, somewhere else.\n\nA server that runs has the store open: back it up through its API with\n  kubectl get --raw /transom/backup > FILE"
)]
pub(super) struct Backup {
    /// The file to write; it must not exist
    file: Utf8PathBuf,

    #[command(flatten)]
    data: DataFolder,
}

impl Backup {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if self.file.exists() {
            let exists: anyhow::Result<Exit> = Err(anyhow::anyhow!("`{}` exists", self.file));
            return exists.hint("choose another name, or move the old backup away");
        }
        let folder = self.data.state(cx);
        // Opening a store makes one where there is none: a backup of nothing would look like one of everything.
        if !folder.exists() {
            let absent: anyhow::Result<Exit> =
                Err(anyhow::anyhow!("there is no store in `{folder}`"));
            return absent
                .exit(Exit::NotFound)
                .hint("say with --data-dir where the server keeps its things");
        }
        let revision = {
            let _task = cx.progress.start("writing the backup");
            runtime()?.block_on(backup_store(&folder, &self.file))
        };
        let revision = match revision {
            Err(error @ StoreError::InUse { .. }) => Err(error).hint(
                "stop the server first, or back it up through its API: kubectl get --raw /transom/backup",
            )?,
            other => other?,
        };
        cx.out.remark(&format!(
            "{} holds the store at revision {revision}",
            self.file
        ));
        Ok(Exit::Success)
    }
}
