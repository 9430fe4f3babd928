//! `transom kubeconfig`: how kubectl reaches the server of this machine.

use anyhow::Context as _;

use super::server::DataFolder;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// Print the administrator's kubeconfig of the server on this machine
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom kubeconfig > ~/.kube/config\n  transom kubeconfig --server https://api.example.org:6443 > admin.yaml\n\nWhoever has it may do everything: keep it as you keep a password."
)]
pub(super) struct Kubeconfig {
    /// The address that clients use, instead of the one on this machine
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    #[command(flatten)]
    data: DataFolder,
}

impl Kubeconfig {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let file = self.data.path(cx).join("admin.kubeconfig");
        let text = fs_err::read_to_string(&file)
            .context("there is no kubeconfig on this machine")
            .hint("start the server once: transom server")?;
        let text = match &self.server {
            Some(server) => transom_api::access::pki::with_server(&text, server),
            None => text,
        };
        cx.out.write(&text)?;
        Ok(Exit::Success)
    }
}
