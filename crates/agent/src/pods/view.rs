//! All that a decision about a pod is made from, and questions that are asked of it often.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, EphemeralContainer, Pod, PodSpec};
use transom_runtime::{self as runtime, ContainerState, PodState};

use super::memory::{Health, Memory};
use crate::resources::is_sidecar;

/// A moment in the life of a pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) pod: &'a Pod,
    /// The newest first.
    pub(crate) sandboxes: &'a [runtime::Pod],
    pub(crate) memory: &'a Memory,
    pub(crate) now: Timestamp,
    /// The object is gone: nobody is told any more.
    pub(crate) removed: bool,
    pub(crate) node: &'a Place,
}

/// What pods say about where they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) addresses: Vec<String>,
    /// What container ids begin with.
    pub(crate) runtime: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Init,
    Sidecar,
    Main,
    Ephemeral,
}

impl Kind {
    pub(crate) fn of_init(container: &Container) -> Self {
        if is_sidecar(container) {
            Self::Sidecar
        } else {
            Self::Init
        }
    }
}

impl<'a> View<'a> {
    pub(crate) fn spec(&self) -> Option<&'a PodSpec> {
        self.pod.spec.as_ref()
    }

    pub(crate) fn init(&self) -> &'a [Container] {
        let list = self.spec().and_then(|spec| spec.init_containers.as_deref());
        list.unwrap_or_default()
    }

    pub(crate) fn main(&self) -> &'a [Container] {
        self.spec().map_or(&[], |spec| &spec.containers)
    }

    pub(crate) fn ephemeral(&self) -> &'a [EphemeralContainer] {
        let list = self
            .spec()
            .and_then(|spec| spec.ephemeral_containers.as_deref());
        list.unwrap_or_default()
    }

    pub(crate) fn restart_policy(&self) -> &'a str {
        let policy = self.spec().and_then(|spec| spec.restart_policy.as_deref());
        policy.unwrap_or("Always")
    }

    /// The sandbox that containers run in: the newest, if it is well.
    pub(crate) fn sandbox(&self) -> Option<&'a runtime::Pod> {
        let newest = self.sandboxes.first();
        newest.filter(|sandbox| sandbox.state == PodState::Ready)
    }

    pub(crate) fn containers(&self) -> impl Iterator<Item = &'a runtime::Container> + use<'a> {
        self.sandboxes
            .iter()
            .flat_map(|sandbox| &sandbox.containers)
    }

    /// The containers of a name, the newest first.
    pub(crate) fn named(&self, name: &str) -> Vec<&'a runtime::Container> {
        let mut all: Vec<_> = self.containers().filter(|one| one.name == name).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.attempt));
        all
    }

    pub(crate) fn newest(&self, name: &str) -> Option<&'a runtime::Container> {
        self.containers()
            .filter(|one| one.name == name)
            .max_by_key(|one| one.attempt)
    }

    /// Whether a container is in the sandbox of today.
    pub(crate) fn is_here(&self, container: &runtime::Container) -> bool {
        self.sandbox()
            .is_some_and(|sandbox| sandbox.id == container.pod)
    }

    pub(crate) fn is_running(&self, container: &runtime::Container) -> bool {
        let runs = matches!(container.state, ContainerState::Running { .. });
        let sandbox = self.sandboxes.iter().find(|one| one.id == container.pod);
        runs && sandbox.is_some_and(|sandbox| sandbox.state == PodState::Ready)
    }

    /// What the API says of a container.
    pub(crate) fn told(&self, name: &str) -> Option<&'a ContainerStatus> {
        let status = self.pod.status.as_ref()?;
        [
            &status.container_statuses,
            &status.init_container_statuses,
            &status.ephemeral_container_statuses,
        ]
        .into_iter()
        .flatten()
        .flatten()
        .find(|one| one.name == name)
    }

    pub(crate) fn health(&self, container: &runtime::Container) -> Health {
        self.memory
            .health
            .get(&container.id)
            .copied()
            .unwrap_or_default()
    }

    /// Past its hook after the start, and past its startup probe.
    pub(crate) fn has_started(&self, spec: &Container, container: &runtime::Container) -> bool {
        self.is_running(container)
            && !self.memory.starting.contains(&spec.name)
            && (spec.startup_probe.is_none() || self.health(container).started == Some(true))
    }

    pub(crate) fn is_ready(&self, spec: &Container, container: &runtime::Container) -> bool {
        self.has_started(spec, container)
            && (spec.readiness_probe.is_none() || self.health(container).ready == Some(true))
    }

    /// When the pod was taken on, for its status and its deadline.
    pub(crate) fn start_time(&self) -> Timestamp {
        let told = self
            .pod
            .status
            .as_ref()
            .and_then(|status| status.start_time.as_ref());
        told.map(|time| time.0)
            .or(self.memory.seen)
            .unwrap_or(self.now)
    }
}

/// `name_namespace(uid)`, as people know it from events.
pub(crate) fn full_name(pod: &Pod) -> String {
    let meta = &pod.metadata;
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    format!(
        "{}_{}({})",
        text(&meta.name),
        text(&meta.namespace),
        text(&meta.uid)
    )
}

/// An ephemeral container is a container without some of the fields.
pub(crate) fn as_container(ephemeral: &EphemeralContainer) -> Container {
    let one = ephemeral.clone();
    Container {
        args: one.args,
        command: one.command,
        env: one.env,
        env_from: one.env_from,
        image: one.image,
        image_pull_policy: one.image_pull_policy,
        name: one.name,
        security_context: one.security_context,
        stdin: one.stdin,
        stdin_once: one.stdin_once,
        termination_message_path: one.termination_message_path,
        termination_message_policy: one.termination_message_policy,
        tty: one.tty,
        volume_mounts: one.volume_mounts,
        volume_devices: one.volume_devices,
        working_dir: one.working_dir,
        ..Container::default()
    }
}

/// A container of a pod by name, with what it is to the pod.
pub(crate) fn find(pod: &Pod, name: &str) -> Option<(Kind, Container)> {
    let spec = pod.spec.as_ref()?;
    let main = spec.containers.iter().map(|one| (Kind::Main, one));
    let init = spec.init_containers.iter().flatten();
    main.chain(init.map(|one| (Kind::of_init(one), one)))
        .find(|(_, one)| one.name == name)
        .map(|(kind, one)| (kind, one.clone()))
        .or_else(|| {
            let mut ephemeral = spec.ephemeral_containers.iter().flatten();
            let one = ephemeral.find(|one| one.name == name)?;
            Some((Kind::Ephemeral, as_container(one)))
        })
}
