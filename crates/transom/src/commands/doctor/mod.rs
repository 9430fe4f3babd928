//! `transom doctor`: what this machine can do. Invariant: only looks, and never says more than the
//! probes found; what could not be found out is reported as such.

mod report;

use transom_host::machine::{self, features};

use crate::context::Context;
use crate::failure::Exit;
use report::Report;

const EXAMPLES: &str = "\
Examples:
  transom doctor                      Everything that was looked at
  transom doctor --area network       One area; can be repeated
  transom doctor -o wide              What each finding is needed for, too
  transom doctor --strict             End with 1 unless all is well, for scripts
  transom doctor -o json              For programs";

/// Show what this machine can do, and what it lacks
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Doctor {
    /// Show this area only; can be repeated
    #[arg(long = "area", value_name = "AREA")]
    areas: Vec<String>,

    /// End with 1 when something is missing or needs attention
    #[arg(long)]
    strict: bool,
}

impl Doctor {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let task = cx.progress.start("examining this machine");
        let report = Report::new(&machine::Native, features::observe_and_judge());
        drop(task);
        let report = report.limited_to(&self.areas)?;
        cx.out.document(&report)?;
        Ok(report.exit(self.strict))
    }
}

#[cfg(test)]
mod tests;
