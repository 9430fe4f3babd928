//! `transom service`: the verbs, the output and the exit codes of systemctl, on every system. Where
//! systemd runs, the verbs are handed to it; everywhere else our own supervisor does the work.

mod cat;
mod check;
mod daemon;
mod daemon_reload;
mod dependencies;
mod enable;
mod jobs;
mod kill;
mod list;
mod logs;
mod notify;
mod register;
mod reset_failed;
mod show;
mod shutdown;
mod status;
mod systemctl;
pub(crate) mod systemd;

use transom_supervisor::control::client::{self, AskError};
use transom_supervisor::control::protocol::{Answer, Request, RequestError, UnitStatus};
use transom_supervisor::unit::{UnitName, UnitPattern};

use crate::context::Context;
use crate::failure::{Advice as _, Exit};

pub(crate) use systemctl::run as run_systemctl;

const EXAMPLES: &str = "\
Examples:
  transom service status                    What runs here
  transom service start web                 Start web.service and wait until it runs
  transom service enable --now web          Start it now and at every boot
  transom service logs -f web               Follow what it prints
  transom service list-timers               When timers fire next

The verbs are those of systemctl. A copy or link of this program that is named `systemctl` takes
them directly: `systemctl start web`.";

/// systemctl's exit code for a unit that does not exist, when something should be done to it.
const NO_SUCH_UNIT: Exit = Exit::Status(5);

/// Run and control services from systemd unit files, on Linux and Windows
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(super) struct Service {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Start(jobs::Start),
    Stop(jobs::Stop),
    Restart(jobs::Restart),
    TryRestart(jobs::TryRestart),
    Reload(jobs::Reload),
    #[command(alias = "try-reload-or-restart")]
    ReloadOrRestart(jobs::ReloadOrRestart),
    Kill(kill::Kill),
    Status(status::Status),
    Show(show::Show),
    Cat(cat::Cat),
    Logs(logs::Logs),
    IsActive(check::IsActive),
    IsEnabled(check::IsEnabled),
    IsFailed(check::IsFailed),
    Enable(enable::Enable),
    Disable(enable::Disable),
    Reenable(enable::Reenable),
    Mask(enable::Mask),
    Unmask(enable::Unmask),
    ListUnits(list::ListUnits),
    ListUnitFiles(list::ListUnitFiles),
    ListTimers(list::ListTimers),
    ListDependencies(dependencies::ListDependencies),
    DaemonReload(daemon_reload::DaemonReload),
    ResetFailed(reset_failed::ResetFailed),
    Daemon(daemon::Daemon),
    Shutdown(shutdown::Shutdown),
    Install(register::Install),
    Uninstall(register::Uninstall),
    Notify(notify::Notify),
    #[command(hide = true)]
    Keeper(daemon::Keeper),
}

impl Service {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.verb.run(cx)
    }
}

impl Verb {
    fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        match self {
            Self::Start(verb) => verb.run(cx),
            Self::Stop(verb) => verb.run(cx),
            Self::Restart(verb) => verb.run(cx),
            Self::TryRestart(verb) => verb.run(cx),
            Self::Reload(verb) => verb.run(cx),
            Self::ReloadOrRestart(verb) => verb.run(cx),
            Self::Kill(verb) => verb.run(cx),
            Self::Status(verb) => verb.run(cx),
            Self::Show(verb) => verb.run(cx),
            Self::Cat(verb) => verb.run(cx),
            Self::Logs(verb) => verb.run(cx),
            Self::IsActive(verb) => verb.run(cx),
            Self::IsEnabled(verb) => verb.run(cx),
            Self::IsFailed(verb) => verb.run(cx),
            Self::Enable(verb) => verb.run(cx),
            Self::Disable(verb) => verb.run(cx),
            Self::Reenable(verb) => verb.run(cx),
            Self::Mask(verb) => verb.run(cx),
            Self::Unmask(verb) => verb.run(cx),
            Self::ListUnits(verb) => verb.run(cx),
            Self::ListUnitFiles(verb) => verb.run(cx),
            Self::ListTimers(verb) => verb.run(cx),
            Self::ListDependencies(verb) => verb.run(cx),
            Self::DaemonReload(verb) => verb.run(cx),
            Self::ResetFailed(verb) => verb.run(cx),
            Self::Daemon(verb) => verb.run(cx),
            Self::Shutdown(verb) => verb.run(cx),
            Self::Install(verb) => verb.run(cx),
            Self::Uninstall(verb) => verb.run(cx),
            Self::Notify(verb) => verb.run(cx),
            Self::Keeper(verb) => verb.run(cx),
        }
    }
}

/// A runtime for one conversation, or for the daemon.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

/// Asks the daemon. What it refuses comes back as an error with the way forward.
fn ask(cx: &Context, request: &Request) -> anyhow::Result<Answer> {
    let answer = match runtime()?.block_on(client::ask(&cx.layout, request)) {
        Ok(answer) => answer,
        Err(error @ AskError::NotRunning(_)) => {
            return Err(error).exit(Exit::NotRunning).hint(
                "start it with `transom service daemon`, or at every boot with `transom service \
                 install`",
            );
        }
        Err(error) => {
            return Err(error).hint("see what became of it with `transom service status`");
        }
    };
    match answer {
        Answer::Failed { error } => Err(refused(error)),
        answer => Ok(answer),
    }
}

fn refused(error: RequestError) -> anyhow::Error {
    let (exit, hint) = match &error {
        RequestError::NotFound { .. } => (
            NO_SUCH_UNIT,
            "see the units there are with `transom service list-unit-files`".to_owned(),
        ),
        RequestError::Masked { unit } => (
            Exit::Failure,
            format!("allow it again with `transom service unmask {unit}`"),
        ),
        RequestError::BadUnit { unit, .. } => (
            Exit::Failure,
            format!(
                "mend the file and run `transom service daemon-reload`; see it with `transom service cat {unit}`"
            ),
        ),
        RequestError::Cycle { .. } => (
            Exit::Failure,
            "take one After= or Before= out of the cycle, then run `transom service daemon-reload`"
                .to_owned(),
        ),
        RequestError::NotRunning { unit } => (
            Exit::Failure,
            format!("start it with `transom service start {unit}`"),
        ),
        RequestError::NotPossible { unit, .. } => (
            Exit::Failure,
            format!("see its file with `transom service cat {unit}`"),
        ),
        RequestError::BadRequest { .. } => (
            Exit::Failure,
            "run `transom service --help` for what can be asked".to_owned(),
        ),
    };
    let failed: anyhow::Result<()> = Err(error).exit(exit).hint(hint);
    match failed {
        Err(error) => error,
        Ok(()) => anyhow::anyhow!("refused"),
    }
}

/// The statuses of `names`, unknown ones included.
fn inspect(cx: &Context, names: &[String]) -> anyhow::Result<Vec<UnitStatus>> {
    match ask(
        cx,
        &Request::Inspect {
            units: names.to_vec(),
        },
    )? {
        Answer::Units { units } => Ok(units),
        other => Err(unexpected(&other)),
    }
}

/// The statuses of all loaded units that match.
fn list(cx: &Context, patterns: &[String]) -> anyhow::Result<Vec<UnitStatus>> {
    match ask(
        cx,
        &Request::List {
            patterns: patterns.to_vec(),
        },
    )? {
        Answer::Units { units } => Ok(units),
        other => Err(unexpected(&other)),
    }
}

/// What was named on the command line: patterns become the units that match now.
fn resolve(cx: &Context, words: &[String]) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for word in words {
        if transom_supervisor::unit::name::is_glob(word) {
            names.extend(
                list(cx, std::slice::from_ref(word))?
                    .into_iter()
                    .map(|unit| unit.name),
            );
        } else {
            let name = UnitName::from_command_line(word)
                .exit(Exit::Usage)
                .hint("a unit is named like web.service, backup.timer or multi-user.target")?;
            names.push(name.to_string());
        }
    }
    Ok(names)
}

/// Whether a name matches any of the patterns; all match when there are none.
fn matches(patterns: &[String], name: &UnitName) -> bool {
    patterns.is_empty()
        || patterns
            .iter()
            .any(|pattern| UnitPattern::new(pattern).matches(name))
}

fn unexpected(answer: &Answer) -> anyhow::Error {
    anyhow::anyhow!("the supervisor answered something else than what was asked: {answer:?}")
}
