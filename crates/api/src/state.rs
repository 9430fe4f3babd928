//! Everything that a request needs, shared by all of them.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use camino::Utf8PathBuf;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use transom_store::{LeaseId, Outcome, Revision, Store, Transaction};

use crate::{
    access::limits::{Gate, Limits},
    admission::Chain,
    cache::{Cache, Cached, Feed, Observer, ResourceCache, store_fault},
    guard::Guard,
    http::openapi::Documents,
    metrics::Numbers,
    registry::{Kind, Registry},
    status::ApiError,
    storage::Codec,
    telemetry::Telemetry,
};

/// Where the time comes from; tests bring their own.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The API over one store.
#[derive(Clone)]
pub struct Api {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) codec: Arc<Codec>,
    pub(crate) clock: Clock,
    pub(crate) settings: Arc<Settings>,
    pub(crate) guard: Arc<Guard>,
    pub(crate) gate: Gate,
    pub(crate) chain: Arc<Chain>,
    pub(crate) documents: Arc<Documents>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) numbers: Arc<Numbers>,
    pub(crate) event_leases: Arc<SharedLease>,
    /// The place of the one backup that may be made at a time.
    pub(crate) backups: Arc<Semaphore>,
    /// Cancelled when the server stops: watches end, and readiness says no.
    pub(crate) stop: CancellationToken,
}

/// The lease that new events are put under, and when it was granted.
#[derive(Debug, Default)]
pub(crate) struct SharedLease(Mutex<Option<(Timestamp, LeaseId)>>);

impl SharedLease {
    /// The lease, if it is younger than `window`.
    pub(crate) fn get(&self, now: Timestamp, window: Duration) -> Option<LeaseId> {
        let held = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.filter(|(granted, _)| now.duration_since(*granted).unsigned_abs() < window)
            .map(|(_, lease)| lease)
    }

    pub(crate) fn set(&self, now: Timestamp, lease: LeaseId) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, lease));
    }
}

/// What an operator may choose.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The largest request body.
    pub body_limit: usize,
    /// How long a client may take to send one.
    pub body_time: Duration,
    /// How long a watch lasts if the client does not say, at least; the other half is random.
    pub watch_time: Duration,
    /// How long events are kept.
    pub event_life: Duration,
    /// The addresses of services.
    pub service_subnet: String,
    /// Whether a proxy may connect to pods and services at an address.
    pub reachable: fn(IpAddr) -> bool,
    /// How many requests are worked on at once, and how fast one user may ask.
    pub limits: Limits,
    /// How many connections are open at once; others wait in the system's queue.
    pub max_connections: usize,
    /// A folder for files that are gone with the process.
    pub scratch: Option<Utf8PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            body_limit: 3 << 20,
            body_time: Duration::from_secs(30),
            watch_time: Duration::from_mins(30),
            event_life: Duration::from_hours(1),
            service_subnet: "10.43.0.0/16".to_owned(),
            reachable: crate::proxy::is_global_unicast,
            limits: Limits::default(),
            max_connections: 10_000,
            scratch: None,
        }
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// An object that is in the store, with the revision to change it by.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) value: serde_json::Value,
    pub(crate) revision: u64,
}

impl Api {
    /// Reads everything that the store has. The feed must run for the caches to move on.
    pub async fn open(
        store: Arc<dyn Store>,
        codec: Arc<Codec>,
        settings: Settings,
        clock: Clock,
        guard: Arc<Guard>,
    ) -> Result<(Self, Feed), transom_store::StoreError> {
        let registry = Arc::new(Registry::builtin());
        let cache = Arc::new(Cache::default());
        let feed = Feed {
            store: Arc::clone(&store),
            cache: Arc::clone(&cache),
            registry: Arc::clone(&registry),
            codec: Arc::clone(&codec),
            observer: Arc::clone(&guard) as Arc<dyn Observer>,
        };
        feed.load().await?;
        let gate = Gate::new(settings.limits.clone());
        let api = Self {
            store,
            cache,
            registry,
            codec,
            clock,
            settings: Arc::new(settings),
            guard,
            gate,
            chain: Arc::new(Chain::built_in()),
            documents: Arc::default(),
            telemetry: Arc::default(),
            numbers: Arc::default(),
            event_leases: Arc::default(),
            backups: Arc::new(Semaphore::new(1)),
            stop: CancellationToken::new(),
        };
        Ok((api, feed))
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub(crate) fn cache_of(&self, kind: &Arc<Kind>) -> Arc<ResourceCache> {
        self.cache.of(&self.registry.storage_kind(kind))
    }

    /// Returns once the caches have everything that was acknowledged before the call.
    pub(crate) async fn catch_up(&self) -> Result<(), ApiError> {
        let revision = self
            .store
            .revision()
            .await
            .map_err(|error| store_fault(&error))?;
        self.cache.wait_for(revision.0).await
    }

    /// The newest state of an object.
    pub(crate) async fn find(
        &self,
        kind: &Arc<Kind>,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<Cached>>, ApiError> {
        self.catch_up().await?;
        Ok(self.cache_of(kind).get(&cache_key(kind, namespace, name)))
    }

    pub(crate) fn encode(
        &self,
        kind: &Kind,
        key: &str,
        value: &serde_json::Value,
    ) -> Result<Bytes, ApiError> {
        self.codec
            .close(kind, key, value)
            .map(Bytes::from)
            .map_err(|error| ApiError::internal(error.to_string()))
    }

    /// What the store holds, as a value.
    pub(crate) fn read_entry(&self, entry: &transom_store::Entry) -> Result<Stored, ApiError> {
        let plain = self
            .codec
            .open(&entry.key, &entry.value)
            .map_err(|error| ApiError::internal(error.to_string()))?;
        let mut value: serde_json::Value = serde_json::from_slice(&plain)
            .map_err(|_| ApiError::internal(format!("`{}` does not hold an object", entry.key)))?;
        crate::object::set_metadata(
            &mut value,
            "resourceVersion",
            Some(entry.modified.to_string().into()),
        );
        Ok(Stored {
            value,
            revision: entry.modified.0,
        })
    }

    pub(crate) async fn commit(&self, transaction: Transaction) -> Result<Outcome, ApiError> {
        self.store
            .commit(transaction)
            .await
            .map_err(|error| store_fault(&error))
    }

    /// Forgets the store's history before a revision.
    pub async fn compact(&self, revision: u64) -> Result<(), transom_store::StoreError> {
        self.store.compact(Revision(revision)).await
    }
}

/// The key of an object in its cache.
pub(crate) fn cache_key(kind: &Kind, namespace: &str, name: &str) -> String {
    if kind.namespaced {
        format!("{namespace}/{name}")
    } else {
        name.to_owned()
    }
}
