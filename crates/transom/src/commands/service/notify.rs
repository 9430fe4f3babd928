//! `notify`: a script tells its supervisor that it is ready.

use transom_host::notify;

use crate::context::Context;
use crate::environment;
use crate::failure::{Advice as _, Exit};

/// Tell the supervisor how this service is, from within the service
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service notify --ready\n  transom service notify --ready --status 'listening on 8080'\n  transom service notify WATCHDOG=1"
)]
pub(super) struct Notify {
    /// The service is up: READY=1
    #[arg(long)]
    ready: bool,

    /// What `status` shows
    #[arg(long, value_name = "TEXT")]
    status: Option<String>,

    /// Anything else, as NAME=value
    #[arg(value_name = "NAME=VALUE")]
    lines: Vec<String>,
}

impl Notify {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let address = cx
            .environment
            .text(&environment::NOTIFY_SOCKET)?
            .ok_or_else(|| anyhow::anyhow!("this process was not started by a supervisor"))
            .hint("NOTIFY_SOCKET is set for services with Type=notify or NotifyAccess=")?;
        let mut message: Vec<String> = Vec::new();
        message.extend(self.ready.then(|| "READY=1".to_owned()));
        message.extend(self.status.map(|status| format!("STATUS={status}")));
        message.extend(self.lines);
        notify::send(address, &message.join("\n"))?;
        Ok(Exit::Success)
    }
}
