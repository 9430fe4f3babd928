//! What is on one fake node.
//!
//! Invariant: a container's end is written at the moment its plan says, whenever somebody looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::{broadcast, oneshot};

use super::plan::{Plan, Runs};
use crate::logs::LogWriter;
use crate::{
    Container, ContainerId, ContainerState, Ended, Event, Image, Pod, PodId, RuntimeError,
};

/// Few: a node has tens of pods, and who lags lists again.
const MOST_EVENTS: usize = 64;

/// The calls of a runtime that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    Version,
    StartPod,
    StopPod,
    RemovePod,
    Pods,
    CreateContainer,
    StartContainer,
    StopContainer,
    RemoveContainer,
    Exec,
    Pull,
    Stats,
}

/// How a call fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nobody answers.
    Unavailable,
    /// The image cannot be had.
    Pull(String),
    Other(String),
}

impl Fault {
    pub(super) fn into_error(self) -> RuntimeError {
        match self {
            Self::Unavailable => RuntimeError::Unavailable {
                runtime: "fake",
                cause: "it was told not to".to_owned(),
            },
            Self::Pull(cause) => RuntimeError::Pull {
                reference: String::new(),
                cause,
            },
            Self::Other(text) => RuntimeError::Other(text),
        }
    }
}

#[derive(Debug)]
pub(super) struct Node {
    state: Mutex<State>,
    pub(super) events: broadcast::Sender<Event>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) pods: BTreeMap<PodId, Pod>,
    /// Beside the pods: what people do not see.
    pub(super) secrets: BTreeMap<ContainerId, Behind>,
    pub(super) specs: BTreeMap<PodId, Arc<crate::PodSpec>>,
    pub(super) images: BTreeMap<String, Image>,
    /// Calls that fail: how often still, and how.
    pub(super) faults: BTreeMap<Call, (u32, Fault)>,
}

/// What is behind a container.
#[derive(Debug)]
pub(super) struct Behind {
    pub(super) pod: PodId,
    pub(super) plan: Arc<Plan>,
    pub(super) ends_at: Option<Timestamp>,
    pub(super) stdin: bool,
    pub(super) stdin_once: bool,
    pub(super) log: Option<Arc<LogWriter>>,
    pub(super) waiting: Vec<oneshot::Sender<i32>>,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            events: broadcast::channel(MOST_EVENTS).0,
        }
    }
}

impl Node {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, pod: &PodId, container: Option<&ContainerId>) {
        // Fails when nobody listens, which is fine.
        let _ = self.events.send(Event {
            pod: pod.clone(),
            container: container.cloned(),
        });
    }

    /// The time of a container has come: it ends, and whoever listens is told, also if somebody looked at it in this
    /// very moment and found that it had ended.
    pub(super) fn ring(&self, id: &ContainerId, now: Timestamp) {
        let pod = {
            let mut state = self.state();
            let behind = state.secrets.get(id);
            let found = behind.map(|behind| (behind.pod.clone(), behind.ends_at));
            if found
                .as_ref()
                .and_then(|(_, due)| *due)
                .is_some_and(|due| due <= now)
            {
                state.end_by_plan(id);
            }
            found.map(|(pod, _)| pod)
        };
        if let Some(pod) = pod {
            self.tell(&pod, Some(id));
        }
    }

    /// Ends a container whose time has come.
    fn settle(&self, id: &ContainerId, now: Timestamp) {
        let ended = {
            let mut state = self.state();
            let due = state.secrets.get(id).and_then(|behind| behind.ends_at);
            match due {
                Some(at) if at <= now => state.end_by_plan(id),
                _ => None,
            }
        };
        if let Some(pod) = ended {
            self.tell(&pod, Some(id));
        }
    }

    /// Ends a container now, if it runs.
    pub(super) fn end(&self, id: &ContainerId, now: Timestamp, exit_code: i32) {
        self.settle(id, now);
        let ended = self.state().end(id, now, exit_code);
        if let Some(pod) = ended {
            self.tell(&pod, Some(id));
        }
    }
}

impl State {
    /// Writes down every end that is due, so that what is read is true at `now`.
    pub(super) fn settle_all(&mut self, now: Timestamp) {
        let is_due = |behind: &Behind| behind.ends_at.is_some_and(|at| at <= now);
        let due: Vec<ContainerId> = self
            .secrets
            .iter()
            .filter(|(_, behind)| is_due(behind))
            .map(|(id, _)| id.clone())
            .collect();
        for id in due {
            self.end_by_plan(&id);
        }
    }

    fn end_by_plan(&mut self, id: &ContainerId) -> Option<PodId> {
        let behind = self.secrets.get(id)?;
        let Runs::For { exit_code, .. } = behind.plan.runs else {
            return None;
        };
        self.end(id, behind.ends_at?, exit_code)
    }

    pub(super) fn end(&mut self, id: &ContainerId, at: Timestamp, exit_code: i32) -> Option<PodId> {
        let behind = self.secrets.get_mut(id)?;
        behind.ends_at = None;
        behind.log = None;
        let pod = behind.pod.clone();
        let waiting = std::mem::take(&mut behind.waiting);
        let container = self.container_mut(id)?;
        let ContainerState::Running { started } = container.state else {
            return None;
        };
        let reason = if exit_code == 0 { "Completed" } else { "Error" };
        container.state = ContainerState::Exited(Ended {
            started: Some(started),
            finished: at,
            exit_code,
            reason: reason.to_owned(),
            message: String::new(),
        });
        for waiter in waiting {
            // Whoever does not wait any more need not know.
            let _ = waiter.send(exit_code);
        }
        Some(pod)
    }

    pub(super) fn pod(&self, id: &PodId) -> Result<&Pod, RuntimeError> {
        self.pods.get(id).ok_or_else(|| RuntimeError::NotFound {
            what: "pod",
            id: id.to_string(),
        })
    }

    pub(super) fn behind(&mut self, id: &ContainerId) -> Result<&mut Behind, RuntimeError> {
        self.secrets
            .get_mut(id)
            .ok_or_else(|| RuntimeError::NotFound {
                what: "container",
                id: id.to_string(),
            })
    }

    pub(super) fn container_mut(&mut self, id: &ContainerId) -> Option<&mut Container> {
        let pod = self.secrets.get(id)?.pod.clone();
        let pod = self.pods.get_mut(&pod)?;
        pod.containers.iter_mut().find(|one| one.id == *id)
    }
}
