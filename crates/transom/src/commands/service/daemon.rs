//! `daemon`: the supervisor itself, in the foreground or as a service of the system; `keeper`: the
//! process that holds one service for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use camino::Utf8PathBuf;
use transom_host::service::{Ran, ServiceMain, StopToken, run_as_service};
use transom_model::os::Os;
use transom_supervisor::daemon::{Config, DaemonError};
use transom_supervisor::logs::Rotation;
use transom_supervisor::{daemon, keeper};

use super::{register, runtime, systemd};
use crate::build_info::BuildInfo;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// Run the supervisor in the foreground
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It stops all units and ends when it is told to stop (SIGTERM, Ctrl-C, a stop of its Windows\nservice). When it is killed, services go on running; the next one takes them over.\n\nExamples:\n  transom service daemon\n  transom service daemon --default-target web.target"
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
        // The service manager may call us on a thread of its own, and wants a number.
        let failure: Arc<Mutex<Option<anyhow::Error>>> = Arc::default();
        let noted = Arc::clone(&failure);
        let console = Arc::new(AtomicBool::new(false));
        let in_console = Arc::clone(&console);
        let main: ServiceMain =
            Box::new(
                move |stop: StopToken| match supervise(config, &stop, &in_console) {
                    Ok(()) => 0,
                    Err(error) => {
                        *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        1
                    }
                },
            );
        // Windows lets a process wait for a service manager that never started it.
        let ran = if cx.host == Os::Windows && !self.registered {
            Ran::NotStartedByManager(main)
        } else {
            run_as_service(register::NAME, main)?
        };
        let code = match ran {
            Ran::Finished(code) => code,
            Ran::NotStartedByManager(main) => {
                console.store(true, Ordering::Relaxed);
                main(StopToken::new())
            }
        };
        let failed = failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match failed {
            Some(error) => Err(error),
            None if code == 0 => Ok(Exit::Success),
            None => Ok(Exit::Failure),
        }
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

/// Runs the daemon. In a console there is no service manager to pass an interrupt on.
fn supervise(config: Config, stop: &StopToken, console: &AtomicBool) -> anyhow::Result<()> {
    let console = console.load(Ordering::Relaxed);
    runtime()?.block_on(async {
        let ready = stop.clone();
        let told = async {
            tokio::select! {
                () = stop.stopped() => {}
                _ = tokio::signal::ctrl_c(), if console => {}
            }
        };
        let ended = daemon::run(config, move || ready.ready(), told).await;
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
