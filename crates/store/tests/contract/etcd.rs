//! An etcd for the tests, and what only a store on a network can do.

use std::{
    hash::{BuildHasher as _, RandomState},
    net::{Ipv4Addr, TcpListener},
    process::{Child, Command, Stdio},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use transom_store::{Etcd, EtcdIdentity, EtcdOptions, EtcdTls, Revision, StoreError};
use url::Url;

use crate::{
    backend::path,
    concurrency,
    support::{Shared, events_until, in_time, list, pairs, put},
};

/// A server of its own, killed when dropped.
pub(crate) struct Server {
    process: Child,
    folder: TempDir,
    client: u16,
    peer: u16,
    secure: bool,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An address of this machine that only this process uses: no test beside it takes a port from it.
pub(crate) static ADDRESS: LazyLock<Ipv4Addr> = LazyLock::new(|| {
    let [first, second, third, ..] = RandomState::new().hash_one(0).to_be_bytes();
    // Those who want this machine and no other are at the beginning of the network.
    Ipv4Addr::new(127, 64 + first % 64, second, third)
});

/// A port of that address, given once, and none that the system gives to somebody who asks for any: it is still
/// free when it is used.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(15_000);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind((*ADDRESS, port)).is_ok() {
            return port;
        }
    }
}

/// What starts one member of a cluster, of which every member knows all.
pub(crate) fn command(
    name: &str,
    folder: &TempDir,
    client: &Url,
    peer: u16,
    cluster: &str,
) -> Command {
    let client = client.as_str().trim_end_matches('/');
    let peer = format!("http://{}:{peer}", *ADDRESS);
    let mut command = Command::new("etcd");
    command
        .args(["--name", name, "--data-dir"])
        .arg(folder.path().join("data"))
        .args(["--listen-client-urls", client])
        .args(["--advertise-client-urls", client])
        .args(["--listen-peer-urls", &peer])
        .args(["--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", cluster])
        .args(["--heartbeat-interval", "50", "--election-timeout", "500"])
        .args(["--log-level", "error"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn spawn(folder: &TempDir, client: u16, peer: u16, secure: bool) -> Child {
    let cluster = format!("test=http://{}:{peer}", *ADDRESS);
    let mut command = command("test", folder, &url(client, secure), peer, &cluster);
    if secure {
        let file = |name: &str| path(folder).join(name).into_string();
        command
            .args(["--cert-file", &file("server.crt")])
            .args(["--key-file", &file("server.key")])
            .args(["--trusted-ca-file", &file("authority.crt")])
            .arg("--client-cert-auth");
    }
    command.spawn().expect(
        "there is no `etcd`: install Debian's package `etcd-server`, or put etcd 3.4 or later on the path",
    )
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(tempfile::tempdir().unwrap(), false).await
    }

    async fn start_with(folder: TempDir, secure: bool) -> Self {
        let (client, peer) = (free_port(), free_port());
        let server = Self {
            process: spawn(&folder, client, peer, secure),
            folder,
            client,
            peer,
            secure,
        };
        in_time(server.wait()).await;
        server
    }

    /// Returns when it answers.
    async fn wait(&self) {
        loop {
            match Etcd::connect(self.options("wait")).await {
                Ok(_) => return,
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn kill(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }

    async fn start_again(&mut self) {
        self.process = spawn(&self.folder, self.client, self.peer, self.secure);
        in_time(self.wait()).await;
    }

    fn options(&self, name: &str) -> EtcdOptions {
        EtcdOptions {
            endpoints: vec![url(self.client, self.secure)],
            prefix: format!("/{name}/"),
            tls: self.secure.then(|| self.tls("client")),
        }
    }

    fn tls(&self, name: &str) -> EtcdTls {
        let file = |name: String| path(&self.folder).join(name);
        EtcdTls {
            authority: file("authority.crt".to_owned()),
            own: Some(EtcdIdentity {
                certificate: file(format!("{name}.crt")),
                key: file(format!("{name}.key")),
            }),
        }
    }

    pub(crate) async fn store(&self, name: &str) -> Shared {
        Arc::new(Etcd::connect(self.options(name)).await.unwrap())
    }
}

pub(crate) fn url(port: u16, secure: bool) -> Url {
    let scheme = if secure { "https" } else { "http" };
    Url::parse(&format!("{scheme}://{}:{port}", *ADDRESS)).unwrap()
}

/// An authority, a server and a client that it knows, and a client of another authority.
fn write_certificates(folder: &TempDir) {
    for (authority, names) in [
        ("authority", &["server", "client"][..]),
        ("another", &["stranger"]),
    ] {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        write(folder, authority, &certificate.pem(), &key);
        let issuer = Issuer::new(parameters, key);
        for name in names {
            let key = KeyPair::generate().unwrap();
            let parameters = CertificateParams::new(vec![ADDRESS.to_string()]).unwrap();
            let certificate = parameters.signed_by(&key, &issuer).unwrap();
            write(folder, name, &certificate.pem(), &key);
        }
    }
}

fn write(folder: &TempDir, name: &str, certificate: &str, key: &KeyPair) {
    fs_err::write(path(folder).join(format!("{name}.crt")), certificate).unwrap();
    fs_err::write(
        path(folder).join(format!("{name}.key")),
        key.serialize_pem(),
    )
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_tls_takes_only_those_that_its_authority_knows() {
    let folder = tempfile::tempdir().unwrap();
    write_certificates(&folder);
    let server = Server::start_with(folder, true).await;
    let store = server.store("secure").await;
    let revision = put(&store, "a", "1").await;
    let mut watch = store.watch("", Revision(revision.0 - 1)).await.unwrap();
    assert_eq!(in_time(events_until(&mut watch, revision)).await.len(), 1);
    let mut options = server.options("secure");
    options.tls = Some(server.tls("stranger"));
    let error = in_time(Etcd::connect(options)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    let mut options = server.options("secure");
    options.tls = Some(server.tls("missing"));
    let error = Etcd::connect(options).await.unwrap_err();
    assert!(matches!(error, StoreError::Files { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_servers_share_one_etcd() {
    let server = Server::start().await;
    let (one, other) = (server.store("shared").await, server.store("shared").await);
    let start = other.revision().await.unwrap();
    let mut watch = other.watch("", start).await.unwrap();
    concurrency::increments_add_up([Arc::clone(&one), Arc::clone(&other)]).await;
    let last = one.revision().await.unwrap();
    assert_eq!(other.revision().await.unwrap(), last);
    let events = in_time(events_until(&mut watch, last)).await;
    assert_eq!(events.len() as u64, last.0 - start.0);
    let strangers = server.store("strangers").await;
    put(&strangers, "a", "1").await;
    assert!(one.get("a").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_is_told_of_revisions_that_others_made() {
    let server = Server::start().await;
    let (store, strangers) = (server.store("mine").await, server.store("others").await);
    let start = put(&store, "a", "1").await;
    let mut watch = store.watch("b", start).await.unwrap();
    put(&strangers, "b", "not mine").await;
    let known = store.revision().await.unwrap();
    assert!(known > start);
    let events = in_time(events_until(&mut watch, known)).await;
    assert!(events.is_empty());
    let listed = list(&store, "", None).await;
    assert_eq!(pairs(&listed.entries), [("a", "1")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_is_passed_over() {
    let server = Server::start().await;
    let mut options = server.options("away");
    options.endpoints.insert(0, url(free_port(), false));
    let store: Shared = Arc::new(Etcd::connect(options).await.unwrap());
    put(&store, "a", "1").await;
    let listed = list(&store, "", None).await;
    assert_eq!(pairs(&listed.entries), [("a", "1")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_there_is_told_as_such() {
    let options = EtcdOptions {
        endpoints: vec![url(free_port(), false)],
        prefix: "/nobody/".to_owned(),
        tls: None,
    };
    let error = in_time(Etcd::connect(options)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_goes_on_after_etcd_was_away() {
    let mut server = Server::start().await;
    let store = server.store("restart").await;
    let first = put(&store, "a", "1").await;
    let mut watch = store.watch("", Revision(first.0 - 1)).await.unwrap();
    assert_eq!(events_until(&mut watch, first).await.len(), 1);
    let unseen = put(&store, "a", "2").await;
    server.kill();
    let error = in_time(store.get("a")).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    server.start_again().await;
    let last = put(&store, "a", "3").await;
    let events = in_time(events_until(&mut watch, last)).await;
    let revisions: Vec<Revision> = events.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, [unseen, last]);
}
