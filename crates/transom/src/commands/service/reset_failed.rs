//! `reset-failed`: forgets failures, and how often units were started.

use transom_supervisor::control::protocol::{Answer, Request};

use super::{ask, resolve, systemd, unexpected};
use crate::context::Context;
use crate::failure::Exit;

/// Forget that units failed, of all units if none is named
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service reset-failed\n  transom service reset-failed web"
)]
pub(super) struct ResetFailed {
    #[arg(value_name = "UNIT")]
    units: Vec<String>,
}

impl ResetFailed {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            return systemd::systemctl("reset-failed", &[], &self.units);
        }
        let units = resolve(cx, &self.units)?;
        match ask(cx, &Request::ResetFailed { units })? {
            Answer::Done { .. } => Ok(Exit::Success),
            other => Err(unexpected(&other)),
        }
    }
}
