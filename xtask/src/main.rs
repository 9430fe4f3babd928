//! The project's own commands: `cargo xtask --help`. Each installs what it needs by itself, and does
//! what CI does, because CI calls the same functions.

mod commands;
mod console;
mod environment;
mod run;
mod steps;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::Parser as _;

use crate::environment::Environment;
use crate::workspace::Workspace;

fn main() -> ExitCode {
    let arguments = commands::Arguments::parse();
    let result = Workspace::locate(Environment::of_this_process())
        .and_then(|workspace| arguments.command.run(&workspace));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::line(&format!("\nerror: {error:#}"));
            ExitCode::from(run::exit_code(&error))
        }
    }
}
