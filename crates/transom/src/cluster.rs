//! Which cluster a command talks to, and how. Invariant: the choice is kubectl's, so both reach the same one;
//! only where kubectl would have none is the server of this machine asked, or the cluster of `transom up`.

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use transom_model::Os;

use crate::context::Context;
use crate::environment;
use crate::failure::{Advice as _, Exit};

/// The options that choose a cluster.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Chosen {
    /// The kubeconfig file to use, instead of $KUBECONFIG, ~/.kube/config or the one of this machine's server
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<Utf8PathBuf>,

    /// The context of the kubeconfig to use, instead of its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A cluster that can be talked to.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) server: String,
    /// The certificates that vouch for the server, in PEM.
    pub(crate) authorities: String,
}

impl Chosen {
    /// Where the kubeconfig is: the first that is named or exists.
    pub(crate) fn file(&self, cx: &Context) -> anyhow::Result<Utf8PathBuf> {
        if let Some(file) = &self.kubeconfig {
            return Ok(file.clone());
        }
        if let Some(list) = cx.environment.text(&environment::KUBECONFIG)? {
            let separator = match cx.host {
                Os::Linux => ':',
                Os::Windows => ';',
            };
            let first = list.split(separator).find(|part| !part.is_empty());
            return Ok(first.unwrap_or(list).into());
        }
        let home = match cx.host {
            Os::Linux => &environment::HOME,
            Os::Windows => &environment::USERPROFILE,
        };
        let own = cx
            .environment
            .text(home)?
            .map(|home| Utf8Path::new(home).join(".kube").join("config"));
        let ours = cx.layout.state.join("server").join("admin.kubeconfig");
        let started = crate::commands::up::usual_kubeconfig(cx).ok();
        let all = own.into_iter().chain([ours.clone()]).chain(started);
        let mut there = all.filter(|file| file.exists());
        Ok(there.next().unwrap_or(ours))
    }

    /// Reads the kubeconfig and makes a client. Nothing is asked of the server yet.
    pub(crate) async fn open(&self, cx: &Context) -> anyhow::Result<Cluster> {
        let file = self.file(cx)?;
        let text = fs_err::read_to_string(&file)
            .context("there is no kubeconfig")
            .hint("start a cluster with `transom up` or `transom server`, or name the file with --kubeconfig")
            .exit(Exit::NotFound)?;
        let kubeconfig = Kubeconfig::from_yaml(&text)
            .with_context(|| format!("`{file}` is not a kubeconfig"))
            .exit(Exit::Configuration)?;
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .with_context(|| format!("`{file}` cannot be used"))
            .exit(Exit::Configuration)?;
        let authorities = config
            .root_cert
            .iter()
            .flatten()
            .map(|der| pem::encode(&pem::Pem::new("CERTIFICATE", der.clone())));
        let authorities = authorities.collect();
        let server = config.cluster_url.to_string();
        let client =
            Client::try_from(config).with_context(|| format!("`{file}` cannot be used"))?;
        Ok(Cluster {
            client,
            server: server.trim_end_matches('/').to_owned(),
            authorities,
        })
    }
}

impl Cluster {
    /// What the API answered; a fault says what it means for whoever gave the command.
    pub(crate) fn answer<T>(&self, answer: Result<T, kube::Error>) -> anyhow::Result<T> {
        match answer {
            Ok(value) => Ok(value),
            Err(kube::Error::Api(status)) => {
                Err(anyhow::anyhow!("{}", status.message)).exit(match status.code {
                    404 => Exit::NotFound,
                    401 | 403 => Exit::Denied,
                    _ => Exit::Failure,
                })
            }
            Err(fault) => Err(fault)
                .with_context(|| format!("the server {} does not answer", self.server))
                .hint("is it running? `transom server` starts one")
                .exit(Exit::NotRunning),
        }
    }
}
