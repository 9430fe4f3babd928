//! `enable`, `disable`, `reenable`, `mask`, `unmask`: links next to unit files. They work without the
//! daemon, and tell it when it is there.

use transom_supervisor::control::protocol::{JobVerb, Request};
use transom_supervisor::unit::install::{
    InstallError, InstallPlan, execute, plan_disable, plan_enable, plan_mask, plan_reenable,
    plan_unmask,
};
use transom_supervisor::unit::load::UnitStore;
use transom_supervisor::unit::{SpecifierContext, UnitName};

use super::jobs::{name_of, run_jobs};
use super::{NO_SUCH_UNIT, ask, systemd};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

#[derive(Debug, clap::Args)]
struct Files {
    /// Units, such as web or web.service
    #[arg(required = true, value_name = "UNIT")]
    units: Vec<String>,

    /// Start or stop them now, too
    #[arg(long)]
    now: bool,

    /// Only until the next boot
    #[arg(long)]
    runtime: bool,

    /// Return at once with --now, not when it has happened
    #[arg(long)]
    no_block: bool,
}

/// Have units start at every boot
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service enable web\n  transom service enable --now web"
)]
pub(super) struct Enable {
    #[command(flatten)]
    files: Files,
}

/// Have units not start at boot any more
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom service disable --now web")]
pub(super) struct Disable {
    #[command(flatten)]
    files: Files,
}

/// Disable units and enable them again, after their [Install] section has changed
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom service reenable web")]
pub(super) struct Reenable {
    #[command(flatten)]
    files: Files,
}

/// Make it impossible to start units
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom service mask --now web")]
pub(super) struct Mask {
    #[command(flatten)]
    files: Files,
}

/// Make it possible again to start units
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom service unmask web")]
pub(super) struct Unmask {
    #[command(flatten)]
    files: Files,
}

type Planner = fn(&UnitStore, &[UnitName], bool) -> Result<InstallPlan, InstallError>;

impl Enable {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.files
            .run(cx, "enable", plan_enable, Some(JobVerb::Start))
    }
}

impl Disable {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.files
            .run(cx, "disable", plan_disable, Some(JobVerb::Stop))
    }
}

impl Reenable {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.files
            .run(cx, "reenable", plan_reenable, Some(JobVerb::Start))
    }
}

impl Mask {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.files.run(cx, "mask", plan_mask, Some(JobVerb::Stop))
    }
}

impl Unmask {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        self.files.run(cx, "unmask", plan_unmask, None)
    }
}

impl Files {
    fn run(
        self,
        cx: &Context,
        verb: &str,
        planner: Planner,
        at_once: Option<JobVerb>,
    ) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            let chosen = [
                (self.now, "--now"),
                (self.runtime, "--runtime"),
                (self.no_block, "--no-block"),
            ];
            let flags: Vec<&str> = chosen
                .iter()
                .filter(|(on, _)| *on)
                .map(|(_, f)| *f)
                .collect();
            return systemd::systemctl(verb, &flags, &self.units);
        }
        let store = unit_store(cx)?;
        let names = self
            .units
            .iter()
            .map(|word| UnitName::from_command_line(word))
            .collect::<Result<Vec<_>, _>>()
            .exit(Exit::Usage)?;
        let plan = match planner(&store, &names, self.runtime) {
            Ok(plan) => plan,
            Err(error @ InstallError::NotFound { .. }) => {
                return Err(error)
                    .exit(NO_SUCH_UNIT)
                    .hint("see the units there are with `transom service list-unit-files`");
            }
            Err(error) => return Err(error.into()),
        };
        execute(&plan, store.folders())?;
        for operation in &plan.operations {
            cx.out.remark(&operation.to_string());
        }
        for notice in &plan.notices {
            cx.out.remark(notice);
        }
        let running = tell_daemon(cx);
        match at_once.filter(|_| self.now) {
            Some(verb) if running => {
                tracing::debug!(verb = name_of(verb), "as asked with --now");
                let units = names.iter().map(ToString::to_string).collect();
                run_jobs(cx, verb, units, self.no_block)
            }
            // Says that there is no daemon, and what to do.
            Some(_) => ask(cx, &Request::Ping).map(|_| Exit::Success),
            None => Ok(Exit::Success),
        }
    }
}

/// Has the daemon read the files again; says whether there is one.
fn tell_daemon(cx: &Context) -> bool {
    ask(cx, &Request::DaemonReload).is_ok()
}

/// The unit files of this machine, or of the one below `--root`.
pub(super) fn unit_store(cx: &Context) -> anyhow::Result<UnitStore> {
    let specifiers = SpecifierContext::places(cx.host);
    UnitStore::load(&cx.layout.units, specifiers)
        .hint("unit files have to be readable for whoever asks about them")
}
