//! The shim of a pod: a small process that holds the pod's namespaces, is the parent of its containers,
//! owns their streams and writes down how they end. It outlives the agent.
//!
//! Invariant: it has one thread and no runtime. Everything heavy is done by a helper that it starts, of the
//! same binary: libcontainer forks, and must do so in a process of one thread.

mod client;
mod container;
mod launching;
mod namespaces;
mod program;
mod rest;
mod server;
mod spawning;

use std::process::ExitCode;

/// What a re-executed binary does with its arguments: a shim, or one of its helpers.
///
/// Must be called before any thread is started.
pub fn shim_main(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["pod", folder] => server::run(folder),
        ["run", report, container, console @ ..] => {
            spawning::run(report, container, console.first().copied())
        }
        ["exec", report, container, process, console @ ..] => {
            spawning::exec(report, container, process, console.first().copied())
        }
        ["first-process", report] => namespaces::hold_processes(report),
        _ => Err("a shim is started by the agent, never by hand".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// The standard error of a shim is a file in the folder of its pod.
fn complain(text: &str) {
    use std::io::Write;
    let line = format!("{} {text}\n", jiff::Timestamp::now());
    // There is nobody left to tell if this fails.
    drop(std::io::stderr().write_all(line.as_bytes()));
}
