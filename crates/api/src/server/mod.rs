//! A whole API server: data folder, certificates, store, caches, listener.
//!
//! `start` returns when everything is ready and the port is open; `run` serves until it is told to stop, then
//! lets requests finish. Dying at any moment loses nothing that was acknowledged.

mod bootstrap;
mod keys;
mod listener;
mod presence;
mod reseal;
mod store;
mod upkeep;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use transom_host::files::{FileError, FileLock, Files};
use transom_store::{Etcd, Local, LocalOptions, Memory, Store};

pub use keys::{KeyCare, KeyEntry, KeyPurpose, KeysError, Retirement, list_keys};
pub use listener::Peer;
use presence::Presence;
pub use store::{backup_store, check_store, restore_store};
pub use transom_store::{EtcdIdentity, EtcdOptions, EtcdTls, Report, StoreError};

use crate::{
    Api, Guard, Settings,
    access::{
        authentication::{
            User, group,
            token::{Holder, SignError},
        },
        encryption::{KeyRing, RingError, Sealer},
        pki::{Pki, PkiError, ServingNames, SigningFault},
    },
    http,
    storage::Codec,
};

/// How long to wait for the server before this one to let go of its folder.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// How long a server that stops may take to tell others.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a client that has not shown who it is may hold a connection without a request.
const IDLE: Duration = Duration::from_secs(30);

/// Where objects are kept.
#[derive(Clone, Debug)]
pub enum StoreChoice {
    /// In memory: everything is gone with the process.
    Memory,
    /// In the folder `state` of the data folder.
    Local,
    /// In an etcd cluster, which several servers share.
    Etcd(EtcdOptions),
}

/// How a server is to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of the state, the certificates and the administrator's kubeconfig.
    pub data: Utf8PathBuf,
    pub listen: SocketAddr,
    /// Names and addresses, beside the usual ones, under which clients reach the server.
    pub names: Vec<String>,
    pub store: StoreChoice,
    pub settings: Settings,
}

/// Why a server did not start, or does not run any more.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("could not listen on {address}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("another server uses the folder `{folder}`")]
    InUse { folder: Utf8PathBuf },
    #[error("could not prepare the folder `{folder}`")]
    Folder {
        folder: Utf8PathBuf,
        source: FileError,
    },
    #[error("could not make the certificates ready")]
    Certificates { source: PkiError },
    #[error("could not make the keys of secrets ready")]
    Keys { source: RingError },
    #[error("could not open the store")]
    Store { source: StoreError },
    #[error("could not make the objects that every cluster has")]
    Bootstrap { source: crate::status::ApiError },
    /// It did start, but cannot go on: a new start may help.
    #[error("the server cannot go on: {reason}")]
    Broken { reason: String },
}

/// A server that is ready.
#[derive(Debug)]
pub struct Server {
    api: Api,
    listener: TcpListener,
    pki: Arc<Pki>,
    address: SocketAddr,
    /// Keeps a second server out of the folder.
    _lock: FileLock,
    feed: tokio::task::JoinHandle<()>,
    presence: Option<Presence>,
}

impl Server {
    /// Has `/metrics` tell the numbers of somebody who works beside the server, too.
    pub fn tell_beside(
        &self,
        metrics: impl Fn() -> Result<String, std::fmt::Error> + Send + Sync + 'static,
    ) {
        self.api.telemetry.tell_beside(Box::new(metrics));
    }

    /// Makes everything ready.
    pub async fn start(options: &Options) -> Result<Self, StartError> {
        let files: Arc<dyn Files> = Arc::new(transom_host::files::Native);
        let lock = lock(&*files, &options.data)?;
        // The port first: it is the most likely thing to be wrong, and the cheapest to find out.
        let listener =
            TcpListener::bind(options.listen)
                .await
                .map_err(|source| StartError::Listen {
                    address: options.listen,
                    source,
                })?;
        let address = listener.local_addr().map_err(|source| StartError::Listen {
            address: options.listen,
            source,
        })?;
        let pki = Arc::new(certificates(&files, options)?);
        let store = open(&options.store, &options.data)
            .await
            .map_err(|source| StartError::Store { source })?;
        let codec = Arc::new(Codec::new(Sealer::new(keys(&*files, &options.data)?)));
        let mut settings = options.settings.clone();
        settings.scratch = Some(scratch(&*files, &options.data)?);
        let (api, feed) = Api::open(
            store,
            codec,
            settings,
            Arc::new(Timestamp::now),
            Arc::new(Guard::new(Arc::clone(&pki))),
        )
        .await
        .map_err(|source| StartError::Store { source })?;
        let feed = tokio::spawn(async move { feed.run().await });
        // A store of this machine has one server.
        let is_shared = matches!(options.store, StoreChoice::Etcd(_));
        let mut presence = bootstrap::reached(address)
            .filter(|_| is_shared)
            .map(Presence::new);
        bootstrap::ensure(&api, address, presence.as_mut())
            .await
            .map_err(|source| StartError::Bootstrap { source })?;
        Ok(Self {
            api,
            listener,
            pki,
            address,
            _lock: lock,
            feed,
            presence,
        })
    }

    /// Where the server listens, with the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig with all rights.
    pub fn admin_kubeconfig(&self) -> String {
        self.kubeconfigs()()
    }

    /// Gives a kubeconfig with all rights, with the certificate that is good at the time.
    pub fn kubeconfigs(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let host = if self.address.ip().is_unspecified() {
            format!("127.0.0.1:{}", self.address.port())
        } else {
            self.address.to_string()
        };
        let pki = Arc::clone(&self.pki);
        move || pki.admin_kubeconfig(&format!("https://{host}"), "transom")
    }

    /// The API for a client in this process, which has all rights under the name that it gives.
    pub fn router_as(&self, name: &str) -> Router {
        let user = User::authenticated(name, vec![group::MASTERS.to_owned()]);
        http::router_as(self.api.clone(), user)
    }

    /// The certificates that vouch for this server.
    pub fn authorities_pem(&self) -> String {
        self.pki.authorities_pem()
    }

    /// Signs requests for certificates that were approved. The key stays here.
    pub fn signer(
        &self,
    ) -> impl Fn(&serde_json::Value) -> Result<String, SigningFault> + Clone + Send + Sync + 'static
    {
        let pki = Arc::clone(&self.pki);
        move |request| pki.sign_request(request, Timestamp::now())
    }

    /// Makes tokens that are to stand in secrets. The key stays here.
    pub fn token_signer(
        &self,
    ) -> impl Fn(Holder<'_>) -> Result<String, SignError> + Clone + Send + Sync + 'static {
        let (pki, guard) = (Arc::clone(&self.pki), Arc::clone(&self.api.guard));
        move |holder| {
            let tokens = &guard.authenticator.tokens;
            tokens.sign_for_secret(&pki.token_keys(), holder)
        }
    }

    /// The API itself, for clients in the same process.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Serves until `stop` is cancelled and all requests are finished, or until its store or feed fails for good.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), StartError> {
        // What ends here by itself must not end what others do with the token that they gave.
        let stop = stop.child_token();
        let tls = self
            .pki
            .server_config()
            .map_err(|source| StartError::Certificates { source })?;
        let router = http::router(self.api.clone());
        let watches = self.api.stop.clone();
        let told = stop.clone();
        tokio::spawn(async move {
            told.cancelled().await;
            watches.cancel();
        });
        let mut upkeep = tokio::spawn(upkeep::run(
            self.api.clone(),
            Arc::clone(&self.pki),
            self.presence,
            stop.clone(),
        ));
        let address = self.address;
        let bounds = listener::Bounds {
            connections: self.api.settings.max_connections,
            handshake: HANDSHAKE,
            idle: IDLE,
        };
        let serving = listener::serve(self.listener, router, tls, bounds, stop.clone());
        tokio::pin!(serving);
        let (served, broken) = tokio::select! {
            served = serving.as_mut() => (served, None),
            reason = broken(&self.api, &mut self.feed) => {
                tracing::error!(reason, "the server cannot go on");
                stop.cancel();
                (serving.await, Some(reason))
            }
        };
        // It has been told to stop, and is at most about to say goodbye.
        if tokio::time::timeout(FAREWELL, &mut upkeep).await.is_err() {
            upkeep.abort();
        }
        // It holds the store, which somebody may open again as soon as this returns.
        if !self.feed.is_finished() {
            self.feed.abort();
            let _ = self.feed.await;
        }
        match broken {
            Some(reason) => Err(StartError::Broken { reason }),
            None => served.map_err(|source| StartError::Listen { address, source }),
        }
    }
}

/// Returns why a server cannot go on, once it cannot: as one that cannot write, or does not see what is written,
/// it would only be in the way of the one that is started after it.
async fn broken(api: &Api, feed: &mut tokio::task::JoinHandle<()>) -> String {
    let failed = api.store.health().failed();
    tokio::select! {
        reason = failed => reason.to_string(),
        ended = feed => match ended {
            Err(error) if error.is_panic() => "the feed of its caches panicked".to_owned(),
            // The store tells why, if it does; its end is the end of the feed.
            _ => http::health::lasting_fault(api)
                .unwrap_or_else(|| "the feed of its caches ended".to_owned()),
        },
    }
}

fn lock(files: &dyn Files, folder: &Utf8Path) -> Result<FileLock, StartError> {
    let fault = |source| StartError::Folder {
        folder: folder.to_owned(),
        source,
    };
    files.create_dir_all(folder).map_err(fault)?;
    files
        .lock(&folder.join("lock"), LOCK_WAIT)
        .map_err(|source| {
            if matches!(source, FileError::Locked { .. }) {
                StartError::InUse {
                    folder: folder.to_owned(),
                }
            } else {
                fault(source)
            }
        })
}

/// An empty folder for what is gone with the process.
fn scratch(files: &dyn Files, data: &Utf8Path) -> Result<Utf8PathBuf, StartError> {
    let folder = data.join("scratch");
    let fault = |source| StartError::Folder {
        folder: folder.clone(),
        source,
    };
    files.remove_tree(&folder).map_err(fault)?;
    files.create_dir_all(&folder).map_err(fault)?;
    Ok(folder)
}

fn certificates(files: &Arc<dyn Files>, options: &Options) -> Result<Pki, StartError> {
    let names = options
        .names
        .iter()
        .fold(ServingNames::standard(), |names, name| names.with(name))
        .with_address(options.listen.ip());
    let access = transom_host::access::Native;
    Pki::ensure(
        Arc::clone(files),
        &access,
        &options.data.join("pki"),
        names,
        Timestamp::now(),
    )
    .map_err(|source| StartError::Certificates { source })
}

fn keys(files: &dyn Files, data: &Utf8Path) -> Result<KeyRing, StartError> {
    let file = data.join("pki").join("encryption.keys");
    KeyRing::ensure(files, &transom_host::access::Native, &file)
        .map_err(|source| StartError::Keys { source })
}

async fn open(choice: &StoreChoice, data: &Utf8Path) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match choice {
        StoreChoice::Memory => Arc::new(Memory::new()),
        StoreChoice::Etcd(options) => Arc::new(Etcd::connect(options.clone()).await?),
        StoreChoice::Local => {
            Arc::new(Local::open(&data.join("state"), LocalOptions::default()).await?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_does_not_see_what_is_written_ends_with_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            data: Utf8Path::from_path(folder.path()).unwrap().to_owned(),
            listen: "127.0.0.1:0".parse().unwrap(),
            names: Vec::new(),
            store: StoreChoice::Memory,
            settings: Settings::default(),
        };
        let server = Server::start(&options).await.unwrap();
        let api = server.api().clone();
        assert_eq!(http::health::lasting_fault(&api), None);
        server.feed.abort();
        let stop = CancellationToken::new();
        let ended = server.run(stop.clone()).await;
        assert!(matches!(ended, Err(StartError::Broken { .. })), "{ended:?}");
        assert!(!stop.is_cancelled(), "the token is not the server's");
        assert!(http::health::lasting_fault(&api).is_some());
    }
}
