//! `daemon-reload`: unit files are read again. What runs goes on running.

use transom_supervisor::control::protocol::{Answer, Request};

use super::{ask, systemd, unexpected};
use crate::context::Context;
use crate::failure::Exit;

/// Read all unit files again
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service daemon-reload\n\nEverything that is wrong with the files is printed, with file and line."
)]
pub(super) struct DaemonReload {}

impl DaemonReload {
    #[expect(clippy::unused_self, reason = "every verb is run the same way")]
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            return systemd::systemctl("daemon-reload", &[], &[]);
        }
        match ask(cx, &Request::DaemonReload)? {
            Answer::Done { warnings } => {
                for warning in warnings {
                    cx.out.warn(&warning);
                }
                Ok(Exit::Success)
            }
            other => Err(unexpected(&other)),
        }
    }
}
