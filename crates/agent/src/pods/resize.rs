//! Changing what containers may use while they run.
//!
//! Invariant: what is wanted becomes what is allocated for the whole pod at once, and only if the node has room. A
//! container that is started again gets what is allocated, not what is only wanted.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use transom_runtime::{self as runtime, ContainerId};

use super::{
    memory::Memory,
    status,
    view::{Kind, View},
};
use crate::{
    compose::Allocatable,
    resources::{self, Amounts},
};

/// What came of the last wish for other resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// The pod that was wanted; another one is another wish.
    pub(crate) generation: Option<i64>,
    pub(crate) outcome: Outcome,
    /// `None`: never again.
    pub(crate) retry: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// This node never has the room, or cannot do it.
    Infeasible(String),
    /// Others have the room now.
    Deferred(String),
    /// It is allocated, and the runtime refused.
    Failed(String),
}

/// A container that runs with other resources than it is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) id: ContainerId,
    pub(crate) name: String,
    /// It wants to be started again for it.
    pub(crate) restarts: bool,
}

/// The containers whose resources may change while they run.
fn resizable(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    let init = spec.init_containers.iter().flatten();
    let sidecars = init.filter(|one| Kind::of_init(one) == Kind::Sidecar);
    spec.containers.iter().chain(sidecars)
}

/// Learns from the API what containers have, for an agent that begins and finds them running.
pub(crate) fn remember(view: &View, memory: &mut Memory) {
    for spec in view.spec().into_iter().flat_map(resizable) {
        let told = view.told(&spec.name).filter(|one| one.resources.is_some());
        let usual = || spec.resources.clone().unwrap_or_default();
        let newest = view.newest(&spec.name);
        if let Some(newest) = newest
            && !memory.given.contains_key(&newest.id)
        {
            let same = told.filter(|told| {
                told.container_id.as_deref() == Some(&status::container_id(view, newest))
            });
            let given = same.and_then(|told| told.resources.clone());
            memory
                .given
                .insert(newest.id.clone(), given.unwrap_or_else(usual));
        }
        if !memory.allocated.contains_key(&spec.name) && (newest.is_some() || told.is_some()) {
            let given = told.and_then(|told| told.resources.clone());
            memory
                .allocated
                .insert(spec.name.clone(), given.unwrap_or_else(usual));
        }
    }
}

/// What a container of a name may have now.
pub(crate) fn allocated(memory: &Memory, spec: &Container) -> Option<ResourceRequirements> {
    let known = memory.allocated.get(&spec.name).cloned();
    known.or_else(|| spec.resources.clone())
}

/// What a container was given when it was made, or later.
pub(crate) fn given(
    memory: &Memory,
    spec: &Container,
    container: &runtime::Container,
) -> Option<ResourceRequirements> {
    let known = memory.given.get(&container.id).cloned();
    known.or_else(|| spec.resources.clone())
}

fn amounts(resources: Option<&ResourceRequirements>, name: &str) -> [Option<i128>; 2] {
    let of = |list: Option<&BTreeMap<String, _>>| list?.get(name).and_then(crate::quantity::millis);
    let resources = resources.cloned().unwrap_or_default();
    [
        of(resources.requests.as_ref()),
        of(resources.limits.as_ref()),
    ]
}

/// The running containers that are to have something else.
pub(crate) fn changes(view: &View) -> Vec<Change> {
    let specs = view.spec().into_iter().flat_map(resizable);
    let change = |spec: &Container| {
        let container = view.newest(&spec.name)?;
        if !view.is_running(container) || !view.is_here(container) {
            return None;
        }
        let has = given(view.memory, spec, container);
        let wanted = spec.resources.as_ref();
        let changed: Vec<&str> = ["cpu", "memory"]
            .into_iter()
            .filter(|name| amounts(has.as_ref(), name) != amounts(wanted, name))
            .collect();
        let policies = || spec.resize_policy.iter().flatten();
        let restarts = policies().any(|policy| {
            policy.restart_policy == "RestartContainer"
                && changed.contains(&policy.resource_name.as_str())
        });
        (!changed.is_empty()).then(|| Change {
            id: container.id.clone(),
            name: spec.name.clone(),
            restarts,
        })
    };
    specs.filter_map(change).collect()
}

/// What came of this very wish, if it was tried.
pub(crate) fn attempt<'a>(view: &View<'a>) -> Option<&'a Attempt> {
    let attempt = view.memory.resize.as_ref()?;
    (attempt.generation == view.pod.metadata.generation).then_some(attempt)
}

/// Whether the node has said yes to what is wanted.
pub(crate) fn is_allocated(view: &View) -> bool {
    let mut specs = view.spec().into_iter().flat_map(resizable);
    specs.all(|spec| {
        let allocated = allocated(view.memory, spec);
        let wanted = spec.resources.as_ref();
        ["cpu", "memory"]
            .into_iter()
            .all(|name| amounts(allocated.as_ref(), name) == amounts(wanted, name))
    })
}

/// Allocates what a pod wants.
pub(crate) fn allocate(memory: &mut Memory, spec: &PodSpec) {
    for one in resizable(spec) {
        let wanted = one.resources.clone().unwrap_or_default();
        memory.allocated.insert(one.name.clone(), wanted);
    }
}

/// What the pods of this node were allocated, by uid. Each worker tells of its own.
#[derive(Debug, Default)]
pub(crate) struct Room {
    used: Mutex<BTreeMap<String, Amounts>>,
}

impl Room {
    fn used(&self) -> MutexGuard<'_, BTreeMap<String, Amounts>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pod takes what it was allocated.
    pub(crate) fn take(&self, pod: &Pod, memory: &Memory) {
        let mut spec = pod.spec.clone().unwrap_or_default();
        let init = spec.init_containers.iter_mut().flatten();
        for container in spec.containers.iter_mut().chain(init) {
            container.resources = allocated(memory, container);
        }
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.used().insert(uid, resources::pod_requests(&spec));
    }

    pub(crate) fn leave(&self, uid: &str) {
        self.used().remove(uid);
    }

    /// Whether a pod may have what it wants, beside all others.
    pub(crate) fn judge(
        &self,
        uid: &str,
        spec: &PodSpec,
        node: Allocatable,
    ) -> Result<(), Outcome> {
        let wanted = resources::pod_requests(spec);
        let of = |list: &Amounts, name: &str, unit| list.get(name).copied().unwrap_or(0) / unit;
        let all = [
            ("memory", 1_000, i128::from(node.memory_bytes)),
            ("cpu", 1, i128::from(node.cpu_millis)),
        ];
        for (name, unit, capacity) in all {
            let requested = of(&wanted, name, unit);
            if requested > capacity {
                return Err(Outcome::Infeasible(format!(
                    "Node didn't have enough capacity: {name}, requested: {requested}, capacity: {capacity}"
                )));
            }
        }
        let used = self.used();
        for (name, unit, capacity) in all.into_iter().rev() {
            let requested = of(&wanted, name, unit);
            let others = used.iter().filter(|(other, _)| *other != uid);
            let used: i128 = others.map(|(_, list)| of(list, name, unit)).sum();
            if requested > 0 && requested + used > capacity {
                return Err(Outcome::Deferred(format!(
                    "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NODE: Allocatable = Allocatable {
        cpu_millis: 2_000,
        memory_bytes: 1 << 30,
        storage_bytes: 0,
    };

    fn pod(uid: &str, requests: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"uid": uid},
            "spec": {"containers": [{"name": "a", "resources": {"requests": requests}}]},
        }))
        .unwrap()
    }

    #[test]
    fn room_that_is_never_there_is_told_from_room_that_others_have() {
        let room = Room::default();
        let (ours, theirs) = (
            json!({"cpu": "500m"}),
            json!({"cpu": "1", "memory": "512Mi"}),
        );
        room.take(&pod("ours", &ours), &Memory::default());
        room.take(&pod("theirs", &theirs), &Memory::default());
        let judge = |requests: Value| {
            let spec = pod("ours", &requests).spec.unwrap();
            room.judge("ours", &spec, NODE)
        };
        assert_eq!(judge(json!({"cpu": "1", "memory": "512Mi"})), Ok(()));
        assert_eq!(
            judge(json!({"cpu": "3"})),
            Err(Outcome::Infeasible(
                "Node didn't have enough capacity: cpu, requested: 3000, capacity: 2000".to_owned()
            ))
        );
        assert_eq!(
            judge(json!({"cpu": "1100m"})),
            Err(Outcome::Deferred(
                "Node didn't have enough resource: cpu, requested: 1100, used: 1000, capacity: 2000"
                    .to_owned()
            ))
        );
        assert!(matches!(
            judge(json!({"memory": "1Gi"})),
            Err(Outcome::Deferred(_))
        ));
        room.leave("theirs");
        assert_eq!(judge(json!({"cpu": "1100m", "memory": "1Gi"})), Ok(()));
    }

    #[test]
    fn what_is_only_wanted_takes_no_room() {
        let room = Room::default();
        let memory = Memory {
            allocated: BTreeMap::from([(
                "a".to_owned(),
                serde_json::from_value(json!({"requests": {"cpu": "100m"}})).unwrap(),
            )]),
            ..Memory::default()
        };
        room.take(&pod("theirs", &json!({"cpu": "2"})), &memory);
        let spec = pod("ours", &json!({"cpu": "1900m"})).spec.unwrap();
        assert_eq!(room.judge("ours", &spec, NODE), Ok(()));
    }
}
