//! `daemon`: the supervisor itself, in the foreground or as a service of the system; `keeper`: the
//! process that holds one service for it.

use anyhow::Context as _;
use camino::Utf8PathBuf;
use transom_supervisor::daemon::{Config, DaemonError};
use transom_supervisor::logs::Rotation;
use transom_supervisor::{daemon, keeper};

use super::{register, runtime, systemd};
use crate::build_info::BuildInfo;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::long_running::{self, Stop};

/// Run the supervisor in the foreground
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service daemon\n  transom service daemon --default-target web.target\n\nIt stops all units and ends when it is told to stop (SIGTERM, Ctrl-C, a stop of its Windows\nservice). When it is killed, services go on running; the next one takes them over."
)]
pub(super) struct Daemon {
    /// What to start after boot
    #[arg(long, value_name = "UNIT", default_value = "default.target")]
    default_target: String,

    /// The service manager started this process; written by `transom service install`
    #[arg(long, hide = true)]
    registered: bool,
}

impl Daemon {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            return Err(anyhow::anyhow!(
                "systemd looks after the services of this machine"
            ))
            .hint("use `transom service start UNIT`: it drives systemd here");
        }
        let config = self.config(cx)?;
        long_running::run(cx, register::NAME, self.registered, move |stop| {
            supervise(config, stop)
        })
    }

    fn config(&self, cx: &Context) -> anyhow::Result<Config> {
        let program = std::env::current_exe().context("could not find this program's own file")?;
        let program = Utf8PathBuf::from_path_buf(program)
            .map_err(|path| anyhow::anyhow!("the path `{}` is not Unicode", path.display()))?;
        Ok(Config {
            os: cx.host,
            layout: cx.layout.clone(),
            keeper_program: program,
            keeper_args: vec!["service".into(), "keeper".into()],
            rotation: Rotation::default(),
            default_target: self.default_target.parse().exit(Exit::Usage)?,
            environment: cx.environment.all(),
            version: BuildInfo::current().version.to_owned(),
        })
    }
}

fn supervise(config: Config, stop: &Stop) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let ready = stop.token();
        let ended = daemon::run(config, move || ready.ready(), stop.requested()).await;
        match ended {
            Err(error @ DaemonError::AlreadyRunning { .. }) => {
                Err(error).hint("see it with `transom service status`")
            }
            ended => Ok(ended?),
        }
    })
}

/// Hold the processes of one service for the supervisor
#[derive(Debug, clap::Args)]
pub(super) struct Keeper {
    /// The keeper's own folder
    folder: Utf8PathBuf,
}

impl Keeper {
    pub(super) fn run(self, _cx: &Context) -> anyhow::Result<Exit> {
        runtime()?.block_on(keeper::run(&self.folder))?;
        Ok(Exit::Success)
    }
}
