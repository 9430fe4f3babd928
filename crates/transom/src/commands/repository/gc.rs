//! `transom repository gc`: what no reader can ask for goes away.

use serde::Serialize;
use transom_package::repository::{Collected, collect};

use super::{Place, advise, block_on, size};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Cell, Column, Row, Shown};

const EXAMPLES: &str = "\
Examples:
  transom repository gc --dry-run      What would go
  transom repository gc                Archives that nothing names, old metadata, what a crash left";

/// Remove what neither the metadata nor a package list names
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Gc {
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    place: Place,
}

impl Gc {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let collected = block_on(async {
            let editor = self.place.edit(cx).await?;
            let collected = collect(&editor, self.dry_run);
            editor.close();
            advise(collected)
        })?;
        let total: u64 = collected.iter().map(|gone| gone.bytes).sum();
        let count = collected.len();
        let rows: Vec<GoneRow> = collected.into_iter().map(GoneRow).collect();
        cx.out.list(&rows)?;
        if count > 0 {
            let verb = if self.dry_run {
                "would remove"
            } else {
                "removed"
            };
            cx.out
                .remark(&format!("{verb} {count} files, {}", size(total)));
        }
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct GoneRow(Collected);

impl Row for GoneRow {
    const PLURAL: &'static str = "files that nobody needs";

    fn columns() -> &'static [Column] {
        const { &[Column::new("PATH"), Column::new("SIZE")] }
    }

    fn cells(&self, _shown: Shown) -> Vec<Cell> {
        vec![Cell::new(&self.0.path), Cell::new(size(self.0.bytes))]
    }

    fn name(&self) -> String {
        self.0.path.clone()
    }
}
