//! What the contract runs on: a runtime, and a way to have containers play roles.

use std::sync::Arc;

use camino::Utf8Path;
use futures::future::BoxFuture;
use transom_runtime::{ContainerSpec, Runtime};

/// What a program in a container does.
#[derive(Debug, Clone)]
pub(crate) enum Role {
    /// Prints nothing.
    Exit(i32),
    /// Prints `line 1`… to its output and `error 1`… to its errors, then exits with 0.
    Lines(usize),
    /// Prints `ready` and runs, until it is told to end.
    Run,
    /// Prints `ready`, exits with 7 when it is asked to end.
    Polite,
    /// Prints `ready`, does not listen.
    Stubborn,
    /// Prints each line of its input, exits with 5 when that ends.
    Echo,
    /// Prints `ready`, gives back what it is told on a port of loopback.
    Serve(u16),
    /// Prints the value of a variable.
    Variable(String),
    /// Prints its arguments, a line each.
    Arguments(Vec<String>),
    /// No such program.
    Missing,
}

impl Role {
    /// The role as the helper program is told it.
    pub(crate) fn words(&self) -> Vec<String> {
        let words = match self {
            Self::Exit(code) => vec!["exit".to_owned(), code.to_string()],
            Self::Lines(count) => vec!["lines".to_owned(), count.to_string()],
            Self::Run => vec!["run".to_owned()],
            Self::Polite => vec!["polite".to_owned()],
            Self::Stubborn => vec!["stubborn".to_owned()],
            Self::Echo => vec!["echo".to_owned()],
            Self::Serve(port) => vec!["serve".to_owned(), port.to_string()],
            Self::Variable(name) => vec!["variable".to_owned(), name.clone()],
            Self::Arguments(arguments) => {
                let mut words = vec!["arguments".to_owned()];
                words.extend(arguments.iter().cloned());
                words
            }
            Self::Missing => vec!["missing".to_owned()],
        };
        std::iter::once("role".to_owned()).chain(words).collect()
    }
}

/// What not every runtime can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ability {
    /// Programs are asked to end by a signal, so that one that does not care ends with 143.
    Signals,
    /// Terminals.
    Terminal,
}

pub(crate) trait Backend: Send + Sync {
    /// Opens the runtime; again and again on the same state.
    fn open(&self) -> BoxFuture<'_, Arc<dyn Runtime>>;
    /// A place for logs, gone with the backend.
    fn folder(&self) -> &Utf8Path;
    /// A name that can be pulled.
    fn image(&self) -> String;
    /// Program and arguments that play a role.
    fn command(&self, role: &Role) -> Vec<String>;
    fn can(&self, ability: Ability) -> bool;

    fn container(&self, name: &str, role: &Role) -> ContainerSpec {
        container(self, name, role)
    }
}

/// A container that plays a role, with nothing that only one runtime needs.
pub(crate) fn container(
    backend: &(impl Backend + ?Sized),
    name: &str,
    role: &Role,
) -> ContainerSpec {
    let mut command = backend.command(role);
    let arguments = command.split_off(1);
    ContainerSpec {
        name: name.to_owned(),
        image: backend.image(),
        image_name: backend.image(),
        command,
        arguments,
        log_path: format!("{name}/0.log").into(),
        ..ContainerSpec::default()
    }
}
