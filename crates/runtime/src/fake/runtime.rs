//! The runtime of one fake node, call by call.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, oneshot};
use transom_model::images::ImagePlatform;

use super::node::Call;
use super::operations::{FakeRuntime, KILLED, image_of};
use super::session;
use crate::images::Description;
use crate::{
    Attach, Connection, ContainerId, ContainerSpec, ContainerState, Event, Exec, Image, ImageSpace,
    Pending, Pod, PodId, PodNetwork, PodSpec, PodState, PodStats, Pull, Resources, Runtime,
    RuntimeError, Session, Version,
};

const IMAGE_ROOM: u64 = 1 << 40;

impl Runtime for FakeRuntime {
    fn version(&self) -> Pending<'_, Version> {
        Box::pin(async {
            self.check(Call::Version)?;
            Ok(Version {
                name: "fake".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            })
        })
    }

    fn start_pod<'a>(&'a self, spec: &'a PodSpec) -> Pending<'a, PodId> {
        Box::pin(async move {
            self.check(Call::StartPod)?;
            let id = PodId(format!("{}-{}", spec.uid, spec.attempt));
            let mut state = self.node.state();
            if state.pods.contains_key(&id) {
                return Ok(id);
            }
            let addresses = match spec.network {
                PodNetwork::Own => vec![self.shared.next_address()],
                PodNetwork::Host => Vec::<IpAddr>::new(),
            };
            let pod = Pod {
                id: id.clone(),
                uid: spec.uid.clone(),
                namespace: spec.namespace.clone(),
                name: spec.name.clone(),
                attempt: spec.attempt,
                state: PodState::Ready,
                created: self.now(),
                addresses,
                labels: spec.labels.clone(),
                annotations: spec.annotations.clone(),
                containers: Vec::new(),
            };
            state.pods.insert(id.clone(), pod);
            state.specs.insert(id.clone(), Arc::new(spec.clone()));
            drop(state);
            self.node.tell(&id, None);
            Ok(id)
        })
    }

    fn stop_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        Box::pin(async move {
            self.check(Call::StopPod)?;
            self.stop_now(id);
            Ok(())
        })
    }

    fn remove_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        Box::pin(async move {
            self.check(Call::RemovePod)?;
            self.stop_now(id);
            let mut state = self.node.state();
            let gone = state.pods.remove(id);
            state.specs.remove(id);
            for container in gone.iter().flat_map(|pod| &pod.containers) {
                state.secrets.remove(&container.id);
            }
            drop(state);
            if gone.is_some() {
                self.node.tell(id, None);
            }
            Ok(())
        })
    }

    fn pods(&self) -> Pending<'_, Vec<Pod>> {
        Box::pin(async {
            self.check(Call::Pods)?;
            let mut state = self.node.state();
            state.settle_all(self.now());
            Ok(state.pods.values().cloned().collect())
        })
    }

    fn create_container<'a>(
        &'a self,
        pod: &'a PodId,
        spec: &'a ContainerSpec,
    ) -> Pending<'a, ContainerId> {
        Box::pin(async move { self.create(pod, spec) })
    }

    fn start_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        Box::pin(self.start(id))
    }

    fn stop_container<'a>(&'a self, id: &'a ContainerId, grace: Duration) -> Pending<'a, ()> {
        Box::pin(self.stop(id, grace))
    }

    fn remove_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        Box::pin(async move {
            self.check(Call::RemoveContainer)?;
            self.node.end(id, self.now(), KILLED);
            let mut state = self.node.state();
            let Some(behind) = state.secrets.remove(id) else {
                return Ok(());
            };
            if let Some(pod) = state.pods.get_mut(&behind.pod) {
                pod.containers.retain(|one| one.id != *id);
            }
            drop(state);
            self.node.tell(&behind.pod, Some(id));
            Ok(())
        })
    }

    fn update_container<'a>(
        &'a self,
        id: &'a ContainerId,
        _resources: &'a Resources,
    ) -> Pending<'a, ()> {
        Box::pin(async move { self.node.state().behind(id).map(|_| ()) })
    }

    fn reopen_log<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        Box::pin(async move {
            let log = self.node.state().behind(id)?.log.clone();
            log.map_or(Ok(()), |log| log.reopen())
                .map_err(|error| RuntimeError::io("begin a new log", error))
        })
    }

    fn exec<'a>(&'a self, id: &'a ContainerId, exec: &'a Exec) -> Pending<'a, Session> {
        Box::pin(async move {
            self.check(Call::Exec)?;
            let plan = self.running_plan(id)?;
            Ok(session::run(exec, (plan.exec)(exec)))
        })
    }

    fn attach<'a>(&'a self, id: &'a ContainerId, attach: &'a Attach) -> Pending<'a, Session> {
        Box::pin(async move {
            let plan = self.running_plan(id)?;
            let (waiter, ended) = oneshot::channel();
            let mut state = self.node.state();
            let behind = state.behind(id)?;
            behind.waiting.retain(|other| !other.is_closed());
            behind.waiting.push(waiter);
            let log = behind.log.clone();
            let attach = Attach {
                stdin: attach.stdin && behind.stdin,
                ..*attach
            };
            let ends_input = attach.stdin && behind.stdin_once;
            drop(state);
            let to = session::Attached {
                node: Arc::clone(&self.node),
                clock: Arc::clone(&self.shared.clock),
                container: id.clone(),
                plan,
                log,
                ends_input,
                ended,
            };
            Ok(session::attach(attach, to))
        })
    }

    fn connect<'a>(&'a self, id: &'a PodId, port: u16) -> Pending<'a, Connection> {
        Box::pin(async move {
            let now = self.now();
            let mut state = self.node.state();
            state.settle_all(now);
            let answers = state.pod(id)?.containers.iter().any(|one| {
                matches!(one.state, ContainerState::Running { .. })
                    && state
                        .secrets
                        .get(&one.id)
                        .is_some_and(|behind| behind.plan.echo_ports.contains(&port))
            });
            if !answers {
                let refused = std::io::ErrorKind::ConnectionRefused.into();
                return Err(RuntimeError::io(format!("connect to port {port}"), refused));
            }
            let (ours, theirs) = tokio::io::duplex(64 << 10);
            tokio::spawn(async move {
                let (mut from, mut to) = tokio::io::split(ours);
                // Ends when the other side hangs up, in whatever way.
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
            Ok(Connection(Box::new(theirs)))
        })
    }

    fn stats(&self) -> Pending<'_, Vec<PodStats>> {
        Box::pin(async {
            self.check(Call::Stats)?;
            Ok(self.measure())
        })
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.node.events.subscribe()
    }

    fn pull<'a>(&'a self, pull: &'a Pull) -> Pending<'a, Image> {
        Box::pin(async move {
            self.check(Call::Pull).map_err(|error| match error {
                RuntimeError::Pull { cause, .. } => RuntimeError::Pull {
                    reference: pull.reference.clone(),
                    cause,
                },
                other => other,
            })?;
            let image = image_of(&pull.reference);
            let mut state = self.node.state();
            state.images.insert(image.id.clone(), image.clone());
            Ok(image)
        })
    }

    /// Told also where a pull fails: it is the registry that knows.
    fn describe<'a>(&'a self, pull: &'a Pull) -> Pending<'a, Option<Description>> {
        Box::pin(async move {
            let image = image_of(&pull.reference);
            Ok(Some(Description {
                digest: image.id,
                platforms: vec![ImagePlatform {
                    os: image.os,
                    architecture: image.architecture,
                    os_version: image.os_version,
                }],
            }))
        })
    }

    fn image<'a>(&'a self, reference: &'a str) -> Pending<'a, Option<Image>> {
        Box::pin(async move {
            let state = self.node.state();
            let is_meant = |image: &&Image| {
                image.id == reference
                    || image.tags.iter().any(|tag| tag == reference)
                    || image.digests.iter().any(|digest| digest == reference)
            };
            Ok(state.images.values().find(is_meant).cloned())
        })
    }

    fn images(&self) -> Pending<'_, Vec<Image>> {
        Box::pin(async { Ok(self.node.state().images.values().cloned().collect()) })
    }

    fn remove_image<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut state = self.node.state();
            let mut containers = state.pods.values().flat_map(|pod| &pod.containers);
            if containers.any(|one| one.image == id) {
                let text = format!("image {id} is used by a container");
                return Err(RuntimeError::Invalid(text));
            }
            state.images.remove(id);
            Ok(())
        })
    }

    fn image_space(&self) -> Pending<'_, ImageSpace> {
        Box::pin(async {
            let used_bytes = self
                .node
                .state()
                .images
                .values()
                .map(|image| image.size)
                .sum();
            Ok(ImageSpace {
                used_bytes,
                capacity_bytes: IMAGE_ROOM,
                available_bytes: IMAGE_ROOM - used_bytes,
            })
        })
    }
}
