//! Keeps the status of disruption budgets, which the API spends when pods are evicted.
//!
//! A pod that changes has the budgets looked at that select it. What the API spent meanwhile is never overwritten:
//! a status is written on the version that was seen, or not at all.

mod decide;
mod foreign;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    time::Duration,
};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet, StatefulSet},
        core::v1::{Pod, ReplicationController},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference},
    jiff::Timestamp,
    serde::de::DeserializeOwned,
};
use kube::{
    Api, Client, Resource,
    api::PostParams,
    core::{Selector, SelectorExt as _},
    runtime::watcher::Config,
};
use tokio_util::sync::CancellationToken;

use self::{
    decide::{PodFacts, controller, judge, needs_scale},
    foreign::Foreign,
};
use crate::{
    announce::{Announcer, core},
    fault::{Fault, ask, found},
    known::{Key, Known, keep, keep_shared},
    queue::{Next, Queue},
    shared::Shared,
};

const AT_ONCE: usize = 8;
/// Changes of pods that come one upon the other are counted together.
const GATHER: Duration = Duration::from_millis(100);
/// How often a size is asked for that no watch tells of.
const UNTOLD: Duration = Duration::from_mins(1);

/// A controller of pods as far as its size matters.
#[derive(Clone, Debug, PartialEq)]
struct Scale {
    namespace: String,
    uid: String,
    replicas: i32,
    /// Who decides the size in its place.
    controller: Option<OwnerReference>,
}

/// How many pods there should be.
enum Expected {
    Known {
        sum: i32,
        /// Whether a controller had to be asked, since no watch tells of its size.
        is_asked: bool,
    },
    /// Why nobody can tell.
    Unknown(String),
}

impl Expected {
    /// Whether it may change, or become known, without any watch telling of it.
    fn is_untold(&self) -> bool {
        !matches!(
            self,
            Self::Known {
                is_asked: false,
                ..
            }
        )
    }

    fn into_result(self) -> Result<i32, String> {
        match self {
            Self::Known { sum, .. } => Ok(sum),
            Self::Unknown(why) => Err(why),
        }
    }
}

/// Whether a controller is of one of the kinds that are watched.
fn is_built_in(owner: &OwnerReference) -> bool {
    match owner.kind.as_str() {
        "ReplicationController" => owner.api_version == "v1",
        "Deployment" | "ReplicaSet" | "StatefulSet" => owner.api_version.starts_with("apps/"),
        _ => false,
    }
}

struct World {
    shared_pods: Shared<Pod>,
    client: Client,
    budgets: Known<PodDisruptionBudget>,
    pods: Known<PodFacts>,
    scales: BTreeMap<&'static str, Known<Scale>>,
    foreign: Foreign,
    queue: Queue<Key>,
    events: Announcer,
}

pub(crate) async fn run(client: Client, pods: Shared<Pod>, stop: CancellationToken) {
    let kinds = [
        "Deployment",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
    ];
    let world = World {
        events: Announcer::new(client.clone(), "controllermanager"),
        foreign: Foreign::new(client.clone()),
        client,
        shared_pods: pods,
        budgets: Known::new(),
        pods: Known::new(),
        scales: kinds.map(|kind| (kind, Known::new())).into(),
        queue: Queue::new(),
    };
    let complete = async {
        tokio::join!(world.budgets.complete(), world.pods.complete());
        for scales in world.scales.values() {
            scales.complete().await;
        }
    };
    let work = async {
        if stop.run_until_cancelled(complete).await.is_some() {
            let look = |key| world.look(key);
            world.queue.drive("disruption", AT_ONCE, &stop, look).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = world.news() => {}
    }
}

/// Whether a budget is about pods with these labels.
fn selects(budget: &PodDisruptionBudget, labels: &BTreeMap<String, String>) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    // Without a selector it is about no pod, with an empty one about all.
    selector.is_some_and(|selector: &LabelSelector| {
        Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(labels))
    })
}

impl World {
    async fn news(&self) {
        let budgets = keep(
            Api::<PodDisruptionBudget>::all(self.client.clone()),
            Config::default(),
            &self.budgets,
            |mut budget| {
                budget.metadata.managed_fields = None;
                Some(budget)
            },
            |key, _, new| {
                if new.is_some() {
                    self.queue.add(key.clone());
                }
            },
        );
        let pods = keep_shared(
            &self.shared_pods,
            &self.pods,
            |pod| Some(PodFacts::read(pod)),
            |key, old, new| {
                let concerns = |budget: &PodDisruptionBudget| {
                    let mut pods = [old, new].into_iter().flatten();
                    pods.any(|pod| selects(budget, &pod.labels))
                };
                for budget in self.budgets.find(&key.namespace, concerns) {
                    self.queue.add_after(Key::of(&budget.metadata), GATHER);
                }
            },
        );
        let deployments = self.follow_scale("Deployment", |deployment: &Deployment| {
            deployment.spec.as_ref().and_then(|spec| spec.replicas)
        });
        let sets = self.follow_scale("ReplicaSet", |set: &ReplicaSet| {
            set.spec.as_ref().and_then(|spec| spec.replicas)
        });
        let old = self.follow_scale("ReplicationController", |old: &ReplicationController| {
            old.spec.as_ref().and_then(|spec| spec.replicas)
        });
        let stateful = self.follow_scale("StatefulSet", |set: &StatefulSet| {
            set.spec.as_ref().and_then(|spec| spec.replicas)
        });
        tokio::join!(budgets, pods, deployments, sets, old, stateful);
    }

    async fn follow_scale<K>(&self, kind: &str, replicas: impl Fn(&K) -> Option<i32>)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let Some(known) = self.scales.get(kind) else {
            return;
        };
        keep(
            Api::<K>::all(self.client.clone()),
            Config::default(),
            known,
            |object| {
                let replicas = replicas(&object).unwrap_or(1);
                let metadata = object.meta();
                Some(Scale {
                    namespace: metadata.namespace.clone().unwrap_or_default(),
                    uid: metadata.uid.clone().unwrap_or_default(),
                    replicas,
                    controller: controller(metadata.owner_references.as_deref()),
                })
            },
            |key, _, _| {
                for budget in self.budgets.find(&key.namespace, needs_scale) {
                    self.queue.add_after(Key::of(&budget.metadata), GATHER);
                }
            },
        )
        .await;
    }

    /// How many pods the controllers of these want in all, and whether some of them had to be asked.
    async fn scale(&self, pods: &[std::sync::Arc<PodFacts>]) -> Result<Expected, Fault> {
        let mut counted = BTreeSet::new();
        let mut sum: i32 = 0;
        let mut is_asked = false;
        // Pods without a controller count as nobody's.
        for pod in pods {
            let Some(mut owner) = pod.controller.clone() else {
                continue;
            };
            if !counted.insert(owner.uid.clone()) {
                continue;
            }
            let known = self.known_scale(&pod.namespace, &owner);
            let above = known.as_ref().and_then(|scale| scale.controller.clone());
            // Who owns a set that is no deployment is no business of ours: the set says its size itself.
            if let Some(above) = above.filter(is_built_in) {
                owner = above;
                if !counted.insert(owner.uid.clone()) {
                    continue;
                }
            }
            let replicas = if is_built_in(&owner) {
                let scale = self.known_scale(&pod.namespace, &owner);
                scale.map(|scale| scale.replicas)
            } else {
                is_asked = true;
                match self.foreign.replicas(&pod.namespace, &owner).await? {
                    Ok(replicas) => replicas,
                    Err(why) => return Ok(Expected::Unknown(why)),
                }
            };
            match replicas {
                Some(replicas) => sum = sum.saturating_add(replicas),
                None => {
                    return Ok(Expected::Unknown(format!(
                        "found no controllers for pod owned by {} {:?}",
                        owner.kind, owner.name
                    )));
                }
            }
        }
        Ok(Expected::Known { sum, is_asked })
    }

    /// The size that a watch told of.
    fn known_scale(
        &self,
        namespace: &str,
        owner: &OwnerReference,
    ) -> Option<std::sync::Arc<Scale>> {
        let known = self.scales.get(owner.kind.as_str());
        let scale = known.filter(|_| is_built_in(owner))?;
        let scale = scale.get(namespace, &owner.name)?;
        (scale.uid == owner.uid).then_some(scale)
    }

    async fn look(&self, key: Key) -> Result<Next, Fault> {
        let Some(budget) = self.budgets.get(&key.namespace, &key.name) else {
            return Ok(Next::Done);
        };
        if budget.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Done);
        }
        let of_budget = |pod: &PodFacts| selects(&budget, &pod.labels);
        let pods = self.pods.find(&key.namespace, of_budget);
        let scale = if needs_scale(&budget) {
            self.scale(&pods).await?
        } else {
            Expected::Known {
                sum: 0,
                is_asked: false,
            }
        };
        if scale.is_untold() {
            self.queue.add_after(key.clone(), UNTOLD);
        }
        let scale = scale.into_result();
        let uid = budget.metadata.uid.clone().unwrap_or_default();
        let mut about = core("PodDisruptionBudget", &key.namespace, &key.name, &uid);
        about.api_version = Some("policy/v1".to_owned());
        if let Err(why) = &scale {
            let text = format!("Failed to calculate the number of expected pods: {why}");
            let reason = "CalculateExpectedPodCountFailed";
            self.events.warn(&about, reason, text).await;
        }
        let scale = scale.as_ref().map(|scale| *scale).map_err(String::as_str);
        let verdict = judge(&budget, &pods, scale, Timestamp::now());
        for name in &verdict.broken {
            let text = format!(
                "Pod {name} was expected by PDB {}/{} to be deleted but it wasn't",
                key.namespace, key.name
            );
            self.events.warn(&about, "NotDeleted", text).await;
        }
        if let Some(again) = verdict.again {
            self.queue.add_after(key.clone(), again);
        }
        if budget.status.as_ref() == Some(&verdict.status) {
            return Ok(Next::Done);
        }
        let mut changed = PodDisruptionBudget::clone(&budget);
        changed.status = Some(verdict.status);
        let budgets: Api<PodDisruptionBudget> =
            Api::namespaced(self.client.clone(), &key.namespace);
        let parameters = PostParams::default();
        let written = budgets.replace_status(&key.name, &parameters, &changed);
        if let Some(mut newer) = found(ask(written).await)? {
            newer.metadata.managed_fields = None;
            self.budgets.note(&newer.metadata.clone(), newer);
        }
        Ok(Next::Done)
    }
}
