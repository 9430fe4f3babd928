//! The `transom` program: gathers what the process was given and hands it to the library. Invariant:
//! this is the only place that looks at the real arguments, variables and clock.

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use transom::environment::Environment;
use transom::failure::Exit;
use transom::invocation::{Invocation, Sink};
use transom_host::machine::OS;

/// The system's own takes a third of the processor when thousands of objects a second are read and written.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Err(error) = transom_host::files::fault::arm_from_environment() {
        // Whoever plans a fault must learn that none will happen.
        let _ = writeln!(io::stderr(), "error: {error}");
        return ExitCode::from(Exit::Configuration.code());
    }
    let mut arguments = env::args_os();
    let program = arguments.next().unwrap_or_default();
    let exit = transom::run(&Invocation {
        program,
        arguments: arguments.collect(),
        environment: Environment::new(OS, env::vars_os()),
        host: OS,
        now: jiff::Timestamp::now(),
        stdout: Sink::Stdout,
        stderr: Sink::Stderr,
        stdout_is_terminal: io::stdout().is_terminal(),
        stderr_is_terminal: io::stderr().is_terminal(),
        width: terminal_size::terminal_size().map(|(width, _)| width.0.into()),
    });
    ExitCode::from(exit.code())
}
