//! One contract for all runtimes; then what only one of them can show. Called with `role` as its first argument,
//! this binary is the program that containers run; with `keeper`, it is the keeper of one.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test without libtest's harness, which clippy does not know for one"
)]

mod backend;
mod cases;
#[cfg(target_os = "linux")]
mod containerd;
#[cfg(target_os = "linux")]
mod docker;
mod fake;
mod harness;
#[cfg(target_os = "linux")]
mod oci;
mod process;
#[cfg(target_os = "linux")]
mod registry;
mod roles;
#[cfg(target_os = "linux")]
mod shell;
mod tool;

use std::process::ExitCode;
use std::sync::Arc;

use backend::Backend;
use harness::Case;

fn contract_on(name: &str, make: impl Fn() -> Arc<dyn Backend> + Copy + 'static) -> Vec<Case> {
    cases::all()
        .into_iter()
        .map(|(case, run)| Case {
            name: format!("{name}::{case}"),
            run: Box::new(move || harness::block_on(run(make()))),
        })
        .collect()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, words)) if first == "role" => return roles::play(words),
        #[cfg(target_os = "linux")]
        Some((first, words)) if first == "oci-shim" => {
            return transom_runtime::oci::shim_main(words);
        }
        Some((first, words)) if first == "keeper" => {
            return transom_runtime::process::keeper_main(words);
        }
        #[cfg(target_os = "linux")]
        Some((first, words)) if first == "oci-agent" => return oci::play_agent(words),
        #[cfg(target_os = "linux")]
        Some((first, words)) if first == "oci-serve" => return oci::serve(&words[0]),
        _ => {}
    }
    let mut cases = contract_on("fake", || Arc::new(fake::Fake::new()));
    cases.extend(fake::cases());
    #[cfg(target_os = "linux")]
    if oci::is_possible() {
        cases.extend(contract_on("oci", || Arc::new(oci::Oci::new())));
        cases.extend(oci::own_cases());
    }
    cases.extend(contract_on("process", || {
        Arc::new(process::HostProcesses::new())
    }));
    cases.extend(process::cases());
    #[cfg(target_os = "linux")]
    {
        cases.extend(containerd::cases());
        cases.extend(docker::cases());
    }
    harness::run(&cases)
}
