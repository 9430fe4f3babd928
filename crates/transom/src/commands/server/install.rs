//! `transom server install`, `uninstall`: the server as a service of the system.

use super::run::{NAME, Run};
use crate::commands::registration::{self, Role, Words};
use crate::context::Context;
use crate::failure::Exit;

/// Register the server with the system, so that it comes up at boot
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom server install --now\n  transom server install --listen 0.0.0.0:6443 --name api.example.org --dry-run\n\nA systemd unit on Linux, a service on Windows. Once more with other flags changes them."
)]
pub(super) struct Install {
    #[command(flatten)]
    run: Run,

    /// Start it now, too
    #[arg(long)]
    now: bool,

    /// Print what would be registered, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Take the registration of the server away; what it keeps stays
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom server uninstall")]
pub(super) struct Uninstall {}

impl Install {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let mut words = Words::default();
        words.places(cx)?;
        let mut arguments = vec!["server".to_owned(), "--registered".to_owned()];
        arguments.extend(words.done());
        arguments.extend(self.run.words()?);
        let role = Role {
            name: NAME,
            display: "Transom server",
            description: "Serves the Kubernetes API of a cluster",
        };
        let program = registration::own_program()?;
        let wanted = registration::registration(cx.host, &role, program, arguments);
        if self.dry_run {
            cx.out.write(&registration::render(cx.host, &wanted))?;
            return Ok(Exit::Success);
        }
        let manager = registration::manager(
            "have your init or container run `transom server`; it needs nothing else",
        )?;
        registration::close_folders(cx)?;
        registration::install(cx, &manager, &wanted, self.now)?;
        Ok(Exit::Success)
    }
}

impl Uninstall {
    #[expect(clippy::unused_self, reason = "every verb is run the same way")]
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        registration::uninstall(cx, NAME)?;
        Ok(Exit::Success)
    }
}
