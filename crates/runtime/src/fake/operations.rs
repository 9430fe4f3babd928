//! What a fake node does when its runtime is called.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use transom_host::files::path;
use transom_model::os::Os;

use super::Shared;
use super::node::{Behind, Call, Fault, Node};
use super::plan::{OnStop, Plan, Runs};
use crate::logs::{LogWriter, Stream};
use crate::{
    Container, ContainerId, ContainerSpec, ContainerState, ContainerStats, Cpu, Ended, Image,
    Memory, PodId, PodState, PodStats, RuntimeError,
};

pub(super) const KILLED: i32 = 137;
const CANNOT_RUN: i32 = 128;

/// Opened on a node of [`super::FakeMachines`]; any number may be.
#[derive(Clone)]
pub struct FakeRuntime {
    pub(super) shared: Arc<Shared>,
    pub(super) node: Arc<Node>,
}

impl fmt::Debug for FakeRuntime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FakeRuntime")
    }
}

impl FakeRuntime {
    /// Has the next calls of a kind fail. `u32::MAX` is for ever; 0 ends it.
    pub fn fail(&self, call: Call, times: u32, fault: Fault) {
        self.node.state().faults.insert(call, (times, fault));
    }

    /// Ends a container as a crash of its program would.
    pub fn crash(&self, id: &ContainerId, exit_code: i32) {
        self.node.end(id, self.now(), exit_code);
    }

    pub(super) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub(super) fn check(&self, call: Call) -> Result<(), RuntimeError> {
        match self.node.state().faults.get_mut(&call) {
            Some((left, fault)) if *left > 0 => {
                *left = if *left == u32::MAX { *left } else { *left - 1 };
                Err(fault.clone().into_error())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn create(
        &self,
        pod: &PodId,
        spec: &ContainerSpec,
    ) -> Result<ContainerId, RuntimeError> {
        self.check(Call::CreateContainer)?;
        let now = self.now();
        let id = ContainerId(format!("{pod}-{}-{}", spec.name, spec.attempt));
        let mut state = self.node.state();
        let there = state.pod(pod)?;
        if there.state == PodState::NotReady {
            return Err(RuntimeError::Invalid(format!("pod {pod} is stopped")));
        }
        if state.secrets.contains_key(&id) {
            return Ok(id);
        }
        let Some(pod_spec) = state.specs.get(pod).cloned() else {
            return Err(RuntimeError::Other(format!(
                "pod {pod} lost its description"
            )));
        };
        let plan = Arc::new((self.shared.script)(&pod_spec, spec));
        state.secrets.insert(
            id.clone(),
            Behind {
                pod: pod.clone(),
                plan,
                ends_at: None,
                stdin: spec.stdin,
                stdin_once: spec.stdin_once,
                log: None,
                waiting: Vec::new(),
            },
        );
        let container = Container {
            id: id.clone(),
            pod: pod.clone(),
            name: spec.name.clone(),
            attempt: spec.attempt,
            image: spec.image.clone(),
            image_name: spec.image_name.clone(),
            created: now,
            state: ContainerState::Created,
            labels: spec.labels.clone(),
            annotations: spec.annotations.clone(),
            // A slash separates names on either system, whichever the node is said to have.
            log_path: path::join(Os::Linux, &pod_spec.log_directory, spec.log_path.as_str()),
        };
        if let Some(pod) = state.pods.get_mut(pod) {
            pod.containers.push(container);
        }
        drop(state);
        self.node.tell(pod, Some(&id));
        Ok(id)
    }

    pub(super) async fn start(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        self.check(Call::StartContainer)?;
        let plan = Arc::clone(&self.node.state().behind(id)?.plan);
        if !plan.start_delay.is_zero() {
            self.shared.clock.sleep(plan.start_delay).await;
        }
        let now = self.now();
        let log = self.open_log(id)?;
        let mut state = self.node.state();
        let behind = state.behind(id)?;
        let pod = behind.pod.clone();
        let Some(container) = state.container_mut(id) else {
            return Ok(());
        };
        if container.state != ContainerState::Created {
            return Ok(());
        }
        if let Some(cause) = &plan.refuses_to_start {
            container.state = ContainerState::Exited(Ended {
                started: None,
                finished: now,
                exit_code: CANNOT_RUN,
                reason: "ContainerCannotRun".to_owned(),
                message: cause.clone(),
            });
            let program = container.name.clone();
            drop(state);
            self.node.tell(&pod, Some(id));
            return Err(RuntimeError::CannotRun {
                program,
                cause: cause.clone(),
            });
        }
        container.state = ContainerState::Running { started: now };
        let behind = state.behind(id)?;
        behind.log = log;
        if let Runs::For { duration, .. } = plan.runs {
            let at = now.saturating_add(duration).unwrap_or(Timestamp::MAX);
            behind.ends_at = Some(at);
            self.shared.alarm.at(at, &self.node, id.clone());
        }
        drop(state);
        self.node.tell(&pod, Some(id));
        Ok(())
    }

    /// Begins the log of a container with all that its program prints.
    fn open_log(&self, id: &ContainerId) -> Result<Option<Arc<LogWriter>>, RuntimeError> {
        if !self.shared.writes_logs {
            return Ok(None);
        }
        let mut state = self.node.state();
        let plan = Arc::clone(&state.behind(id)?.plan);
        let created = match state.container_mut(id) {
            Some(one) if one.state == ContainerState::Created => one.log_path.clone(),
            _ => return Ok(None),
        };
        drop(state);
        let failed = |error| RuntimeError::io("write the log of a fake container", error);
        if let Some(folder) = created.parent() {
            fs_err::create_dir_all(folder).map_err(failed)?;
        }
        let log = LogWriter::open(&created, Timestamp::now).map_err(failed)?;
        for (stream, line) in &plan.output {
            let line = format!("{line}\n");
            log.write(*stream, line.as_bytes()).map_err(failed)?;
        }
        for stream in [Stream::Stdout, Stream::Stderr] {
            log.finish(stream).map_err(failed)?;
        }
        Ok(Some(Arc::new(log)))
    }

    pub(super) async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), RuntimeError> {
        self.check(Call::StopContainer)?;
        let (plan, running) = {
            let mut state = self.node.state();
            state.settle_all(self.now());
            let plan = match state.behind(id) {
                Ok(behind) => Arc::clone(&behind.plan),
                Err(_) => return Ok(()),
            };
            let container = state.container_mut(id);
            let running =
                container.is_some_and(|one| matches!(one.state, ContainerState::Running { .. }));
            (plan, running)
        };
        if running {
            let (wait, code) = match plan.on_stop {
                OnStop::Ends { after, exit_code } if after <= grace => (after, exit_code),
                _ => (grace, KILLED),
            };
            if !wait.is_zero() {
                self.shared.clock.sleep(wait).await;
            }
            self.node.end(id, self.now(), code);
        }
        Ok(())
    }

    pub(super) fn stop_now(&self, id: &PodId) {
        let now = self.now();
        let containers: Vec<ContainerId> = match self.node.state().pods.get_mut(id) {
            Some(pod) => {
                pod.state = PodState::NotReady;
                pod.containers.iter().map(|one| one.id.clone()).collect()
            }
            None => return,
        };
        for container in containers {
            self.node.end(&container, now, KILLED);
        }
        self.node.tell(id, None);
    }

    pub(super) fn running_plan(&self, id: &ContainerId) -> Result<Arc<Plan>, RuntimeError> {
        let mut state = self.node.state();
        state.settle_all(self.now());
        let plan = Arc::clone(&state.behind(id)?.plan);
        match state.container_mut(id) {
            Some(one) if matches!(one.state, ContainerState::Running { .. }) => Ok(plan),
            _ => Err(RuntimeError::Invalid(format!(
                "container {id} is not running"
            ))),
        }
    }

    pub(super) fn measure(&self) -> Vec<PodStats> {
        let now = self.now();
        let mut state = self.node.state();
        state.settle_all(now);
        let measure = |container: &Container| {
            let ContainerState::Running { started } = container.state else {
                return None;
            };
            let plan = &state.secrets.get(&container.id)?.plan;
            let ran = now.duration_since(started).as_millis();
            let ran = u64::try_from(ran).unwrap_or_default();
            Some(ContainerStats {
                name: container.name.clone(),
                cpu: Some(Cpu {
                    used_nanoseconds: ran.saturating_mul(plan.cpu_millis).saturating_mul(1000),
                }),
                memory: Some(Memory {
                    usage_bytes: plan.memory_bytes,
                    working_set_bytes: plan.memory_bytes,
                    rss_bytes: None,
                    page_faults: None,
                }),
                writable: None,
                logs: None,
            })
        };
        let running = state
            .pods
            .values()
            .filter(|pod| pod.state == PodState::Ready);
        running
            .map(|pod| PodStats {
                pod: pod.id.clone(),
                taken: now,
                containers: pod.containers.iter().filter_map(measure).collect(),
                network: None,
                processes: None,
            })
            .collect()
    }
}

pub(super) fn image_of(reference: &str) -> Image {
    let digest = Sha256::digest(reference);
    let digest = digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    let name = reference.split('@').next().unwrap_or(reference);
    Image {
        id: format!("sha256:{digest}"),
        tags: vec![reference.to_owned()],
        digests: vec![format!("{name}@sha256:{digest}")],
        size: 1 << 20,
        os: "linux".to_owned(),
        architecture: "amd64".to_owned(),
        ..Image::default()
    }
}
