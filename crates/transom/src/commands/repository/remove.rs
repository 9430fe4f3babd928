//! `transom repository remove`: packages leave the metadata; their archives go with `gc`.

use transom_model::Os;
use transom_model::package::PackageId;
use transom_package::repository::Entry;

use super::keys::Keys;
use super::list::ChangeRow;
use super::{Place, Validity, advise, block_on};
use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  transom repository remove web--1                 For all systems
  transom repository remove --os windows web--1    For one
  transom repository gc                            Then take its archives away, too";

/// Take packages out
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Remove {
    /// Packages, such as web--1
    #[arg(required = true, value_name = "ID")]
    ids: Vec<PackageId>,

    /// Only for this system
    #[arg(long, value_name = "SYSTEM")]
    os: Option<Os>,

    /// Even if a package list names them
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    keys: Keys,

    #[command(flatten)]
    validity: Validity,
}

impl Remove {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let keys = self.keys.load(cx, &self.place.folder()?)?;
        let removed = block_on(async {
            let mut editor = self.place.edit(cx).await?;
            let expiry = self.validity.expiry();
            let removed = editor
                .remove(&self.ids, self.os, self.force, &keys, expiry)
                .await;
            editor.close();
            advise(removed)
        })?;
        let rows: Vec<ChangeRow> = removed
            .into_iter()
            .map(|package| ChangeRow::new(&Entry::Package(package), "removed"))
            .collect();
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}
