//! `kill`: a signal to the processes of a unit.

use transom_supervisor::control::protocol::{Answer, Request, Whom};

use super::{ask, resolve, systemd, unexpected};
use crate::context::Context;
use crate::failure::Exit;

/// Send a signal to the processes of units
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service kill -s HUP web\n  transom service kill --kill-whom main web\n\nOn Windows only KILL is a signal; TERM, INT and HUP end the input of the service instead,\nwhich asks it to stop."
)]
pub(super) struct Kill {
    #[arg(required = true, value_name = "UNIT")]
    units: Vec<String>,

    /// The signal, by name or number
    #[arg(short, long, default_value = "SIGTERM")]
    signal: String,

    /// Which processes
    #[arg(
        long = "kill-whom",
        value_enum,
        default_value = "all",
        alias = "kill-who"
    )]
    whom: WhomArgument,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum WhomArgument {
    Main,
    Control,
    All,
}

impl Kill {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let (whom, name) = match self.whom {
            WhomArgument::Main => (Whom::Main, "main"),
            WhomArgument::Control => (Whom::Control, "control"),
            WhomArgument::All => (Whom::All, "all"),
        };
        if systemd::runs(cx) {
            let whom = format!("--kill-whom={name}");
            let signal = format!("--signal={}", self.signal);
            return systemd::systemctl("kill", &[&whom, &signal], &self.units);
        }
        let units = resolve(cx, &self.units)?;
        match ask(
            cx,
            &Request::Kill {
                units,
                signal: self.signal,
                whom,
            },
        )? {
            Answer::Done { .. } => Ok(Exit::Success),
            other => Err(unexpected(&other)),
        }
    }
}
