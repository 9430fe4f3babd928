//! `transom repository verify`: every signature, digest and expiry of a repository.

use std::fmt::Write as _;

use serde::Serialize;
use transom_package::repository::{Problem, Report, check};

use super::{Place, advise, block_on, downloader, now, size};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Document, Shown};

const EXAMPLES: &str = "\
Examples:
  transom repository verify                       End with 1 if anything is wrong
  transom repository verify -o json               All problems, for programs";

/// Check every signature, digest and expiry, and look for what nothing names
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Verify {
    #[command(flatten)]
    place: Place,
}

impl Verify {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let folder = self.place.folder()?;
        let task = cx.progress.start("verifying");
        let report = block_on(async {
            let looked = |entry: &transom_package::repository::Entry| task.step(&entry.path());
            advise(check(&folder, &downloader()?, now(cx), &looked).await)
        })?;
        drop(task);
        let good = report.problems.is_empty();
        cx.out.document(&Verified::from(report))?;
        Ok(if good { Exit::Success } else { Exit::Failure })
    }
}

#[derive(Serialize)]
struct Verified {
    packages: usize,
    package_lists: usize,
    bytes: u64,
    /// What a mirror does not have.
    absent: usize,
    problems: Vec<Problem>,
}

impl From<Report> for Verified {
    fn from(report: Report) -> Self {
        Self {
            packages: report.packages,
            package_lists: report.lists,
            bytes: report.bytes,
            absent: report.absent,
            problems: report.problems,
        }
    }
}

impl Document for Verified {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        let mut text = String::new();
        for Problem { path, message } in &self.problems {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{path}: {message}");
        }
        let _ = write!(
            text,
            "packages: {}, package lists: {}, {}",
            self.packages,
            self.package_lists,
            size(self.bytes)
        );
        if self.absent > 0 {
            let _ = write!(text, ", not in this mirror: {}", self.absent);
        }
        let _ = match self.problems.len() {
            0 => writeln!(text, "; all is well"),
            1 => writeln!(text, "; 1 problem"),
            count => writeln!(text, "; {count} problems"),
        };
        text
    }

    fn names(&self) -> Vec<String> {
        self.problems
            .iter()
            .map(|problem| problem.path.clone())
            .collect()
    }
}
