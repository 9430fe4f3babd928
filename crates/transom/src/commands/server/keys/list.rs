//! `transom server keys list`: which keys there are, without a secret of any.

use jiff::Timestamp;
use serde::Serialize;
use transom_api::server::{KeyEntry, list_keys};

use super::{DataFolder, explained, word};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Cell, Column, Row, Shown};

/// List the keys of a server, the newest of each purpose first
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom server keys list\n  transom server keys list --data-dir /srv/transom -o json\n\nThe server may run. No secret of a key is shown."
)]
pub(super) struct List {
    #[command(flatten)]
    data: DataFolder,
}

impl List {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let keys = explained(list_keys(&self.data.path(cx)))?;
        let rows: Vec<KeyRow> = keys.into_iter().map(KeyRow::of).collect();
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}

#[derive(Debug, Serialize)]
struct KeyRow {
    purpose: &'static str,
    id: String,
    newest: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends: Option<Timestamp>,
}

impl KeyRow {
    fn of(key: KeyEntry) -> Self {
        Self {
            purpose: word(key.purpose),
            id: key.id,
            newest: key.is_newest,
            ends: key.ends,
        }
    }
}

impl Row for KeyRow {
    const PLURAL: &'static str = "keys";

    fn columns() -> &'static [Column] {
        const {
            &[
                Column::new("PURPOSE"),
                Column::new("ID"),
                Column::new("USE"),
                Column::new("ENDS"),
            ]
        }
    }

    fn cells(&self, shown: Shown) -> Vec<Cell> {
        let ends = self.ends.map(|time| {
            if time > shown.now {
                format!("in {}", crate::output::age(shown.now, time))
            } else {
                "over".to_owned()
            }
        });
        vec![
            Cell::new(self.purpose),
            Cell::new(&self.id),
            Cell::new(if self.newest { "newest" } else { "older" }),
            Cell::new(ends.as_deref().unwrap_or("never")),
        ]
    }

    fn name(&self) -> String {
        self.id.clone()
    }
}
