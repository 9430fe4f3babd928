//! `shutdown`: all units go down in order, then the supervisor ends.

use transom_supervisor::control::protocol::{Answer, Request};

use super::{ask, systemd, unexpected};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// Stop all units in order, then end the supervisor
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service shutdown\n\nReturns when it has begun; the supervisor ends when the last unit is down."
)]
pub(super) struct Shutdown {}

impl Shutdown {
    #[expect(clippy::unused_self, reason = "every verb is run the same way")]
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            return Err(anyhow::anyhow!(
                "systemd looks after the services of this machine"
            ))
            .hint("stop units with `transom service stop UNIT`");
        }
        match ask(cx, &Request::Shutdown)? {
            Answer::Done { .. } => Ok(Exit::Success),
            other => Err(unexpected(&other)),
        }
    }
}
