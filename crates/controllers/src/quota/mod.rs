//! Counts the use of quotas anew when objects change or go, so that it goes down again.
//!
//! The API charges a quota in the same write that makes an object. So less is written only when the quota was left
//! alone for a moment: by then watches have told of everything that was charged.

mod count;
mod kinds;
mod usage;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use kube::{Api, Client, api::PostParams, runtime::watcher::Config};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{
    count::{is_less, plan_status},
    kinds::Kinds,
    usage::Usage,
};
use crate::{
    fault::{Fault, ask, found},
    known::{Key, Known, keep, keep_shared},
    queue::{Next, Queue},
    shared::Shared,
};

const AT_ONCE: usize = 4;
/// Changes that come one upon the other are counted together.
const GATHER: Duration = Duration::from_millis(200);
/// How long a quota must have been left alone until less is written.
const SETTLE: Duration = Duration::from_millis(500);

struct World {
    shared_pods: Shared<Pod>,
    client: Client,
    quotas: Known<ResourceQuota>,
    pods: Known<Arc<Usage>>,
    services: Known<Usage>,
    claims: Known<Usage>,
    kinds: Kinds,
    /// When others changed a quota last.
    touched: Mutex<HashMap<Key, Instant>>,
    queue: Queue<Key>,
}

pub(crate) async fn run(client: Client, pods: Shared<Pod>, stop: CancellationToken) {
    let world = World {
        kinds: Kinds::new(client.clone()),
        client,
        shared_pods: pods,
        quotas: Known::new(),
        pods: Known::new(),
        services: Known::new(),
        claims: Known::new(),
        touched: Mutex::default(),
        queue: Queue::new(),
    };
    let complete = async {
        tokio::join!(
            world.quotas.complete(),
            world.pods.complete(),
            world.services.complete(),
            world.claims.complete(),
        );
    };
    let work = async {
        if stop.run_until_cancelled(complete).await.is_some() {
            let look = |key| world.look(key);
            world.queue.drive("quota", AT_ONCE, &stop, look).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = world.news() => {}
    }
}

/// Pods of one workload use the same, and there are many: each use is kept once.
#[derive(Default)]
struct Uses(std::collections::BTreeSet<Arc<Usage>>, usize);

impl Uses {
    fn share(&mut self, usage: Usage) -> Arc<Usage> {
        if let Some(same) = self.0.get(&usage) {
            return Arc::clone(same);
        }
        // Those that nobody has any more go when there are twice as many as there were in use.
        if self.0.len() > 64 + 2 * self.1 {
            self.0.retain(|each| Arc::strong_count(each) > 1);
            self.1 = self.0.len();
        }
        let usage = Arc::new(usage);
        self.0.insert(Arc::clone(&usage));
        usage
    }
}

impl World {
    fn touched(&self) -> MutexGuard<'_, HashMap<Key, Instant>> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed_in(&self, namespace: &str) {
        for quota in self.quotas.find(namespace, |_| true) {
            self.queue.add_after(Key::of(&quota.metadata), GATHER);
        }
    }

    async fn news(&self) {
        let quotas = keep(
            Api::<ResourceQuota>::all(self.client.clone()),
            Config::default(),
            &self.quotas,
            |mut quota| {
                quota.metadata.managed_fields = None;
                Some(quota)
            },
            |key, _, new| match new {
                Some(quota) => {
                    self.touched().insert(key.clone(), Instant::now());
                    self.kinds.want(quota);
                    self.queue.add(key.clone());
                }
                None => {
                    self.touched().remove(key);
                }
            },
        );
        let uses = Mutex::new(Uses::default());
        let pods = keep_shared(
            &self.shared_pods,
            &self.pods,
            |pod| {
                let mut uses = uses.lock().unwrap_or_else(PoisonError::into_inner);
                Some(uses.share(Usage::of_pod(pod)))
            },
            |key, _, _| self.changed_in(&key.namespace),
        );
        let services = keep(
            Api::<Service>::all(self.client.clone()),
            Config::default(),
            &self.services,
            |service| Some(Usage::of_service(service)),
            |key, _, _| self.changed_in(&key.namespace),
        );
        let claims = keep(
            Api::<PersistentVolumeClaim>::all(self.client.clone()),
            Config::default(),
            &self.claims,
            |claim| Some(Usage::of_claim(claim)),
            |key, _, _| self.changed_in(&key.namespace),
        );
        let kinds = self.kinds.follow(|namespace| self.changed_in(namespace));
        tokio::join!(quotas, pods, services, claims, kinds);
    }

    async fn look(&self, key: Key) -> Result<Next, Fault> {
        let Some(quota) = self.quotas.get(&key.namespace, &key.name) else {
            return Ok(Next::Done);
        };
        if quota.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Done);
        }
        let mut objects: Vec<Arc<Usage>> = Vec::new();
        let pods = self.pods.find(&key.namespace, |_| true);
        objects.extend(pods.iter().map(|usage| Arc::clone(&**usage)));
        objects.extend(self.services.find(&key.namespace, |_| true));
        objects.extend(self.claims.find(&key.namespace, |_| true));
        let number = |plural: &str, group: &str| self.kinds.number(plural, group, &key.namespace);
        let status = plan_status(&quota, &objects, number);
        if quota.status.as_ref() == Some(&status) {
            return Ok(Next::Done);
        }
        if is_less(quota.status.as_ref(), &status) {
            let touched = self.touched().get(&key).copied();
            let alone = touched.map_or(SETTLE, |touched| touched.elapsed());
            if alone < SETTLE {
                self.queue.add_after(key, SETTLE.saturating_sub(alone));
                return Ok(Next::Done);
            }
        }
        let mut changed = ResourceQuota::clone(&quota);
        changed.status = Some(status);
        let quotas: Api<ResourceQuota> = Api::namespaced(self.client.clone(), &key.namespace);
        let parameters = PostParams::default();
        let written = quotas.replace_status(&key.name, &parameters, &changed);
        if let Some(mut newer) = found(ask(written).await)? {
            newer.metadata.managed_fields = None;
            self.quotas.note(&newer.metadata.clone(), newer);
        }
        Ok(Next::Done)
    }
}
