//! What the commands share that do kubectl's work: which kind is meant, where, which objects, and how they are asked
//! for. Invariant: nothing about a kind is known here; the server says what there is and how it is shown.

mod kinds;
mod manifest;
mod options;
mod pods;
mod reader;
mod report;
mod table;
mod words;

pub(crate) use kinds::{Kind, Kinds};
pub(crate) use manifest::{Files, Manifest, Stage, name_of, namespace_of};
pub(crate) use options::{Everywhere, Place, Selection};
pub(crate) use pods::{container_of, containers_of, each, pods_of, pods_with};
pub(crate) use reader::{Reader, version_of};
pub(crate) use report::{Report, together};
pub(crate) use table::{Growing, Table};
pub(crate) use words::{Target, targets};

use crate::failure::Exit;

/// Runs what a command does. One thread is enough: it waits most of the time.
pub(crate) fn block_on(work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}
