//! Two servers over one etcd: each serves and tells what was written through the other.

use std::{
    hash::{BuildHasher as _, RandomState},
    net::{Ipv4Addr, TcpListener},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use tempfile::TempDir;
use transom_store::{Etcd, EtcdOptions, Store};
use url::Url;

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.org/v1/namespaces/default/widgets";
const PATIENCE: Duration = Duration::from_mins(1);

/// An etcd of its own, killed when dropped.
struct Shared {
    process: Child,
    client: Url,
    _folder: TempDir,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Two places at an address of this machine that nobody else uses: they are still free when etcd takes them,
/// whatever ports other tests are given meanwhile.
fn free_urls() -> [String; 2] {
    let [first, second, third, ..] = RandomState::new().hash_one(0).to_be_bytes();
    let address = Ipv4Addr::new(127, 64 + first % 64, second, third);
    // Both are held until both are known, so that they are two.
    let listeners = [(); 2].map(|()| TcpListener::bind((address, 0)).unwrap());
    listeners.map(|listener| format!("http://{}", listener.local_addr().unwrap()))
}

impl Shared {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [client, peer] = free_urls();
        let process = Command::new("etcd")
            .args(["--name", "test", "--data-dir"])
            .arg(folder.path())
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("test={peer}")])
            .args(["--log-level", "error"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is no `etcd`: install Debian's package `etcd-server`");
        Self {
            process,
            client: Url::parse(&client).unwrap(),
            _folder: folder,
        }
    }

    /// A connection of its own, as each server has one.
    async fn store(&self) -> Arc<dyn Store> {
        loop {
            let options = EtcdOptions {
                endpoints: vec![self.client.clone()],
                prefix: "/test/".to_owned(),
                tls: None,
            };
            match Etcd::connect(options).await {
                Ok(store) => return Arc::new(store),
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_through_one_server_is_seen_through_the_other() {
    let etcd = Shared::start();
    let work = async {
        let first = Client::fill(etcd.store().await).await;
        let second = Client::over(etcd.store().await).await;
        let mut events = second.watch(&format!("{MAPS}?watch=1")).await;
        first.config_map("a", &json!({"key": "1"})).await;
        assert_eq!(events.step().await, ("ADDED".into(), "a".into()));
        let change = json!({"data": {"key": "2"}});
        let one = format!("{MAPS}/a");
        let changed = first.merge(&one, &change).await.expect(200);
        // Who reads after a write sees it, wherever it was written.
        assert_eq!(second.get(&one).await.expect(200), changed);
        assert_eq!(events.step().await, ("MODIFIED".into(), "a".into()));
        second.delete(&one).await.expect(200);
        assert_eq!(first.get(&one).await.code, 404);
        assert_eq!(events.step().await, ("DELETED".into(), "a".into()));

        let definition = json!({
            "metadata": {"name": "widgets.example.org"},
            "spec": {
                "group": "example.org", "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        });
        second.post(DEFINITIONS, &definition).await.expect(201);
        first.get(DEFINITIONS).await.expect(200);
        let widget = json!({"metadata": {"name": "w"}});
        first.post(WIDGETS, &widget).await.expect(201);
        // What is served follows with the feed of each server, also of the one that the definition came through.
        second.get(DEFINITIONS).await.expect(200);
        let list = second.get(WIDGETS).await.expect(200);
        assert_eq!(list["items"][0]["metadata"]["name"], "w");
    };
    tokio::time::timeout(PATIENCE, work).await.unwrap();
}
