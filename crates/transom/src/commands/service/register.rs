//! `install`, `uninstall`: the supervisor as a service of the system, so that it comes up at boot.

use std::time::Duration;

use anyhow::Context as _;
use camino::Utf8PathBuf;
use transom_host::service::{
    FailureActions, Native, Registration, ServiceError, ServiceManager as _, Start,
};

use super::systemd;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// The name under which the system knows the supervisor.
pub(super) const NAME: &str = "transom-supervisor";

const START_LIMIT: Duration = Duration::from_mins(1);

/// Register the supervisor with the system, so that it comes up at boot
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Registers a Windows service that is restarted when it fails. On Linux with systemd there is\nnothing to install: systemd does the work.\n\nExamples:\n  transom service install --now"
)]
pub(super) struct Install {
    /// Start it now, too
    #[arg(long)]
    now: bool,
}

/// Take the registration of the supervisor away
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Stops the supervisor, and with it all units.\n\nExamples:\n  transom service uninstall"
)]
pub(super) struct Uninstall {}

impl Install {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            return Err(anyhow::anyhow!(
                "systemd looks after the services of this machine"
            ))
            .hint("use `transom service enable UNIT`: it drives systemd here");
        }
        let program = std::env::current_exe().context("could not find this program's own file")?;
        let program = Utf8PathBuf::from_path_buf(program)
            .map_err(|path| anyhow::anyhow!("the path `{}` is not Unicode", path.display()))?;
        let registration = Registration {
            name: NAME.to_owned(),
            display: "Transom supervisor".to_owned(),
            description: "Runs the services of this Transom node".to_owned(),
            program,
            arguments: ["service", "daemon", "--registered"]
                .map(Into::into)
                .to_vec(),
            start: Start::Auto,
            dependencies: Vec::new(),
            failure: FailureActions {
                restart_delays: [1, 5, 30].map(Duration::from_secs).to_vec(),
                reset_after: Duration::from_hours(1),
            },
            user: None,
        };
        let manager = advise(Native::connect())?;
        advise(manager.install(&registration))?;
        cx.out
            .remark(&format!("{NAME} is registered and comes up at boot"));
        if self.now {
            advise(manager.start(NAME, START_LIMIT))?;
            cx.out.remark(&format!("{NAME} runs"));
        }
        Ok(Exit::Success)
    }
}

impl Uninstall {
    #[expect(clippy::unused_self, reason = "every verb is run the same way")]
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        advise(advise(Native::connect())?.uninstall(NAME))?;
        cx.out.remark(&format!("{NAME} is not registered any more"));
        Ok(Exit::Success)
    }
}

fn advise<T>(result: Result<T, ServiceError>) -> anyhow::Result<T> {
    match result {
        Err(error @ ServiceError::NoServiceManager) => Err(error).hint(
            "have your init or container run `transom service daemon`; it needs nothing else",
        ),
        other => Ok(other?),
    }
}
