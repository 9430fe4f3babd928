//! `transom token create`: a new token, shown once.

use std::collections::BTreeMap;

use anyhow::Context as _;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use transom_agent::join::{JoinToken, Pin};

use super::{NAMESPACE, PREFIX, TYPE};
use crate::cluster::Chosen;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};

const EXAMPLES: &str = "\
Examples:
  transom token create                          Good for a day
  transom token create --ttl 2h --description 'rack 7'
  transom token create > token                  For `transom agent --token-file token`

Whoever has it may make a machine a node of this cluster: keep it as you keep a password.";

/// Make a token that machines join with, and print it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Create {
    /// How long it is good; 0s is for ever
    #[arg(long, value_name = "TIME", default_value = "24h")]
    ttl: SignedDuration,

    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,

    #[command(flatten)]
    cluster: Chosen,
}

impl Create {
    pub(super) async fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if self.ttl.is_negative() {
            return Err(anyhow::anyhow!(
                "a token cannot be good for less than no time: --ttl {:#}",
                self.ttl
            ))
            .exit(Exit::Usage);
        }
        let cluster = self.cluster.open(cx).await?;
        let pin = Pin::of_pem(&cluster.authorities)
            .context("the kubeconfig does not name the authority of the cluster (certificate-authority-data)")
            .exit(Exit::Configuration)?;
        let token = JoinToken::generate(pin)?;
        let mut data = BTreeMap::from([
            ("token-id".to_owned(), token.id.clone()),
            ("token-secret".to_owned(), token.secret().to_owned()),
            (
                "usage-bootstrap-authentication".to_owned(),
                "true".to_owned(),
            ),
            ("usage-bootstrap-signing".to_owned(), "true".to_owned()),
        ]);
        if !self.description.is_empty() {
            data.insert("description".to_owned(), self.description);
        }
        if !self.ttl.is_zero() {
            let ends = cx
                .out
                .shown()
                .now
                .checked_add(self.ttl)
                .context("--ttl is too long")?;
            let ends = ends.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            data.insert("expiration".to_owned(), ends);
        }
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(format!("{PREFIX}{}", token.id)),
                ..ObjectMeta::default()
            },
            type_: Some(TYPE.to_owned()),
            string_data: Some(data),
            ..Secret::default()
        };
        let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), NAMESPACE);
        cluster.answer(secrets.create(&PostParams::default(), &secret).await)?;
        cx.out.write(&format!("{}\n", token.reveal()))?;
        Ok(Exit::Success)
    }
}
