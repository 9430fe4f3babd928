//! kube-rs over TLS, with the administrator's kubeconfig, to a server that keeps its objects on disk.

use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::time::Duration;

use camino::Utf8PathBuf;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Config, ResourceExt};
use tokio_util::sync::CancellationToken;
use transom_api::Settings;
use transom_api::server::{Options, Server, StoreChoice};

use crate::served::{config_map, refusal};

const LIMIT: Duration = Duration::from_mins(1);

/// A server that runs until it is stopped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    kubeconfig: String,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn start(folder: &tempfile::TempDir, listen: SocketAddr) -> Self {
        Self::with(folder, listen, Settings::default()).await
    }

    pub(crate) async fn with(
        folder: &tempfile::TempDir,
        listen: SocketAddr,
        settings: Settings,
    ) -> Self {
        let options = Options {
            data: Utf8PathBuf::from_path_buf(folder.path().join("data")).unwrap(),
            listen,
            names: Vec::new(),
            store: StoreChoice::Local,
            settings,
        };
        let server = Server::start(&options).await.unwrap();
        let stop = CancellationToken::new();
        Self {
            address: server.address(),
            kubeconfig: server.admin_kubeconfig(),
            serving: tokio::spawn({
                let stop = stop.clone();
                async move { server.run(stop).await.unwrap() }
            }),
            stop,
        }
    }

    pub(crate) async fn stop(self) -> SocketAddr {
        self.stop.cancel();
        tokio::time::timeout(LIMIT, self.serving)
            .await
            .unwrap()
            .unwrap();
        self.address
    }

    async fn config(&self) -> Config {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig).unwrap();
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::try_from(self.config().await).unwrap()
    }
}

pub(crate) fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Any port of an address that nobody else uses: it is still free for the next start, whatever ports other tests were
/// given meanwhile.
fn any_port_of_its_own() -> SocketAddr {
    let [first, second, third, ..] = RandomState::new().hash_one(0).to_be_bytes();
    ([127, 64 + first % 64, second, third], 0).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_the_kubeconfig_outlives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = Running::start(&folder, any_port_of_its_own()).await;
    let client = server.client().await;
    assert_eq!(client.apiserver_version().await.unwrap().minor, "36");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &config_map("one", "a", "1"))
        .await
        .unwrap();
    let stream = watcher(maps.clone(), watcher::Config::default().labels("!hidden"));
    let mut stream = std::pin::pin!(stream.default_backoff().applied_objects());
    let mut until = async |name: &str| {
        let found = async {
            loop {
                // Errors are part of a restart.
                if let Some(Ok(map)) = stream.next().await
                    && map.name_any() == name
                {
                    return;
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.unwrap();
    };
    until("one").await;
    let address = server.stop().await;
    let server = Running::start(&folder, address).await;
    maps.create(&PostParams::default(), &config_map("two", "a", "1"))
        .await
        .unwrap();
    until("two").await;
    let names: Vec<String> = maps
        .list(&ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert!(
        names.contains(&"one".to_owned()) && names.contains(&"two".to_owned()),
        "{names:?}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_goes_on_after_a_restart_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let server = Running::start(&folder, any_port_of_its_own()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client().await);
    let make = async |name: &str| {
        maps.create(&PostParams::default(), &config_map(name, "a", "1"))
            .await
            .unwrap()
    };
    let one = make("one").await;
    make("two").await;
    maps.replace("two", &PostParams::default(), &config_map("two", "a", "2"))
        .await
        .unwrap();
    maps.delete("one", &DeleteParams::default()).await.unwrap();
    let address = server.stop().await;
    let server = Running::start(&folder, address).await;
    make("three").await;
    let from = one.resource_version().unwrap();
    let params = WatchParams::default().labels("!hidden");
    let stream = maps.watch(&params, &from).await.unwrap();
    let seen: Vec<String> = tokio::time::timeout(LIMIT, stream.take(4).collect::<Vec<_>>())
        .await
        .unwrap()
        .into_iter()
        .map(|event| match event.unwrap() {
            WatchEvent::Added(map) => format!("added {}", map.name_any()),
            WatchEvent::Modified(map) => format!("modified {}", map.name_any()),
            WatchEvent::Deleted(map) => format!("deleted {}", map.name_any()),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        seen,
        ["added two", "modified two", "deleted one", "added three"]
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_no_credentials_or_no_rights_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Running::start(&folder, any_port()).await;
    let mut config = server.config().await;
    config.auth_info = kube::config::AuthInfo::default();
    let nobody: Api<Namespace> = Api::all(Client::try_from(config).unwrap());
    assert_eq!(refusal(nobody.list(&ListParams::default()).await).0, 401);

    let mut config = server.config().await;
    config.auth_info.impersonate = Some("jane".to_owned());
    let jane: Api<Namespace> = Api::all(Client::try_from(config).unwrap());
    assert_eq!(
        refusal(jane.list(&ListParams::default()).await),
        (403, "Forbidden".to_owned())
    );

    let mut config = server.config().await;
    config.root_cert = None;
    let distrusting: Api<Namespace> = Api::all(Client::try_from(config).unwrap());
    let result = distrusting.list(&ListParams::default()).await;
    assert!(matches!(
        result,
        Err(kube::Error::HyperError(_) | kube::Error::Service(_))
    ));
    server.stop().await;
}
