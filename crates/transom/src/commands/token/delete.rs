//! `transom token delete`: machines that have not joined yet cannot any more.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;

use super::{NAMESPACE, PREFIX};
use crate::cluster::Chosen;
use crate::context::Context;
use crate::failure::Exit;

/// Delete tokens; machines that joined with them stay
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom token delete abcdef")]
pub(super) struct Delete {
    /// The ids, as `transom token list` shows them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,

    #[command(flatten)]
    cluster: Chosen,
}

impl Delete {
    pub(super) async fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let cluster = self.cluster.open(cx).await?;
        let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), NAMESPACE);
        for id in &self.ids {
            let name = format!("{PREFIX}{id}");
            cluster.answer(secrets.delete(&name, &DeleteParams::default()).await)?;
            cx.out.remark(&format!("token {id} deleted"));
        }
        Ok(Exit::Success)
    }
}
