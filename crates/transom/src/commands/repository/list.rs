//! `transom repository list`: what a repository has.

use serde::Serialize;
use transom_model::{Arch, Os};
use transom_package::repository::{Entry, Overview};

use super::{Place, advise_read, block_on, downloader, size};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Cell, Column, Row, Shown};

const EXAMPLES: &str = "\
Examples:
  transom repository list                  All packages and package lists
  transom repository list --os windows     Those for Windows
  transom repository list -o wide          With digests and places";

/// List packages and package lists
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct List {
    #[command(flatten)]
    place: Place,

    /// Only packages for this system
    #[arg(long, value_name = "SYSTEM")]
    os: Option<Os>,
}

impl List {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let folder = self.place.folder()?;
        let overview =
            block_on(async { advise_read(Overview::read(&folder, &downloader()?).await) })?;
        let rows: Vec<EntryRow> = overview
            .entries
            .iter()
            .filter(|entry| match entry {
                Entry::Package(package) => self.os.is_none_or(|os| os == package.os),
                Entry::List(_) => self.os.is_none(),
            })
            .map(EntryRow::new)
            .collect();
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}

/// Something that a repository has.
#[derive(Serialize)]
pub(super) struct EntryRow {
    id: String,
    kind: &'static str,
    os: Option<Os>,
    arch: Option<Arch>,
    /// Nobody vouched for it.
    unsigned: bool,
    length: u64,
    sha256: String,
    path: String,
}

impl EntryRow {
    pub(super) fn new(entry: &Entry) -> Self {
        let row = |id: String, kind, os, arch, unsigned| Self {
            id,
            kind,
            os,
            arch,
            unsigned,
            length: entry.length(),
            sha256: entry.sha256().to_owned(),
            path: entry.path(),
        };
        match entry {
            Entry::Package(package) => row(
                package.id.to_string(),
                "package",
                Some(package.os),
                package.arch,
                package.unsigned,
            ),
            Entry::List(list) => row(
                list.id.to_string(),
                "package-list",
                None,
                None,
                list.unsigned,
            ),
        }
    }
}

impl Row for EntryRow {
    const PLURAL: &'static str = "packages";

    fn columns() -> &'static [Column] {
        const {
            &[
                Column::new("ID"),
                Column::new("KIND"),
                Column::new("OS"),
                Column::wide("ARCH"),
                Column::new("ORIGIN"),
                Column::new("SIZE"),
                Column::wide("SHA-256"),
                Column::wide("PATH"),
            ]
        }
    }

    fn cells(&self, _shown: Shown) -> Vec<Cell> {
        let origin = if self.unsigned { "unsigned" } else { "known" };
        vec![
            Cell::new(&self.id),
            Cell::new(self.kind),
            Cell::optional(self.os.map(Os::as_str)),
            Cell::optional(self.arch.map(Arch::as_str)),
            Cell::new(origin),
            Cell::new(size(self.length)),
            Cell::new(&self.sha256),
            Cell::new(&self.path),
        ]
    }

    fn name(&self) -> String {
        self.id.clone()
    }
}

/// What happened to something.
#[derive(Serialize)]
pub(super) struct ChangeRow {
    #[serde(flatten)]
    entry: EntryRow,
    state: &'static str,
}

impl ChangeRow {
    pub(super) fn new(entry: &Entry, state: &'static str) -> Self {
        Self {
            entry: EntryRow::new(entry),
            state,
        }
    }
}

impl Row for ChangeRow {
    const PLURAL: &'static str = EntryRow::PLURAL;

    fn columns() -> &'static [Column] {
        const {
            &[
                Column::new("ID"),
                Column::new("KIND"),
                Column::new("OS"),
                Column::wide("ARCH"),
                Column::new("ORIGIN"),
                Column::new("SIZE"),
                Column::wide("SHA-256"),
                Column::wide("PATH"),
                Column::new("STATE"),
            ]
        }
    }

    fn cells(&self, shown: Shown) -> Vec<Cell> {
        let mut cells = self.entry.cells(shown);
        cells.push(Cell::new(self.state));
        cells
    }

    fn name(&self) -> String {
        self.entry.name()
    }
}
