//! `transom token list`: which tokens there are, without their secrets.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;

use super::{NAMESPACE, TYPE, TokenRow};
use crate::cluster::Chosen;
use crate::context::Context;
use crate::failure::Exit;

/// List the tokens that machines can join with
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom token list\n  transom token list -o json")]
pub(super) struct List {
    #[command(flatten)]
    cluster: Chosen,
}

impl List {
    pub(super) async fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let cluster = self.cluster.open(cx).await?;
        let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), NAMESPACE);
        let chosen = ListParams::default().fields(&format!("type={TYPE}"));
        let found = cluster.answer(secrets.list(&chosen).await)?;
        let rows: Vec<TokenRow> = found.items.iter().filter_map(TokenRow::of).collect();
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}
