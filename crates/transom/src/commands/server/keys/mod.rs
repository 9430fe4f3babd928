//! `transom server keys`: the keys that a server encrypts and signs with, from the first to the last day.
//!
//! Only looking is possible while the server runs: it has the keys in memory, and would go on with those.

mod list;
mod retire;
mod rotate;

use clap::{Subcommand, ValueEnum};
use transom_api::server::{KeyPurpose, KeysError, Options, StartError};

use super::{DataFolder, run};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::settings::server::StoreName;

/// List, renew and retire the keys that secrets, tokens and certificates are made with
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom server keys list\n  transom server keys rotate secrets\n  transom server keys retire secrets --dry-run"
)]
pub(super) struct Keys {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(visible_alias = "ls")]
    List(list::List),
    Rotate(rotate::Rotate),
    Retire(retire::Retire),
}

impl Keys {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        match self.command {
            Command::List(command) => command.run(cx),
            Command::Rotate(command) => command.run(cx),
            Command::Retire(command) => command.run(cx),
        }
    }
}

/// What keys are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Purpose {
    /// Encrypt secrets in the store
    Secrets,
    /// Sign the tokens of service accounts
    Tokens,
    /// Sign certificates of the server, of nodes and of users
    Authority,
}

impl Purpose {
    fn key(self) -> KeyPurpose {
        match self {
            Self::Secrets => KeyPurpose::Secrets,
            Self::Tokens => KeyPurpose::Tokens,
            Self::Authority => KeyPurpose::Authority,
        }
    }
}

/// As flags and lists spell it.
fn word(purpose: KeyPurpose) -> &'static str {
    match purpose {
        KeyPurpose::Secrets => "secrets",
        KeyPurpose::Tokens => "tokens",
        KeyPurpose::Authority => "authority",
    }
}

/// How the server of a folder runs, as far as the configuration says.
fn options(cx: &Context, data: &DataFolder, store: Option<StoreName>) -> anyhow::Result<Options> {
    let mut settings = cx.settings.server.clone();
    settings.data_dir = data.setting(cx);
    settings.store = settings.store.overruled(store, "--store");
    run::options(&settings)
}

/// Adds the way forward.
fn explained<T>(result: Result<T, KeysError>) -> anyhow::Result<T> {
    match result {
        Err(error @ KeysError::Start(StartError::InUse { .. })) => {
            Err(error).hint("stop the server first; pods go on meanwhile")
        }
        Err(error @ KeysError::Absent { .. }) => Err(error)
            .exit(Exit::NotFound)
            .hint("say with --data-dir where the server keeps its things"),
        Err(error @ KeysError::NoStore { .. }) => Err(error)
            .exit(Exit::NotFound)
            .hint("say with --data-dir or --store where the server keeps its objects"),
        other => Ok(other?),
    }
}
