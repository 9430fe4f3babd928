//! `cargo xtask ci`: what CI runs, and nothing that a developer cannot run. Cheap checks all report;
//! the tests run only when the checks passed.

use anyhow::Result;

use super::fuzz;
use super::generate;
use super::test::{self, Tier};
use crate::console;
use crate::run;
use crate::steps::Steps;
use crate::tidy;
use crate::tools::{self, Purpose};
use crate::workspace::Workspace;

/// Do everything that CI does
#[derive(Debug, clap::Args)]
pub(crate) struct Ci {}

impl Ci {
    #[expect(clippy::unused_self, reason = "all commands are run the same way")]
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        let mut steps = Steps::new();
        steps.always("tools", || {
            tools::ensure(workspace, &Purpose::ALL).map(|()| None)
        });
        steps.always("format", || {
            run::visibly(workspace.cargo().args(["fmt", "--all", "--check"])).map(|()| None)
        });
        steps.always("tidy", || tidy::run(workspace).map(|()| None));
        steps.always("dependencies", || check_dependencies(workspace));
        steps.always("clippy", || clippy_for_linux(workspace).map(|()| None));
        steps.always("clippy for Windows", || {
            clippy_for_windows(workspace).map(|()| None)
        });
        steps.always("generated files", || {
            generate::check(workspace).map(|()| None)
        });
        steps.unless_failed("test", || {
            test::run_tier(workspace, Tier::All, None).map(|()| None)
        });
        steps.unless_failed("fuzz", || fuzz::briefly(workspace).map(|()| None));
        steps.finish()
    }
}

const DENY_WARNINGS: [&str; 4] = ["--all-targets", "--", "-D", "warnings"];

fn clippy_for_linux(workspace: &Workspace) -> Result<()> {
    run::visibly(
        workspace
            .cargo()
            .args(["clippy", "--workspace"])
            .args(DENY_WARNINGS),
    )
}

fn clippy_for_windows(workspace: &Workspace) -> Result<()> {
    let mut clippy = workspace.windows_clippy();
    clippy
        .args(Workspace::windows_selection())
        .args(DENY_WARNINGS);
    run::visibly(&mut clippy)
}

/// Licences, sources and bans always; advisories where their database is.
fn check_dependencies(workspace: &Workspace) -> Result<Option<String>> {
    let deny =
        |check: &[&str]| run::visibly(workspace.cargo().args(["deny", "--offline"]).args(check));
    deny(&[
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ])?;
    if has_advisories(workspace) {
        deny(&["check", "advisories"])?;
        return Ok(None);
    }
    console::line(
        "  advisories were NOT checked: there is no database; `cargo deny fetch db` gets it",
    );
    Ok(Some("advisories not checked: no database".to_owned()))
}

fn has_advisories(workspace: &Workspace) -> bool {
    workspace
        .cargo_home()
        .and_then(|home| fs_err::read_dir(home.join("advisory-dbs")).ok())
        .is_some_and(|mut entries| {
            entries.any(|entry| entry.is_ok_and(|entry| entry.path().is_dir()))
        })
}
