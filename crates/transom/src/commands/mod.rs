//! The commands: nouns are folders, verbs are files, and a command's arguments and handler stand in
//! one file. Invariant: handlers do no work of their own; they call the crates below and print.

mod agent;
mod apply;
mod completion;
mod config;
mod delete;
mod doctor;
mod exec;
mod explain;
mod get;
mod help;
mod kubeconfig;
mod logs;
mod man;
pub(crate) mod package;
mod reference;
mod registration;
mod repository;
mod server;
pub(crate) mod service;
mod simulate;
mod token;
mod top;
mod tree;
pub(crate) mod up;
mod version;

use std::ffi::OsString;
use std::io::Write as _;

use clap::builder::styling::Style;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::arguments::GlobalOptions;
use crate::context::Context;
use crate::failure::{Advice as _, Exit, Failure};
use crate::invocation::Invocation;
use crate::logging;
use crate::output::{ColorMode, Colors, Format, Output, OutputError, Shown};
use crate::settings::Settings;
use crate::usage::{Early, is_request};

/// Build, install, upgrade and run container clusters of Linux and Windows machines
#[derive(Debug, Parser)]
#[command(name = "transom", version, disable_help_subcommand = true)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(max_term_width = 100)]
struct Transom {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    options: GlobalOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    Package(package::Package),
    #[command(visible_alias = "repo")]
    Repository(repository::Repository),
    Up(up::Up),
    Down(up::Down),
    Server(server::Server),
    Agent(agent::Agent),
    Token(token::Token),
    Kubeconfig(kubeconfig::Kubeconfig),
    Get(get::Get),
    Apply(apply::Apply),
    Delete(delete::Delete),
    Logs(logs::Logs),
    Exec(exec::Exec),
    Top(top::Top),
    Explain(explain::Explain),
    Simulate(simulate::Simulate),
    Service(service::Service),
    Doctor(doctor::Doctor),
    Config(config::Config),
    Version(version::Version),
    Completion(completion::Completion),
    Man(man::Man),
    Help(help::Help),
    Hello(up::Hello),
    Reference(reference::Reference),
}

impl Command {
    fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        match self {
            Self::Package(command) => command.run(cx),
            Self::Repository(command) => command.run(cx),
            Self::Up(command) => command.run(cx),
            Self::Down(command) => command.run(cx),
            Self::Hello(command) => command.run(cx),
            Self::Server(command) => command.run(cx),
            Self::Agent(command) => command.run(cx),
            Self::Token(command) => command.run(cx),
            Self::Kubeconfig(command) => command.run(cx),
            Self::Get(command) => command.run(cx),
            Self::Apply(command) => command.run(cx),
            Self::Delete(command) => command.run(cx),
            Self::Logs(command) => command.run(cx),
            Self::Exec(command) => command.run(cx),
            Self::Top(command) => command.run(cx),
            Self::Explain(command) => command.run(cx),
            Self::Simulate(command) => command.run(cx),
            Self::Service(command) => command.run(cx),
            Self::Doctor(command) => command.run(cx),
            Self::Config(command) => command.run(cx),
            Self::Version(command) => command.run(cx),
            Self::Completion(command) => command.run(cx),
            Self::Man(command) => command.run(cx),
            Self::Help(command) => command.run(cx),
            Self::Reference(command) => command.run(cx),
        }
    }
}

/// How the overview of commands is ordered: title, then names.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Cluster",
        &[
            "up",
            "down",
            "server",
            "agent",
            "token",
            "kubeconfig",
            "simulate",
        ],
    ),
    (
        "What runs in it",
        &["get", "apply", "delete", "logs", "exec", "top", "explain"],
    ),
    ("Software", &["package", "repository"]),
    ("This machine", &["doctor", "service"]),
    (
        "This command",
        &["config", "version", "completion", "man", "help"],
    ),
];

/// The whole command line, with the overview that clap cannot make by itself.
fn command_line() -> clap::Command {
    const TITLE: Style = Style::new().bold().underline();
    let command = Transom::command();
    let overview = tree::render_overview(&command, GROUPS);
    command
        .help_template(format!(
            "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{{before-help}}\
             {TITLE}Global options:{TITLE:#}\n{{options}}{{after-help}}"
        ))
        .before_help(overview)
        .after_help(
            "Run `transom help COMMAND` for a command, and `transom help topics` for what all of \
             them share.",
        )
}

/// Runs `transom`.
pub(crate) fn run(invocation: &Invocation) -> Exit {
    run_entry::<Transom>(invocation, command_line())
}

/// A program of ours: what its arguments are parsed into.
pub(crate) trait Entry: clap::FromArgMatches + std::fmt::Debug {
    /// The options that every command takes, as they hold for this one.
    fn options(&self) -> GlobalOptions;
    fn run(self, cx: &Context) -> anyhow::Result<Exit>;
}

impl Entry for Transom {
    fn options(&self) -> GlobalOptions {
        match self.command {
            // `--root` is that of the node's software there, as pkgpanda has it.
            Command::Package(_) => GlobalOptions {
                root: None,
                ..self.options.clone()
            },
            _ => self.options.clone(),
        }
    }

    fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.command.run(cx)
    }
}

/// Parses the arguments as `command_line` says, runs what they ask for, and reports how it ended.
pub(crate) fn run_entry<Program: Entry>(
    invocation: &Invocation,
    command_line: clap::Command,
) -> Exit {
    let early = Early::scan(&invocation.arguments, &invocation.environment);
    let name = OsString::from(command_line.get_name());
    let arguments = std::iter::once(name).chain(invocation.arguments.clone());
    let parsed = command_line
        .try_get_matches_from(arguments)
        .and_then(|matches| Program::from_arg_matches(&matches));
    let mut reporter = Reporter { invocation, early };
    match parsed {
        Ok(program) => {
            let outcome = execute(&mut reporter, program);
            reporter.outcome(outcome)
        }
        Err(error) if is_request(&error) => {
            reporter.outcome(reporter.answer(&error.render().ansi().to_string()))
        }
        Err(error) => reporter.misuse(&error),
    }
}

fn execute(reporter: &mut Reporter<'_>, program: impl Entry) -> anyhow::Result<Exit> {
    let invocation = reporter.invocation;
    let cx = Context::new(invocation, settings(invocation, &program.options())?);
    let settings = &cx.settings;
    // From here on the file has its say in how failures are shown, too.
    reporter.early = Early {
        json: settings.output.value == Format::Json,
        color: settings.color.value,
    };
    logging::start(
        &settings.log_level.value,
        settings.log_format.value,
        colors(invocation, settings.color.value).stderr,
        &cx.progress,
    )?;
    tracing::debug!(command = ?program, "running");
    program.run(&cx)
}

fn settings(invocation: &Invocation, options: &GlobalOptions) -> anyhow::Result<Settings> {
    let environment = &invocation.environment;
    Settings::resolve(invocation.host, options, environment).or_else(|error| {
        let (exit, hint) = (error.exit(), error.hint());
        let failed = Err(error.into());
        let failed = match exit {
            Some(exit) => failed.exit(exit),
            None => failed,
        };
        match hint {
            Some(hint) => failed.hint(hint),
            None => failed,
        }
    })
}

fn colors(invocation: &Invocation, mode: ColorMode) -> Colors {
    Colors::decide(
        mode,
        &invocation.environment,
        invocation.stdout_is_terminal,
        invocation.stderr_is_terminal,
    )
}

/// Says how it ended. Works before there are settings: then it looks at flags and variables only.
struct Reporter<'a> {
    invocation: &'a Invocation,
    early: Early,
}

impl Reporter<'_> {
    fn outcome(&self, outcome: anyhow::Result<Exit>) -> Exit {
        match outcome {
            Ok(exit) => exit,
            Err(error) if OutputError::is_reader_gone(&error) => Exit::Success,
            Err(error) => self.complain(&Failure::from_error(&error, self.invocation.host)),
        }
    }

    /// Help or version that was asked for is data.
    fn answer(&self, text: &str) -> anyhow::Result<Exit> {
        let colors = colors(self.invocation, self.early.color);
        let output = Output::new(
            Format::Table,
            Shown::plain(self.invocation.now),
            false,
            self.invocation.stdout.open(colors.stdout),
            self.invocation.stderr.open(colors.stderr),
        );
        output.write(text)?;
        Ok(Exit::Success)
    }

    fn misuse(&self, error: &clap::Error) -> Exit {
        use clap::error::ErrorKind;
        let help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        if help && !self.early.json {
            self.say(&error.render().ansi().to_string());
            return Exit::Usage;
        }
        self.complain(&Failure::from_usage(error))
    }

    fn complain(&self, failure: &Failure) -> Exit {
        let text = if self.early.json {
            failure.json()
        } else {
            failure.text()
        };
        self.say(&text);
        failure.exit
    }

    fn say(&self, text: &str) {
        let color = colors(self.invocation, self.early.color).stderr;
        let mut stderr = self.invocation.stderr.open(color);
        // The exit code still tells when even this cannot be written.
        let _ = stderr.write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests;
