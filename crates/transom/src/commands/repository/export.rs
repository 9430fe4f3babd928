//! `transom repository export`: one file for a place without a network.

use camino::Utf8PathBuf;
use transom_model::Os;
use transom_package::repository::{Entry, PackageListId, Selection, export};

use super::{Place, advise_bundle, block_on, size};
use crate::context::Context;
use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  transom repository export site.bundle                        Everything, for both systems
  transom repository export --os windows site.bundle           Packages for Windows only
  transom repository export --package-list 8a… site.bundle     What one package list names";

/// Write an offline bundle
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    /// The file to write
    #[arg(value_name = "BUNDLE")]
    bundle: Utf8PathBuf,

    /// Only packages for this system; can be repeated
    #[arg(long, value_name = "SYSTEM")]
    os: Vec<Os>,

    /// Only packages of this list; can be repeated
    #[arg(long = "package-list", value_name = "ID")]
    package_lists: Vec<PackageListId>,

    #[command(flatten)]
    place: Place,
}

impl Export {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let selection = Selection {
            systems: self.os,
            lists: self.package_lists,
        };
        let bundle = camino::absolute_utf8(&self.bundle)?;
        let exported = block_on(async {
            let editor = self.place.edit(cx).await?;
            let task = cx.progress.start("exporting");
            let copied = |entry: &Entry| task.step(&entry.path());
            let exported = export(&editor, &selection, &bundle, &copied);
            editor.close();
            advise_bundle(exported)
        })?;
        cx.out.remark(&format!(
            "wrote {bundle}: packages: {}, package lists: {}, {}",
            exported.packages,
            exported.lists,
            size(exported.bytes)
        ));
        Ok(Exit::Success)
    }
}
