//! `transom server check`: whether the store of a server that does not run is as it should be.

use serde::Serialize;
use transom_api::server::{StoreError, check_store};

use super::{DataFolder, runtime};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::output::{Document, Shown};

/// Check every key and every change in the local store
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom server check\n  transom server check --data-dir /srv/transom -o json\n\nThe server must not run. Ends with 1 if anything is not as it should be."
)]
pub(super) struct Check {
    #[command(flatten)]
    data: DataFolder,
}

impl Check {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let folder = self.data.state(cx);
        let found = {
            let _task = cx.progress.start("checking the store");
            runtime()?.block_on(check_store(&folder))
        };
        let report = match found {
            Err(error @ StoreError::InUse { .. }) => {
                Err(error).hint("stop the server first; the store has one user at a time")?
            }
            other => other?,
        };
        let report = Report {
            revision: report.revision.0,
            oldest: report.compacted.0,
            keys: report.entries,
            bytes: report.bytes,
            changes: report.changes,
            leases: report.leases,
            faults: report.faults,
            fault_count: report.fault_count,
        };
        cx.out.document(&report)?;
        Ok(if report.fault_count == 0 {
            Exit::Success
        } else {
            Exit::Failure
        })
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    revision: u64,
    oldest: u64,
    keys: u64,
    bytes: u64,
    changes: u64,
    leases: u64,
    faults: Vec<String>,
    fault_count: u64,
}

impl Document for Report {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        let mut text = format!(
            "revision  {} (history from {})\nkeys      {}\nbytes     {}\nchanges   {}\nleases    {}\nfaults    {}\n",
            self.revision,
            self.oldest,
            self.keys,
            self.bytes,
            self.changes,
            self.leases,
            self.fault_count
        );
        for fault in &self.faults {
            text.push_str("  ");
            text.push_str(fault);
            text.push('\n');
        }
        text
    }

    fn names(&self) -> Vec<String> {
        self.faults.clone()
    }
}
