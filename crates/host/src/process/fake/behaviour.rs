//! What a make-believe program does. Data only; `FakeProcesses` acts it out.

use std::time::Duration;

use super::super::Exit;

/// A program without code: what it prints, when it ends, and how it takes being told to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behaviour {
    pub(super) output: Vec<String>,
    pub(super) errors: Vec<String>,
    pub(super) echo: Echo,
    pub(super) ends: Option<(Duration, Exit)>,
    pub(super) on_terminate: Reaction,
    pub(super) on_end_of_input: Option<i32>,
    pub(super) children: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Echo {
    Nothing,
    Arguments,
    Environment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    Die,
    Exit(i32),
    Ignore,
}

impl Behaviour {
    /// Runs until it is told to stop.
    pub fn runs() -> Self {
        Self {
            output: Vec::new(),
            errors: Vec::new(),
            echo: Echo::Nothing,
            ends: None,
            on_terminate: Reaction::Die,
            on_end_of_input: None,
            children: 0,
        }
    }

    /// Ends by itself at once, or `after` a time.
    pub fn exits(code: i32) -> Self {
        Self {
            ends: Some((Duration::ZERO, Exit::Code(code))),
            ..Self::runs()
        }
    }

    /// Dies of a signal by itself.
    pub fn dies(signal: i32) -> Self {
        Self {
            ends: Some((Duration::ZERO, Exit::Signal(signal))),
            ..Self::runs()
        }
    }

    /// Delays the end.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        if let Some((end, _)) = &mut self.ends {
            *end = delay;
        }
        self
    }

    #[must_use]
    pub fn prints(mut self, line: impl Into<String>) -> Self {
        self.output.push(line.into());
        self
    }

    #[must_use]
    pub fn prints_error(mut self, line: impl Into<String>) -> Self {
        self.errors.push(line.into());
        self
    }

    /// Prints its arguments, one per line.
    #[must_use]
    pub fn echoes_arguments(mut self) -> Self {
        self.echo = Echo::Arguments;
        self
    }

    /// Prints its environment, one `name=value` per line.
    #[must_use]
    pub fn echoes_environment(mut self) -> Self {
        self.echo = Echo::Environment;
        self
    }

    #[must_use]
    pub fn ignores_terminate(mut self) -> Self {
        self.on_terminate = Reaction::Ignore;
        self
    }

    /// Ends in good order when told to terminate.
    #[must_use]
    pub fn exits_on_terminate(mut self, code: i32) -> Self {
        self.on_terminate = Reaction::Exit(code);
        self
    }

    /// Ends in good order when its input ends.
    #[must_use]
    pub fn exits_on_end_of_input(mut self, code: i32) -> Self {
        self.on_end_of_input = Some(code);
        self
    }

    /// Starts children that outlive it and never end by themselves.
    #[must_use]
    pub fn forks(mut self, children: usize) -> Self {
        self.children = children;
        self
    }
}
