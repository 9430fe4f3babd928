//! When to use colours. Invariant: decided once per stream, from values, in one documented order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::environment::{self, Environment};

/// When to use colours.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ColorMode {
    /// On a terminal, unless a variable says otherwise
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The decision for both streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colors {
    pub stdout: bool,
    pub stderr: bool,
}

impl Colors {
    /// `mode` first; then `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR=0`, `TERM=dumb`; then the terminal.
    pub fn decide(
        mode: ColorMode,
        environment: &Environment,
        stdout_is_terminal: bool,
        stderr_is_terminal: bool,
    ) -> Self {
        let decide = |terminal| match mode {
            ColorMode::Always => true,
            ColorMode::Never => false,
            ColorMode::Auto => wanted(environment).unwrap_or(terminal),
        };
        Self {
            stdout: decide(stdout_is_terminal),
            stderr: decide(stderr_is_terminal),
        }
    }
}

/// What the variables say, if they say anything.
fn wanted(environment: &Environment) -> Option<bool> {
    let forced = environment.is_set(&environment::CLICOLOR_FORCE)
        && !environment.is(&environment::CLICOLOR_FORCE, "0");
    if environment.is_set(&environment::NO_COLOR) {
        Some(false)
    } else if forced {
        Some(true)
    } else if environment.is(&environment::CLICOLOR, "0")
        || environment.is(&environment::TERM, "dumb")
    {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use transom_model::os::Os;

    use super::*;

    fn on_terminal(mode: ColorMode, variables: &[(&str, &str)]) -> bool {
        let environment = Environment::new(Os::Linux, variables.iter().copied());
        Colors::decide(mode, &environment, true, true).stdout
    }

    fn in_pipe(mode: ColorMode, variables: &[(&str, &str)]) -> bool {
        let environment = Environment::new(Os::Linux, variables.iter().copied());
        Colors::decide(mode, &environment, false, false).stdout
    }

    #[test]
    fn colours_follow_the_terminal_unless_a_variable_says_otherwise() {
        assert!(on_terminal(ColorMode::Auto, &[]));
        assert!(!in_pipe(ColorMode::Auto, &[]));
        assert!(!on_terminal(ColorMode::Auto, &[("NO_COLOR", "1")]));
        assert!(on_terminal(ColorMode::Auto, &[("NO_COLOR", "")]));
        assert!(in_pipe(ColorMode::Auto, &[("CLICOLOR_FORCE", "1")]));
        assert!(!in_pipe(ColorMode::Auto, &[("CLICOLOR_FORCE", "0")]));
        assert!(!on_terminal(ColorMode::Auto, &[("CLICOLOR", "0")]));
        assert!(!on_terminal(ColorMode::Auto, &[("TERM", "dumb")]));
        let both = [("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")];
        assert!(!in_pipe(ColorMode::Auto, &both));
    }

    #[test]
    fn the_flag_wins_over_every_variable() {
        assert!(in_pipe(ColorMode::Always, &[("NO_COLOR", "1")]));
        assert!(!on_terminal(ColorMode::Never, &[("CLICOLOR_FORCE", "1")]));
    }

    #[test]
    fn each_stream_is_decided_by_itself() {
        let environment = Environment::new(Os::Linux, [("A", "b")]);
        let colors = Colors::decide(ColorMode::Auto, &environment, false, true);
        assert_eq!((colors.stdout, colors.stderr), (false, true));
    }
}
