//! Config maps, secrets and accounts that pods need: asked for when needed, and remembered for a while.
//!
//! With the API away the last known object answers, also after the agent was started again: what a pod used is
//! in its checkpoint.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Secret, ServiceAccount},
    serde::{Serialize, de::DeserializeOwned},
};
use kube::{Api, Client, Resource};
use serde_json::Value;
use tokio::time::Instant;

use crate::fault::{Fault, ask, found};

/// How long an object is not asked for again.
const FRESH: Duration = Duration::from_secs(30);
/// Objects that nobody wanted for this long are forgotten.
const FORGET: Duration = Duration::from_mins(10);

/// `kind/namespace/name`.
type Key = String;

#[derive(Debug)]
struct Known {
    asked: Instant,
    used: Instant,
    value: Option<Arc<Value>>,
}

/// The objects pods refer to.
pub(crate) struct Config {
    client: Client,
    known: Mutex<BTreeMap<Key, Known>>,
    /// What pods were told of services, by uid.
    services: Mutex<BTreeMap<String, Variables>>,
}

/// Variables of an environment.
pub(crate) type Variables = BTreeMap<String, String>;

impl std::fmt::Debug for Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Config")
    }
}

/// Objects by key, as checkpoints keep them.
pub(crate) type Objects = BTreeMap<Key, Value>;

impl Config {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
            services: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Key, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ConfigMap>, Fault> {
        self.get(namespace, name).await
    }

    pub(crate) async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Secret>, Fault> {
        self.get(namespace, name).await
    }

    pub(crate) async fn account(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ServiceAccount>, Fault> {
        self.get(namespace, name).await
    }

    async fn get<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, Fault>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Serialize,
    {
        let key = format!("{}/{namespace}/{name}", K::kind(&()));
        if let Some(value) = self.fresh(&key) {
            return Ok(serde_json::from_value((*value).clone()).ok());
        }
        let api = Api::<K>::namespaced(self.client.clone(), namespace);
        match found(ask(api.get(name)).await) {
            Ok(object) => {
                let value = object
                    .as_ref()
                    .and_then(|object| serde_json::to_value(object).ok());
                self.remember(key, value);
                Ok(object)
            }
            Err(fault) if fault.is_silence() => match self.last(&key) {
                Some(value) => Ok(serde_json::from_value((*value).clone()).ok()),
                None => Err(fault),
            },
            Err(fault) => Err(fault),
        }
    }

    fn fresh(&self, key: &str) -> Option<Arc<Value>> {
        let mut known = self.known();
        let entry = known.get_mut(key)?;
        entry.used = Instant::now();
        // What is missing is asked for each time: somebody may wait for it.
        entry
            .value
            .clone()
            .filter(|_| entry.asked.elapsed() < FRESH)
    }

    fn last(&self, key: &str) -> Option<Arc<Value>> {
        self.known().get(key)?.value.clone()
    }

    fn remember(&self, key: Key, value: Option<Value>) {
        let now = Instant::now();
        let mut known = self.known();
        known.retain(|_, entry| entry.used.elapsed() < FORGET);
        known.insert(
            key,
            Known {
                asked: now,
                used: now,
                value: value.map(Arc::new),
            },
        );
    }

    /// What was kept from an earlier life. It answers only until the API does.
    pub(crate) fn restore(&self, objects: Objects) {
        let Some(long_ago) = Instant::now().checked_sub(FRESH) else {
            return;
        };
        let mut known = self.known();
        for (key, value) in objects {
            let entry = Known {
                asked: long_ago,
                used: Instant::now(),
                value: Some(Arc::new(value)),
            };
            known.entry(key).or_insert(entry);
        }
    }

    /// The objects of these keys, to be kept.
    pub(crate) fn keep(&self, keys: impl IntoIterator<Item = Key>) -> Objects {
        let known = self.known();
        let value = |key: &Key| known.get(key)?.value.as_deref().cloned();
        keys.into_iter()
            .filter_map(|key| value(&key).map(|value| (key, value)))
            .collect()
    }

    fn services(&self) -> MutexGuard<'_, BTreeMap<String, Variables>> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a pod was last told of services.
    pub(crate) fn service_variables(&self, uid: &str) -> Variables {
        self.services().get(uid).cloned().unwrap_or_default()
    }

    pub(crate) fn set_service_variables(&self, uid: &str, variables: Variables) {
        self.services().insert(uid.to_owned(), variables);
    }

    /// A pod is gone.
    pub(crate) fn forget_pod(&self, uid: &str) {
        self.services().remove(uid);
    }
}
