//! One contract for processes, kept by this machine and by the fake; then what only a real machine
//! can show. Called with `role` as its first argument, this binary is the program that the tests run.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test without libtest's harness, which clippy does not know for one"
)]

mod backend;
mod contract;
mod harness;
#[cfg(target_os = "linux")]
mod linux;
mod native;
mod roles;
#[cfg(windows)]
mod windows;

use std::process::ExitCode;

use backend::{Backend, Fake, Real};
use harness::Case;

fn contract_on(name: &str, make: impl Fn() -> Box<dyn Backend> + Copy + 'static) -> Vec<Case> {
    contract::CASES
        .iter()
        .map(|(case, run)| Case {
            name: format!("{name}::{case}"),
            ignored: None,
            run: Box::new(move || run(&*make())),
        })
        .collect()
}

fn plain(prefix: &str, tests: &[(&str, fn())]) -> Vec<Case> {
    tests
        .iter()
        .map(|(name, run)| {
            let run = *run;
            Case {
                name: format!("{prefix}::{name}"),
                ignored: None,
                run: Box::new(run),
            }
        })
        .collect()
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("role") {
        return roles::play(&arguments.collect::<Vec<_>>());
    }
    let mut cases = contract_on("native", || Box::new(Real::new()));
    cases.extend(contract_on("fake", || Box::new(Fake::new(false))));
    cases.extend(contract_on("fake_windows", || Box::new(Fake::new(true))));
    cases.extend(plain("native", native::TESTS));
    #[cfg(target_os = "linux")]
    cases.extend(plain("linux", linux::TESTS));
    #[cfg(windows)]
    cases.extend(windows::cases());
    harness::run(&cases)
}
