//! `transom server keys retire`: the end of all keys but the newest.

use transom_api::server::{KeyCare, Retirement};

use super::{DataFolder, Purpose, explained, options, word};
use crate::commands::server::runtime;
use crate::context::Context;
use crate::failure::Exit;
use crate::settings::server::StoreName;

/// Forget all keys but the newest
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom server keys retire secrets --dry-run\n  transom server keys retire secrets\n  transom server keys retire tokens --data-dir /srv/transom\n\nThe server must not run. Secrets are encrypted with the newest key first, and the keys stay if that fails.\nTokens and certificates that an older key signed are good no more. A backup from before needs the old keys."
)]
pub(super) struct Retire {
    /// What the keys are for
    #[arg(value_enum)]
    purpose: Purpose,

    #[command(flatten)]
    data: DataFolder,

    /// Where the server keeps its objects, if it is told by a flag [default: that of the configuration]
    #[arg(long, value_name = "STORE")]
    store: Option<StoreName>,

    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Retire {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let options = options(cx, &self.data, self.store)?;
        let purpose = self.purpose.key();
        let care = explained(KeyCare::open(&options))?;
        let of = word(purpose);
        if self.dry_run {
            for id in explained(care.older(purpose))? {
                cx.out.remark(&format!("{id} for {of} would be forgotten"));
            }
            return Ok(Exit::Success);
        }
        let Retirement { ids, sealed } = {
            let _task = cx.progress.start("retiring keys");
            explained(runtime()?.block_on(care.retire(purpose)))?
        };
        if sealed > 0 {
            cx.out.remark(&format!(
                "{sealed} secrets were encrypted with the newest key"
            ));
        }
        for id in &ids {
            cx.out.remark(&format!("{id} for {of} is forgotten"));
        }
        if ids.is_empty() {
            cx.out.remark(&format!("there is one key for {of} only"));
        }
        Ok(Exit::Success)
    }
}
