//! `cargo xtask test`: every test of the project, on this machine and under Wine, and how many there
//! are of each. The runners' own output stays as it is.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{real_windows, windows};
use crate::console;
use crate::run;
use crate::tools::{self, Purpose};
use crate::workspace::Workspace;

/// Run the project's tests
#[derive(Debug, clap::Args)]
pub(crate) struct Test {
    /// Where the tests run
    #[arg(long, value_enum, default_value_t = Tier::All)]
    tier: Tier,
    /// Run only tests whose name contains this
    filter: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Tier {
    /// On this machine
    Linux,
    /// As Windows programs, under Wine
    Windows,
    /// Both
    All,
}

/// How many tests ran, and how many of them did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    ran: u64,
    failed: u64,
}

/// One tier's run: what it counted is shown also when it failed.
#[derive(Debug)]
pub(crate) struct Ran {
    counts: Option<Counts>,
    result: Result<()>,
}

impl Ran {
    pub(crate) fn into_result(self) -> Result<()> {
        self.result
    }

    pub(crate) fn before_any_test(error: anyhow::Error) -> Self {
        Self {
            counts: None,
            result: Err(error),
        }
    }
}

impl Test {
    pub(crate) fn run(self, workspace: &Workspace) -> Result<()> {
        run_tier(workspace, self.tier, self.filter.as_deref())
    }
}

/// What `cargo xtask test` and `cargo xtask ci` both do.
pub(crate) fn run_tier(workspace: &Workspace, tier: Tier, filter: Option<&str>) -> Result<()> {
    tools::ensure(
        workspace,
        &[Purpose::Linux, Purpose::WindowsBuild, Purpose::Wine],
    )?;
    let arguments: Vec<String> = match filter {
        // One tier may well have no test of that name.
        Some(filter) => vec!["--no-tests=pass".to_owned(), filter.to_owned()],
        None => Vec::new(),
    };
    console::heading("build for Windows");
    let program = windows::build(workspace)?;
    let linux = (tier != Tier::Windows).then(|| {
        console::heading("tests on Linux");
        run_on_linux(workspace, &program, &arguments)
    });
    let wine = (tier != Tier::Linux).then(|| {
        console::heading("tests under Wine");
        windows::run_tests(workspace, &arguments)
    });
    print_tiers(workspace, linux.as_ref(), wine.as_ref())?;
    linux.into_iter().chain(wine).try_for_each(Ran::into_result)
}

fn run_on_linux(workspace: &Workspace, program: &Path, arguments: &[String]) -> Ran {
    let mut nextest = workspace.cargo();
    nextest
        .args(["nextest", "run", "--workspace", "--profile", "linux"])
        .args(arguments)
        .env("TRANSOM_TEST_WINDOWS_EXE", program)
        .env(
            "TRANSOM_TEST_WINDOWS_ECHO",
            program.with_file_name("testkit-echo.exe"),
        )
        .env(
            "TRANSOM_TEST_ECHO",
            workspace.transom().with_file_name("testkit-echo"),
        )
        .env("TRANSOM_TEST_WINRUN", workspace.winrun())
        .env("TRANSOM_TEST_WINE", workspace.wine());
    run_counted(workspace, "linux", &mut nextest)
}

/// Runs nextest and reads its own report.
pub(crate) fn run_counted(workspace: &Workspace, profile: &str, nextest: &mut Command) -> Ran {
    // Nextest writes its reports below the checkout, wherever the build output is.
    let report = workspace
        .root
        .join("target/nextest")
        .join(profile)
        .join("junit.xml");
    if report.exists()
        && let Err(error) = fs_err::remove_file(&report)
    {
        return Ran::before_any_test(error.into());
    }
    let result = run::visibly(nextest);
    // No report was written if nothing ran.
    let counts = fs_err::read_to_string(&report)
        .ok()
        .and_then(|text| counts_of(&text));
    Ran { counts, result }
}

/// The totals on the report's outermost element.
fn counts_of(report: &str) -> Option<Counts> {
    let start = report.find("<testsuites")?;
    let element = &report[start..start + report[start..].find('>')?];
    let number = |name: &str| -> Option<u64> {
        let after = element.split_once(&format!(" {name}=\""))?.1;
        after.split_once('"')?.0.parse().ok()
    };
    Some(Counts {
        ran: number("tests")?,
        failed: number("failures")? + number("errors")?,
    })
}

/// The table of tiers, and the tests that wait for a real Windows.
pub(crate) fn print_tiers(
    workspace: &Workspace,
    linux: Option<&Ran>,
    wine: Option<&Ran>,
) -> Result<()> {
    let waiting = real_windows::marked_tests(workspace)?;
    console::heading("tests per tier");
    let row = |tier: &str, ran: Option<&Ran>| vec![tier.to_owned(), described(ran)];
    console::table(
        &["tier", "tests"],
        &[
            row("Linux", linux),
            row("Windows under Wine", wine),
            vec![
                "needs real Windows".to_owned(),
                format!("{} marked, not run", waiting.len()),
            ],
        ],
    );
    for test in waiting {
        console::line(&format!("    {test}"));
    }
    Ok(())
}

fn described(ran: Option<&Ran>) -> String {
    match ran {
        None => "not asked for".to_owned(),
        Some(Ran {
            counts: Some(counts),
            ..
        }) => {
            format!(
                "{} ran, {} passed",
                counts.ran,
                counts.ran.saturating_sub(counts.failed)
            )
        }
        Some(Ran { result: Ok(()), .. }) => "none matched".to_owned(),
        Some(_) => "failed before any test ran".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_that_failed_still_says_how_many_passed() {
        let ran = Ran {
            counts: Some(Counts { ran: 5, failed: 2 }),
            result: Err(anyhow::anyhow!("x")),
        };
        assert_eq!(described(Some(&ran)), "5 ran, 3 passed");
        let broken = Ran::before_any_test(anyhow::anyhow!("x"));
        assert_eq!(described(Some(&broken)), "failed before any test ran");
    }

    #[test]
    fn the_totals_are_those_of_the_whole_report() {
        let report = "<?xml version=\"1.0\"?>\n<testsuites name=\"run\" tests=\"12\" failures=\"2\" \
                      errors=\"1\" time=\"1\">\n<testsuite name=\"a\" tests=\"5\" failures=\"0\" errors=\"0\">";
        assert_eq!(counts_of(report), Some(Counts { ran: 12, failed: 3 }));
    }

    #[test]
    fn a_report_that_was_cut_off_has_no_totals() {
        assert_eq!(counts_of("<testsuites name=\"run\" tests=\"12\""), None);
        assert_eq!(counts_of("<testsuites tests=\"many\" >"), None);
        assert_eq!(counts_of(""), None);
    }
}
