//! What a command's handler is given. Invariant: made once per invocation, after every setting has
//! been checked, so a handler never meets a bad option.

use std::sync::Arc;

use transom_model::Os;
use transom_model::layout::Layout;

use crate::environment::{self, Environment};
use crate::invocation::Invocation;
use crate::output::{Colors, Output, Relay, Shown};
use crate::progress::{Mode, Progress};
use crate::settings::Settings;

/// The surroundings of a command. Clones share the streams.
#[derive(Clone)]
pub struct Context {
    /// The system we run on.
    pub host: Os,
    /// Where things live on this machine, or below `--root`.
    pub layout: Layout,
    pub settings: Settings,
    pub environment: Environment,
    pub out: Arc<Output>,
    /// For what other programs printed.
    pub relay: Arc<Relay>,
    pub progress: Progress,
}

impl Context {
    pub fn new(invocation: &Invocation, settings: Settings) -> Self {
        let environment = invocation.environment.clone();
        let colors = Colors::decide(
            settings.color.value,
            &environment,
            invocation.stdout_is_terminal,
            invocation.stderr_is_terminal,
        );
        let shown = Shown {
            now: invocation.now,
            width: invocation.width.filter(|_| invocation.stdout_is_terminal),
            unicode: environment.shows_unicode(),
        };
        let out = Output::new(
            settings.output.value,
            shown,
            settings.quiet.value,
            invocation.stdout.open(colors.stdout),
            invocation.stderr.open(colors.stderr),
        );
        let moving = invocation.stderr_is_terminal && !environment.is(&environment::TERM, "dumb");
        let mode = match (settings.quiet.value || !settings.progress.value, moving) {
            (true, _) => Mode::Silent,
            (false, true) => Mode::Moving,
            (false, false) => Mode::Lines,
        };
        Self {
            host: invocation.host,
            layout: Layout::rooted(invocation.host, &settings.root.value),
            progress: Progress::new(mode, invocation.stderr.open(colors.stderr)),
            settings,
            environment,
            out: Arc::new(out),
            relay: Arc::new(Relay::new(&invocation.stdout, &invocation.stderr)),
        }
    }
}
