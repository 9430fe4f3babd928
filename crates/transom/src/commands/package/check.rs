//! `transom package check`: whether the node is as it should be, and its packages are well.

use std::time::Duration;

use camino::Utf8PathBuf;
use serde::Serialize;
use transom_model::package::PackageId;
use transom_package::node::{
    CheckFile, CheckResult, Checks as _, Deviation, Node, Verdict, list_checks,
};

use super::node::{NodeOptions, advised, runner};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Document, Shown};

/// All checks of a node together.
const LIMIT: Duration = Duration::from_mins(10);

const EXAMPLES: &str = "\
Examples:
  transom package check               Look at the node's files, run the checks of active packages
  transom package check --list        Which checks there are
  transom package check -o json

Ends with 1 if anything is not as it should be.";

/// Check this node's software, and run the checks of its active packages
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Check {
    /// List the checks, and run none
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    pub(super) node: NodeOptions,
}

impl Check {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let node = self.node.open(cx)?;
        let packages = active_folders(&node)?;
        if self.list {
            let checks = advised(list_checks(node.files(), &packages))?;
            for check in checks.iter().filter(|check| !check.is_executable) {
                cx.out.warn(&format!("`{}` is not executable", check.name));
            }
            let checks = checks.into_iter().filter(|check| check.is_executable);
            cx.out.document(&Listed(checks.collect()))?;
            return Ok(Exit::Success);
        }
        let deviations = advised(node.check())?;
        let results = {
            let _task = cx.progress.start("running checks");
            runner(cx).run(&packages, LIMIT)
        };
        for result in &results {
            if result.verdict == Verdict::Skipped {
                cx.out.warn(&format!("`{}` is not executable", result.name));
            }
        }
        let report = Report {
            deviations,
            checks: results,
        };
        cx.out.document(&report)?;
        Ok(if report.is_well() {
            Exit::Success
        } else {
            Exit::Failure
        })
    }
}

/// The active packages with their folders.
fn active_folders(node: &Node) -> anyhow::Result<Vec<(PackageId, Utf8PathBuf)>> {
    let active = advised(node.active())?;
    let ids = active.map(|active| active.ids()).unwrap_or_default();
    Ok(ids
        .into_iter()
        .map(|id| {
            let folder = node.places().package(&id);
            (id, folder)
        })
        .collect())
}

#[derive(Serialize)]
#[serde(transparent)]
struct Listed(Vec<CheckFile>);

impl Document for Listed {
    fn text(&self, _wide: bool, _shown: Shown) -> String {
        let mut text = String::new();
        for group in self.0.chunk_by(|left, right| left.package == right.package) {
            text.extend([group[0].package.as_str(), "\n"]);
            for check in group {
                text.extend([" - ", &check.name, "\n"]);
            }
        }
        text
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|check| check.name.clone()).collect()
    }
}

#[derive(Serialize)]
struct Report {
    deviations: Vec<Deviation>,
    checks: Vec<CheckResult>,
}

impl Report {
    fn is_well(&self) -> bool {
        self.deviations.is_empty() && !self.checks.iter().any(CheckResult::is_failure)
    }
}

impl Document for Report {
    fn text(&self, wide: bool, _shown: Shown) -> String {
        let mut text = String::new();
        for deviation in &self.deviations {
            text.push_str(&deviation.to_string());
            text.push('\n');
        }
        for check in &self.checks {
            if wide || !check.output.is_empty() {
                text.push_str(&check.output);
            }
            if wide || check.is_failure() {
                text.push_str(&check.to_string());
                text.push('\n');
            }
        }
        text
    }

    fn names(&self) -> Vec<String> {
        let failed = self.checks.iter().filter(|check| check.is_failure());
        failed.map(|check| check.name.clone()).collect()
    }
}
