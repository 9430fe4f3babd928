//! `start`, `stop`, `restart`, `try-restart`, `reload`, `reload-or-restart`. Invariant: returns when
//! it has happened, or says why it did not.

use transom_supervisor::control::protocol::{Answer, JobOutcome, JobResult, JobVerb, Request};

use super::{ask, resolve, systemd, unexpected};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

#[derive(Debug, clap::Args)]
struct Units {
    /// Units, such as web, web.service or 'web*'
    #[arg(required = true, value_name = "UNIT")]
    units: Vec<String>,

    /// Return at once, not when it has happened
    #[arg(long)]
    no_block: bool,
}

/// Start units
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service start web\n  transom service start --no-block backup"
)]
pub(super) struct Start {
    #[command(flatten)]
    units: Units,
}

/// Stop units
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom service stop web\n  transom service stop 'worker@*'")]
pub(super) struct Stop {
    #[command(flatten)]
    units: Units,
}

/// Stop units and start them again; start those that do not run
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom service restart web")]
pub(super) struct Restart {
    #[command(flatten)]
    units: Units,
}

/// Restart those of the units that run
#[derive(Debug, clap::Args)]
#[command(visible_alias = "condrestart")]
#[command(after_help = "Examples:\n  transom service try-restart 'web*'")]
pub(super) struct TryRestart {
    #[command(flatten)]
    units: Units,
}

/// Have units read their configuration again
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom service reload web")]
pub(super) struct Reload {
    #[command(flatten)]
    units: Units,
}

/// Reload units that can, restart the others
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom service reload-or-restart web")]
pub(super) struct ReloadOrRestart {
    #[command(flatten)]
    units: Units,
}

impl Start {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.units.run(cx, JobVerb::Start)
    }
}

impl Stop {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.units.run(cx, JobVerb::Stop)
    }
}

impl Restart {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.units.run(cx, JobVerb::Restart)
    }
}

impl TryRestart {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.units.run(cx, JobVerb::TryRestart)
    }
}

impl Reload {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.units.run(cx, JobVerb::Reload)
    }
}

impl ReloadOrRestart {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.units.run(cx, JobVerb::ReloadOrRestart)
    }
}

impl Units {
    fn run(self, cx: &Context, verb: JobVerb) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            let flags = if self.no_block {
                &["--no-block"][..]
            } else {
                &[]
            };
            return systemd::systemctl(name_of(verb), flags, &self.units);
        }
        let units = resolve(cx, &self.units)?;
        run_jobs(cx, verb, units, self.no_block)
    }
}

/// Has jobs run, and turns what became of them into an exit code or an error.
pub(super) fn run_jobs(
    cx: &Context,
    verb: JobVerb,
    units: Vec<String>,
    no_block: bool,
) -> anyhow::Result<Exit> {
    if units.is_empty() {
        return Ok(Exit::Success);
    }
    match ask(
        cx,
        &Request::Job {
            verb,
            units,
            no_block,
        },
    )? {
        Answer::Jobs { outcomes, warnings } => {
            for warning in warnings {
                cx.out.warn(&warning);
            }
            judge(&outcomes)
        }
        other => Err(unexpected(&other)),
    }
}

fn judge(outcomes: &[JobOutcome]) -> anyhow::Result<Exit> {
    let failed: Vec<&JobOutcome> = outcomes
        .iter()
        .filter(|outcome| {
            !matches!(
                outcome.result,
                JobResult::Done | JobResult::Queued | JobResult::Skipped
            )
        })
        .collect();
    let Some(first) = failed.first() else {
        return Ok(Exit::Success);
    };
    let others = match failed.len() {
        1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    let what = match first.result {
        JobResult::Canceled => "was canceled by a later request",
        JobResult::Timeout => "timed out",
        JobResult::Dependency => "failed because of another unit",
        _ => "failed",
    };
    let unit = &first.unit;
    let error = anyhow::anyhow!("the job for {unit} {what}{others}");
    let error = match &first.reason {
        Some(reason) => anyhow::anyhow!(reason.clone()).context(error.to_string()),
        None => error,
    };
    Err(error).hint(format!(
        "see `transom service status {unit}` and `transom service logs {unit}`"
    ))
}

pub(super) fn name_of(verb: JobVerb) -> &'static str {
    match verb {
        JobVerb::Start => "start",
        JobVerb::Stop => "stop",
        JobVerb::Restart => "restart",
        JobVerb::TryRestart => "try-restart",
        JobVerb::Reload => "reload",
        JobVerb::ReloadOrRestart => "reload-or-restart",
    }
}
