//! Runs cases whose number is known only at run time (each case on each backend), and lets the test
//! binary be its own helper program. Speaks as much of libtest's language as cargo and nextest use.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// One test.
pub(crate) struct Case {
    pub(crate) name: String,
    /// Why it does not run unless asked to.
    pub(crate) ignored: Option<&'static str>,
    pub(crate) run: Box<dyn Fn()>,
}

#[derive(Default)]
struct Options {
    list: bool,
    exact: bool,
    only_ignored: bool,
    include_ignored: bool,
    filters: Vec<String>,
    skips: Vec<String>,
}

fn parse(arguments: impl Iterator<Item = String>) -> Options {
    let mut options = Options::default();
    let mut arguments = arguments.peekable();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--list" => options.list = true,
            "--exact" => options.exact = true,
            "--ignored" => options.only_ignored = true,
            "--include-ignored" => options.include_ignored = true,
            "--skip" => options.skips.extend(arguments.next()),
            "--format" | "--test-threads" | "--color" | "--logfile" | "-Z" => {
                arguments.next();
            }
            flag if flag.starts_with('-') => {}
            _ => options.filters.push(argument),
        }
    }
    options
}

impl Options {
    fn wants(&self, case: &Case) -> bool {
        let matches = |filter: &String| {
            if self.exact {
                case.name == *filter
            } else {
                case.name.contains(filter.as_str())
            }
        };
        let named = self.filters.is_empty() || self.filters.iter().any(matches);
        named && !self.skips.iter().any(matches) && (!self.only_ignored || case.ignored.is_some())
    }
}

pub(crate) fn run(cases: &[Case]) -> ExitCode {
    let options = parse(std::env::args().skip(1));
    let chosen: Vec<&Case> = cases.iter().filter(|case| options.wants(case)).collect();
    if options.list {
        for case in chosen {
            println!("{}: test", case.name);
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut ignored, mut failed) = (0, 0, Vec::new());
    for case in chosen {
        if let Some(reason) = case.ignored
            && !options.only_ignored
            && !options.include_ignored
        {
            println!("test {} ... ignored, {reason}", case.name);
            ignored += 1;
        } else if catch_unwind(AssertUnwindSafe(|| (case.run)())).is_ok() {
            println!("test {} ... ok", case.name);
            passed += 1;
        } else {
            println!("test {} ... FAILED", case.name);
            failed.push(&case.name);
        }
    }
    for name in &failed {
        println!("    {name}");
    }
    println!(
        "\ntest result: {}. {passed} passed; {} failed; {ignored} ignored; 0 measured; {} filtered out",
        if failed.is_empty() { "ok" } else { "FAILED" },
        failed.len(),
        cases.len() - passed - ignored - failed.len(),
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
