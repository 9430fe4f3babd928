//! One worker per pod: looks, decides, tells and acts, until nothing of the pod is left.
//!
//! Steps that take long never hide news: the status goes on being told, and a deletion interrupts them.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{
    act::{self, Bench, pod_addresses},
    checkpoint,
    decide::{Decision, Stage, decide},
    last_words,
    memory::{Memory, Verdict, Volumes},
    notices::Notices,
    resize,
    view::View,
};
use crate::{observer::Sandboxes, probes::Probes, site::Site, volumes::ensure_volumes};

/// How often a pod is looked at though nothing seems to have happened, and its volumes are brought up to date.
const RESYNC: Duration = Duration::from_mins(1);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What is wanted of a pod.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) pod: Arc<Pod>,
    /// The object is gone from the API, or the manifest from its folder.
    pub(crate) removed: bool,
    /// The object in the API that is told: the pod itself, or the mirror of a static pod.
    pub(crate) object: Option<Arc<Pod>>,
}

impl Wish {
    fn is_deleted(&self) -> bool {
        self.removed || self.pod.metadata.deletion_timestamp.is_some()
    }

    fn grace(&self) -> Option<i64> {
        self.pod.metadata.deletion_grace_period_seconds
    }
}

pub(crate) struct Worker {
    site: Arc<Site>,
    wishes: watch::Receiver<Wish>,
    observed: watch::Receiver<Sandboxes>,
    memory: Arc<Mutex<Memory>>,
    nudge: Arc<Notify>,
    probes: Probes,
    notices: Notices,
    /// What was said last, which the object may not show yet.
    said: Option<PodStatus>,
    /// When the volumes are brought up to date next, whatever happens until then.
    refresh: Instant,
}

/// By which others hold a worker.
pub(crate) struct Reins {
    memory: Arc<Mutex<Memory>>,
    nudge: Arc<Notify>,
}

impl Reins {
    /// The pod is to end. The first verdict stands: tells whether this is it.
    pub(crate) fn end(&self, verdict: Verdict) -> bool {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = memory.verdict.is_none();
        memory.verdict.get_or_insert(verdict);
        drop(memory);
        self.nudge.notify_one();
        is_first
    }
}

impl Worker {
    pub(crate) fn reins(&self) -> Reins {
        Reins {
            memory: Arc::clone(&self.memory),
            nudge: Arc::clone(&self.nudge),
        }
    }

    pub(crate) fn new(
        site: Arc<Site>,
        uid: &str,
        wishes: watch::Receiver<Wish>,
        verdict: Option<Verdict>,
    ) -> Self {
        let seen = Some(site.options.clock.now());
        let memory = Memory {
            verdict,
            seen,
            ..Memory::default()
        };
        Self {
            observed: site.observer.subscribe(uid),
            site,
            wishes,
            memory: Arc::new(Mutex::new(memory)),
            nudge: Arc::default(),
            probes: Probes::default(),
            notices: Notices::default(),
            said: None,
            refresh: Instant::now() + RESYNC,
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when nothing of the pod is left here.
    pub(crate) async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let decision = self.look().await;
            if decision.plan.stage == Stage::Gone {
                let wish = self.wishes.borrow().clone();
                if !wish.removed
                    && let Some(object) = &wish.object
                {
                    self.site.statuses.delete(object);
                }
                return;
            }
            if decision.plan.steps.is_empty() {
                // A pod that is never quiet for long has tokens that end, too.
                if Instant::now() >= self.refresh {
                    self.refresh().await;
                    self.refresh = Instant::now() + RESYNC;
                } else {
                    self.rest(decision.plan.wake).await;
                }
                continue;
            }
            if self.act(&decision).await {
                pause = FIRST_PAUSE;
            } else {
                self.pause(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// Sees what there is, decides, and tells what came of it.
    async fn look(&mut self) -> Decision {
        let wish = self.wishes.borrow_and_update().clone();
        let sandboxes = Arc::clone(&self.observed.borrow_and_update());
        last_words::learn(&self.site, &wish.pod, &sandboxes, &self.memory).await;
        let mut pod = (*wish.pod).clone();
        if let Some(said) = &self.said {
            pod.status = Some(merged(pod.status.take(), said.clone()));
        }
        let now = self.site.options.clock.now();
        let mut memory = self.memory();
        let is_there = |id: &_| {
            sandboxes
                .iter()
                .flat_map(|one| &one.containers)
                .any(|one| one.id == *id)
        };
        memory.retain(is_there);
        let place = self.site.place();
        let view = |memory| View {
            pod: &pod,
            sandboxes: &sandboxes,
            memory,
            now,
            removed: wish.removed,
            node: &place,
        };
        let blank = Memory::default();
        resize::remember(&view(&blank), &mut memory);
        let snapshot = memory.clone();
        let decision = decide(&view(&snapshot));
        if decision.plan.stage != Stage::Alive && memory.ending.is_none() {
            memory.ending = Some(now);
        }
        match decision.plan.stage {
            Stage::Alive | Stage::Ending => self.site.room.take(&pod, &memory),
            Stage::Ended | Stage::Gone => {
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                self.site.room.leave(uid);
            }
        }
        drop(memory);
        let ending = decision.plan.stage != Stage::Alive;
        self.probes.follow(
            &view(&snapshot),
            &self.site,
            &self.memory,
            &self.nudge,
            ending,
        );
        self.notices.tell(&self.site, &pod, &decision.plan);
        if !wish.removed
            && let Some(object) = &wish.object
        {
            self.site.statuses.tell(object, &decision.status);
        }
        self.said = Some(decision.status.clone());
        decision
    }

    /// Waits for news, at most until it is time for the volumes.
    async fn rest(&mut self, wake: Option<Timestamp>) {
        let clock = self.site.options.clock.clone();
        let wake = async {
            match wake {
                Some(when) => clock.sleep_until(when).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.wishes.changed() => {}
            _ = self.observed.changed() => {}
            () = self.nudge.notified() => {}
            () = wake => {}
            () = tokio::time::sleep_until(self.refresh) => {}
        }
    }

    async fn pause(&mut self, pause: Duration) {
        tokio::select! {
            _ = self.wishes.changed() => {}
            () = tokio::time::sleep(pause) => {}
        }
        if let Err(error) = self.site.observer.fresh().await {
            tracing::debug!(error, "the runtime could not be seen");
        }
    }

    /// Brings the volumes of a running pod up to date.
    async fn refresh(&mut self) {
        let is_ready = self.memory().volumes == Volumes::Ready;
        let wish = self.wishes.borrow().clone();
        if !is_ready || wish.is_deleted() {
            return;
        }
        let sandboxes = Arc::clone(&self.observed.borrow());
        let addresses = pod_addresses(&self.site, &wish.pod, &sandboxes);
        match ensure_volumes(&self.site, &wish.pod, &addresses).await {
            Ok(()) => checkpoint::save(&self.site, &wish.pod).await,
            Err(error) => tracing::debug!(%error, "volumes could not be brought up to date"),
        }
    }

    /// Carries out steps and looks at what they did; tells whether they went well.
    async fn act(&mut self, decision: &Decision) -> bool {
        let wish = self.wishes.borrow().clone();
        let sandboxes = Arc::clone(&self.observed.borrow());
        let (site, memory) = (Arc::clone(&self.site), Arc::clone(&self.memory));
        let bench = Bench {
            site: &site,
            pod: &wish.pod,
            sandboxes: &sandboxes,
            memory: &memory,
        };
        let mut acting = std::pin::pin!(act::execute(bench, &decision.plan.steps));
        let done = loop {
            tokio::select! {
                done = &mut acting => break done,
                _ = self.wishes.changed() => {
                    let newer = self.wishes.borrow().clone();
                    let sooner = newer.is_deleted() && newer.grace() < wish.grace();
                    if newer.is_deleted() != wish.is_deleted() || sooner {
                        // What was begun is found again by the next look.
                        self.memory().starting.clear();
                        break Ok(());
                    }
                }
                _ = self.observed.changed() => { self.look().await; }
                () = self.nudge.notified() => {
                    let verdict = self.look().await.plan.verdict;
                    if verdict.is_some() && decision.plan.verdict.is_none() {
                        // Nobody waits for the start of a pod that is to end.
                        self.memory().starting.clear();
                        break Ok(());
                    }
                }
            }
        };
        let name = wish.pod.metadata.name.as_deref().unwrap_or_default();
        if let Err(error) = &done {
            tracing::warn!(pod = name, %error, "a step failed and is tried again");
        }
        let seen = self.site.observer.fresh().await;
        if let Err(error) = &seen {
            tracing::debug!(pod = name, error, "the runtime could not be seen");
        }
        done.is_ok() && seen.is_ok()
    }
}

/// What was said, with what others said since in their own conditions.
fn merged(told: Option<PodStatus>, mut said: PodStatus) -> PodStatus {
    let Some(told) = told else { return said };
    let ours = said.conditions.take().unwrap_or_default();
    let is_other = |name: &str| !super::conditions::OURS.contains(&name);
    let mut all: Vec<_> = told
        .conditions
        .into_iter()
        .flatten()
        .filter(|one| is_other(&one.type_))
        .collect();
    all.extend(ours.into_iter().filter(|one| !is_other(&one.type_)));
    said.conditions = Some(all);
    said.nominated_node_name = told.nominated_node_name;
    said
}
