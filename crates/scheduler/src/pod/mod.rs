//! A pod as the scheduler sees it. [`PodFacts`] are what others must know of a pod wherever it is;
//! [`PodToPlace`] adds what it wants, which nobody needs any more once it has its place.

mod requests;
mod terms;
mod wishes;

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use transom_model::Os;

pub(crate) use terms::{PodTerm, Spread, TermKind, Weighted};
pub(crate) use wishes::{NodeNeed, NodeTerm, Toleration, terms as node_terms};

use crate::{
    extras,
    labels::Labels,
    node::HostPort,
    resources::Resources,
    text::{Text, Texts},
};

/// The scheduler that is meant when a pod names none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// What others must know of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodFacts {
    pub(crate) uid: Text,
    pub(crate) namespace: Text,
    pub(crate) name: Text,
    pub(crate) labels: Labels,
    pub(crate) priority: i32,
    pub(crate) requests: Resources,
    /// Processor and memory that count when nodes are compared.
    pub(crate) padded: (i64, i64),
    pub(crate) ports: Box<[HostPort]>,
    pub(crate) terms: Box<[Weighted]>,
    /// Names of the claims whose volumes it uses.
    pub(crate) claims: Box<[Text]>,
    /// The controller that made it.
    pub(crate) owner: Option<Text>,
    /// When it began to run, in seconds: the younger goes first.
    pub(crate) started: Option<i64>,
    pub(crate) is_leaving: bool,
    /// Whether it leaves because a pod of higher priority needs its place.
    pub(crate) is_preempted: bool,
}

impl PodFacts {
    pub(crate) fn of(pod: &Pod, texts: &mut Texts) -> Self {
        let metadata = &pod.metadata;
        let empty = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&empty);
        let name = metadata.name.as_deref().unwrap_or_default();
        let namespace = texts.keep(metadata.namespace.as_deref().unwrap_or_default());
        let labels = Labels::of(metadata.labels.as_ref(), texts);
        let (requests, padded) = requests::requests(spec, texts);
        let owner = metadata.owner_references.iter().flatten();
        let status = pod.status.as_ref();
        Self {
            uid: Text::from(metadata.uid.as_deref().unwrap_or(name)),
            terms: terms::terms(spec.affinity.as_ref(), &namespace, &labels, texts),
            name: Text::from(name),
            labels,
            priority: spec.priority.unwrap_or_default(),
            requests,
            padded: (padded.cpu, padded.memory),
            ports: ports(spec, metadata.annotations.as_ref(), texts),
            claims: claims(spec, name, texts),
            owner: owner
                .filter(|one| one.controller == Some(true))
                .map(|one| texts.keep(&one.uid))
                .next(),
            started: status
                .and_then(|status| status.start_time.as_ref())
                .map(|time| time.0.as_second()),
            is_leaving: metadata.deletion_timestamp.is_some(),
            is_preempted: metadata.deletion_timestamp.is_some() && was_preempted(pod),
            namespace,
        }
    }
}

fn was_preempted(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| {
        one.type_ == "DisruptionTarget"
            && one.status == "True"
            && one.reason.as_deref() == Some("PreemptionByScheduler")
    })
}

/// Containers that run for as long as the pod does.
fn lasting(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    let sidecars = spec.init_containers.iter().flatten();
    spec.containers
        .iter()
        .chain(sidecars.filter(|one| requests::is_sidecar(one)))
}

fn ports(
    spec: &PodSpec,
    annotations: Option<&BTreeMap<String, String>>,
    texts: &mut Texts,
) -> Box<[HostPort]> {
    let (address, _) = extras::address(annotations, texts);
    lasting(spec)
        .flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            let own = port.host_ip.as_deref().filter(|own| !own.is_empty());
            let address = own.or(address.as_deref());
            Some(HostPort::of(address, protocol, number, texts))
        })
        .collect()
}

fn claims(spec: &PodSpec, pod: &str, texts: &mut Texts) -> Box<[Text]> {
    let volumes = spec.volumes.iter().flatten();
    volumes
        .filter_map(|volume| {
            if let Some(claim) = &volume.persistent_volume_claim {
                return Some(texts.keep(&claim.claim_name));
            }
            let own = volume
                .ephemeral
                .as_ref()
                .map(|_| format!("{pod}-{}", volume.name));
            own.map(|name| texts.keep(&name))
        })
        .collect()
}

/// A pod that has no node yet, with all that it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodToPlace {
    pub(crate) facts: Arc<PodFacts>,
    pub(crate) need: NodeNeed,
    pub(crate) preferences: Box<[(i64, NodeTerm)]>,
    pub(crate) tolerations: Box<[Toleration]>,
    pub(crate) spread: Box<[Spread]>,
    pub(crate) images: Box<[Text]>,
    pub(crate) os: Option<Os>,
    /// Programs of the host itself, for which the build of their image does not matter.
    pub(crate) is_host_process: bool,
    pub(crate) nominated: Option<Text>,
    pub(crate) may_preempt: bool,
    /// Whether its ports are to be at one address that is still to be found.
    pub(crate) wants_address: bool,
}

impl PodToPlace {
    pub(crate) fn of(pod: &Pod, texts: &mut Texts) -> Self {
        let empty = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&empty);
        let facts = PodFacts::of(pod, texts);
        let nominated = pod
            .status
            .as_ref()
            .and_then(|status| status.nominated_node_name.as_deref())
            .filter(|name| !name.is_empty());
        let spread = spec.topology_spread_constraints.iter().flatten();
        Self {
            need: NodeNeed::of(spec, texts),
            preferences: wishes::preferences(spec, texts),
            tolerations: Toleration::all(spec, texts),
            spread: spread
                .map(|one| Spread::of(one, &facts.labels, texts))
                .collect(),
            images: images(spec, texts),
            os: spec.os.as_ref().and_then(|os| os.name.parse().ok()),
            is_host_process: is_host_process(spec),
            nominated: nominated.map(|name| texts.keep(name)),
            wants_address: extras::address(pod.metadata.annotations.as_ref(), texts).1,
            may_preempt: spec.preemption_policy.as_deref() != Some("Never"),
            facts: Arc::new(facts),
        }
    }

    /// Labels that are places for this pod.
    pub(crate) fn topologies(&self) -> Vec<Text> {
        let terms = self.facts.terms.iter().map(|one| &one.term.topology);
        let spread = self.spread.iter().map(|rule| &rule.topology);
        terms.chain(spread).cloned().collect()
    }

    /// The same pod with its ports at an address.
    pub(crate) fn at(&self, address: &Text) -> Self {
        let ports = self
            .facts
            .ports
            .iter()
            .map(|port| port.at(address))
            .collect();
        let facts = PodFacts {
            ports,
            ..PodFacts::clone(&self.facts)
        };
        Self {
            facts: Arc::new(facts),
            ..self.clone()
        }
    }

    pub fn namespace(&self) -> &str {
        &self.facts.namespace
    }

    pub fn name(&self) -> &str {
        &self.facts.name
    }

    pub fn priority(&self) -> i32 {
        self.facts.priority
    }
}

fn images(spec: &PodSpec, texts: &mut Texts) -> Box<[Text]> {
    let init = spec.init_containers.iter().flatten();
    spec.containers
        .iter()
        .chain(init)
        .filter_map(|container| container.image.as_deref())
        .filter(|image| !image.is_empty())
        .map(|image| texts.keep(&transom_model::images::canonical(image)))
        .collect()
}

/// Whether all containers are processes of the host.
fn is_host_process(spec: &PodSpec) -> bool {
    let whole = spec
        .security_context
        .as_ref()
        .and_then(|context| context.windows_options.as_ref())
        .and_then(|options| options.host_process);
    let init = spec.init_containers.iter().flatten();
    let own = spec.containers.iter().chain(init).map(|container| {
        let context = container.security_context.as_ref()?;
        context.windows_options.as_ref()?.host_process
    });
    transom_model::node::is_host_process(whole, own)
}

/// Which scheduler a pod wants.
pub(crate) fn scheduler_of(pod: &Pod) -> &str {
    let name = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.scheduler_name.as_deref());
    name.filter(|name| !name.is_empty())
        .unwrap_or(DEFAULT_SCHEDULER)
}

/// The node that a pod has, if it has one.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    let name = pod.spec.as_ref()?.node_name.as_deref();
    name.filter(|name| !name.is_empty())
}

/// Whether a pod will never run again.
pub(crate) fn is_over(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether somebody still holds a pod back.
pub(crate) fn is_gated(pod: &Pod) -> bool {
    let gates = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.scheduling_gates.as_ref());
    gates.is_some_and(|gates| !gates.is_empty())
}
