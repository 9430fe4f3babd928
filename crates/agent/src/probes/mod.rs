//! Probes: whether containers have started, are alive and are ready, asked again and again.
//!
//! Only a change of the answer matters to others; it is kept in the memory of the pod, and its worker is woken.

mod ask;
mod grpc;
mod tally;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::{Container, Pod, Probe};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;
use transom_runtime::{ContainerId, ContainerState};

pub(crate) use ask::{Answer, Target, http_get};

use self::tally::Tally;
use crate::{
    events::about_container,
    pods::{Kind, Memory, View},
    site::Site,
};

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Startup,
    Liveness,
    Readiness,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }

    fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup_probe.as_ref(),
            Self::Liveness => container.liveness_probe.as_ref(),
            Self::Readiness => container.readiness_probe.as_ref(),
        }
    }
}

/// The probes of one pod that are being asked.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    running: BTreeMap<(ContainerId, Purpose), AbortOnDropHandle<()>>,
}

impl Probes {
    /// Asks about the containers that run now, and about no others.
    pub(crate) fn follow(
        &mut self,
        view: &View,
        site: &Arc<Site>,
        memory: &Arc<Mutex<Memory>>,
        nudge: &Arc<Notify>,
        ending: bool,
    ) {
        let mut wanted = Vec::new();
        let sidecars = view
            .init()
            .iter()
            .filter(|one| Kind::of_init(one) == Kind::Sidecar);
        let main = view.main().iter().map(|one| (Kind::Main, one));
        for (kind, spec) in main.chain(sidecars.map(|one| (Kind::Sidecar, one))) {
            let Some(container) = view.newest(&spec.name).filter(|one| view.is_running(one)) else {
                continue;
            };
            for purpose in [Purpose::Startup, Purpose::Liveness, Purpose::Readiness] {
                let has_time = !ending || purpose == Purpose::Readiness;
                if has_time && purpose.of(spec).is_some() {
                    wanted.push((kind, spec, container, purpose));
                }
            }
        }
        self.running.retain(|(id, purpose), _| {
            wanted
                .iter()
                .any(|(_, _, container, other)| container.id == *id && other == purpose)
        });
        let host = crate::pods::pod_addresses(site, view.pod, &Arc::new(view.sandboxes.to_vec()));
        for (kind, spec, container, purpose) in wanted {
            let key = (container.id.clone(), purpose);
            let ContainerState::Running { started } = container.state else {
                continue;
            };
            self.running.entry(key).or_insert_with(|| {
                let asker = Asker {
                    site: Arc::clone(site),
                    pod: view.pod.clone(),
                    kind,
                    container: spec.clone(),
                    id: container.id.clone(),
                    purpose,
                    started,
                    host: host
                        .first()
                        .cloned()
                        .unwrap_or_else(|| "127.0.0.1".to_owned()),
                    memory: Arc::clone(memory),
                    nudge: Arc::clone(nudge),
                };
                AbortOnDropHandle::new(tokio::spawn(asker.run()))
            });
        }
    }
}

/// One probe of one container.
struct Asker {
    site: Arc<Site>,
    pod: Pod,
    kind: Kind,
    container: Container,
    id: ContainerId,
    purpose: Purpose,
    started: jiff::Timestamp,
    host: String,
    memory: Arc<Mutex<Memory>>,
    nudge: Arc<Notify>,
}

fn seconds(value: Option<i32>, usual: u64, least: u64) -> Duration {
    let given = value
        .and_then(|value| u64::try_from(value).ok())
        .filter(|value| *value > 0);
    Duration::from_secs(given.unwrap_or(usual).max(least))
}

impl Asker {
    async fn run(self) {
        let Some(probe) = self.purpose.of(&self.container).cloned() else {
            return;
        };
        let delay = seconds(probe.initial_delay_seconds, 0, 0);
        if let Ok(first) = self.started.checked_add(delay) {
            self.site.options.clock.sleep_until(first).await;
        }
        let period = seconds(probe.period_seconds, 10, 1);
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut tally = Tally::new(&probe, self.purpose);
        loop {
            ticks.tick().await;
            if self.purpose != Purpose::Startup && !self.has_started() {
                continue;
            }
            let answer = self.ask(&probe).await;
            self.report(&answer);
            if let Some(good) = tally.add(matches!(answer, Answer::Good)) {
                self.set(good);
                if self.purpose == Purpose::Startup && good
                    || self.purpose == Purpose::Liveness && !good
                {
                    return;
                }
            }
        }
    }

    fn has_started(&self) -> bool {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let health = memory.health.get(&self.id).copied().unwrap_or_default();
        self.container.startup_probe.is_none() || health.started == Some(true)
    }

    async fn ask(&self, probe: &Probe) -> Answer {
        let limit = seconds(probe.timeout_seconds, 1, 1);
        let target = Target {
            container: &self.container,
            host: &self.host,
        };
        ask::ask(&self.site, target, &self.id, probe, limit).await
    }

    fn report(&self, answer: &Answer) {
        let about = about_container(&self.pod, self.kind, &self.container.name);
        let name = self.purpose.name();
        match answer {
            Answer::Good => {}
            Answer::Bad(output) => {
                self.site.events.warning(
                    about,
                    "Unhealthy",
                    format!("{name} probe failed: {output}"),
                );
            }
            Answer::Unknown(error) => {
                self.site.events.warning(
                    about,
                    "Unhealthy",
                    format!("{name} probe errored: {error}"),
                );
            }
        }
    }

    fn set(&self, good: bool) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let health = memory.health.entry(self.id.clone()).or_default();
        let place = match self.purpose {
            Purpose::Startup => &mut health.started,
            Purpose::Liveness => &mut health.live,
            Purpose::Readiness => &mut health.ready,
        };
        if *place != Some(good) {
            *place = Some(good);
            drop(memory);
            self.nudge.notify_one();
        }
    }
}
