//! `cargo xtask windows`: the whole workspace as Windows programs, and its tests under Wine.

use std::path::PathBuf;

use anyhow::Result;

use super::test::{self, Ran};
use crate::console;
use crate::run;
use crate::tools::wine::machine::Machine;
use crate::tools::{self, Purpose};
use crate::workspace::Workspace;

/// Cross-compile the workspace and its tests for Windows, and run them under Wine
#[derive(Debug, clap::Args)]
pub(crate) struct Windows {
    /// Only build
    #[arg(long)]
    no_run: bool,
    /// Passed on to `cargo nextest run`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Windows {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        tools::ensure(workspace, &[Purpose::WindowsBuild, Purpose::Wine])?;
        let program = build(workspace)?;
        console::line(&format!("  built {}", program.display()));
        if self.no_run {
            return Ok(());
        }
        let ran = run_tests(workspace, &self.arguments);
        test::print_tiers(workspace, None, Some(&ran))?;
        ran.into_result()
    }
}

/// Builds everything once: what the Linux tests start on their Windows hosts, and the tests themselves.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf> {
    let mut cargo = workspace.windows_cargo();
    // The same selection as the test run, so that nothing is built twice with other features.
    cargo
        .arg("build")
        .args(Workspace::windows_selection())
        .args(["--bins", "--tests"]);
    run::visibly(&mut cargo)?;
    Ok(workspace.windows_transom())
}

/// Runs the Windows tests on one Windows machine that lives as long as the run.
pub(crate) fn run_tests(workspace: &Workspace, arguments: &[String]) -> Ran {
    let machine = match Machine::start(workspace) {
        Ok(machine) => machine,
        Err(error) => return Ran::before_any_test(error),
    };
    let mut nextest = workspace.windows_cargo();
    nextest
        .args(["nextest", "run", "--profile", "wine"])
        .args(Workspace::windows_selection())
        .args(arguments)
        .env("WINEPREFIX", machine.prefix());
    test::run_counted(workspace, "wine", &mut nextest)
}
