//! Runs cases whose number is known only at run time (each case on each runtime), and lets the test binary be its
//! own helper program. Speaks as much of libtest's language as cargo and nextest use.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

/// One test.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) run: Box<dyn Fn()>,
}

/// Far more than any case needs, on any machine.
const LONGEST: Duration = Duration::from_mins(2);

pub(crate) fn block_on(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::time::timeout(LONGEST, case)
            .await
            .expect("the case ends in time");
    });
}

#[derive(Default)]
struct Options {
    list: bool,
    exact: bool,
    only_ignored: bool,
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
        // No case is ever ignored: there are none to run when only those are wanted.
        named && !self.skips.iter().any(matches) && !self.only_ignored
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
    let (mut passed, mut failed) = (0, Vec::new());
    for case in chosen {
        if catch_unwind(AssertUnwindSafe(|| (case.run)())).is_ok() {
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
        "\ntest result: {}. {passed} passed; {} failed; 0 ignored; 0 measured; {} filtered out",
        if failed.is_empty() { "ok" } else { "FAILED" },
        failed.len(),
        cases.len() - passed - failed.len(),
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
