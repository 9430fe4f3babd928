//! `transom token`: what machines join a cluster with.

mod create;
mod delete;
mod list;

use clap::Subcommand;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Cell, Column, Row, Shown};

/// The namespace and the type that the API server knows such secrets by.
const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const PREFIX: &str = "bootstrap-token-";

/// Make, list and delete the tokens that machines join with
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom token create\n  transom token list\n  transom token delete abcdef"
)]
pub(super) struct Token {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::Create),
    #[command(visible_alias = "ls")]
    List(list::List),
    #[command(visible_alias = "rm")]
    Delete(delete::Delete),
}

impl Token {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            match self.command {
                Command::Create(command) => command.run(cx).await,
                Command::List(command) => command.run(cx).await,
                Command::Delete(command) => command.run(cx).await,
            }
        })
    }
}

/// A token, without its secret.
#[derive(Debug, Serialize)]
struct TokenRow {
    id: String,
    expires: Option<Timestamp>,
    description: String,
}

impl TokenRow {
    /// `None` if the secret is not a token that machines can join with.
    fn of(secret: &Secret) -> Option<Self> {
        let text = |key: &str| {
            let bytes = secret.data.as_ref()?.get(key)?;
            String::from_utf8(bytes.0.clone()).ok()
        };
        if secret.type_.as_deref() != Some(TYPE) {
            return None;
        }
        Some(Self {
            id: text("token-id")?,
            expires: text("expiration").and_then(|time| time.parse().ok()),
            description: text("description").unwrap_or_default(),
        })
    }
}

impl Row for TokenRow {
    const PLURAL: &'static str = "tokens";

    fn columns() -> &'static [Column] {
        const {
            &[
                Column::new("ID"),
                Column::new("EXPIRES"),
                Column::new("DESCRIPTION"),
            ]
        }
    }

    fn cells(&self, shown: Shown) -> Vec<Cell> {
        let expires = self.expires.map(|time| {
            if time > shown.now {
                format!("in {}", crate::output::age(shown.now, time))
            } else {
                "expired".to_owned()
            }
        });
        vec![
            Cell::new(&self.id),
            Cell::new(expires.as_deref().unwrap_or("never")),
            Cell::new(&self.description),
        ]
    }

    fn name(&self) -> String {
        self.id.clone()
    }
}
