//! What of pods matters to the services in front of them.

use std::{collections::BTreeMap, net::IpAddr};

use k8s_openapi::{
    api::core::v1::{Container, Pod, Service, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
    jiff::Timestamp,
};

pub(super) type Labels = BTreeMap<String, String>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PodFacts {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) labels: Labels,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) node: Option<String>,
    pub(super) hostname: Option<String>,
    pub(super) subdomain: Option<String>,
    /// Its containers ended, and will not run again.
    pub(super) has_ended: bool,
    pub(super) is_ready: bool,
    pub(super) is_going: bool,
    /// When it became ready, or ceased to be.
    pub(super) turned: Option<Timestamp>,
    pub(super) ports: Vec<NamedPort>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedPort {
    name: String,
    protocol: String,
    number: i32,
}

/// A port of a service, as it is on a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) number: i32,
    pub(super) app_protocol: Option<String>,
}

impl PodFacts {
    pub(super) fn read(pod: &Pod) -> Self {
        let (no_spec, no_status) = Default::default();
        let spec = pod.spec.as_ref().unwrap_or(&no_spec);
        let status = pod.status.as_ref().unwrap_or(&no_status);
        let metadata = &pod.metadata;
        let ready = status
            .conditions
            .iter()
            .flatten()
            .find(|condition| condition.type_ == "Ready");
        let mut addresses: Vec<IpAddr> = Vec::new();
        let listed = status.pod_ips.iter().flatten().map(|each| &each.ip);
        for text in listed.chain(&status.pod_ip) {
            if let Ok(address) = text.parse()
                && !addresses.contains(&address)
            {
                addresses.push(address);
            }
        }
        let sidecars = spec.init_containers.iter().flatten();
        let sidecars = sidecars.filter(|each| each.restart_policy.as_deref() == Some("Always"));
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            labels: metadata.labels.clone().unwrap_or_default(),
            is_going: metadata.deletion_timestamp.is_some(),
            has_ended: matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")),
            is_ready: ready.is_some_and(|condition| condition.status == "True"),
            turned: ready
                .and_then(|condition| condition.last_transition_time.as_ref())
                .map(|time| time.0),
            ports: spec
                .containers
                .iter()
                .chain(sidecars)
                .flat_map(named_ports)
                .collect(),
            node: spec.node_name.clone().filter(|name| !name.is_empty()),
            hostname: spec.hostname.clone().filter(|name| !name.is_empty()),
            subdomain: spec.subdomain.clone(),
            addresses,
        }
    }

    /// Whether it is one that a service can send somebody to.
    pub(super) fn is_reachable(&self) -> bool {
        !self.has_ended && !self.addresses.is_empty()
    }

    /// The ports of a service on this pod. Those that it does not have are left out.
    pub(super) fn ports_of(&self, spec: &ServiceSpec) -> Vec<Port> {
        let ports = spec.ports.iter().flatten().filter_map(|port| {
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            let number = match &port.target_port {
                Some(IntOrString::Int(number)) => *number,
                Some(IntOrString::String(name)) => self.port_named(name, protocol)?,
                None => port.port,
            };
            Some(Port {
                name: port.name.clone().unwrap_or_default(),
                protocol: protocol.to_owned(),
                number,
                app_protocol: port.app_protocol.clone(),
            })
        });
        ports.collect()
    }

    fn port_named(&self, name: &str, protocol: &str) -> Option<i32> {
        let mut ports = self.ports.iter();
        let found = ports.find(|port| port.name == name && port.protocol == protocol)?;
        Some(found.number)
    }

    /// The name that it has below the name of a service.
    pub(super) fn hostname_in(&self, service: &Service) -> Option<String> {
        let is_its = self.subdomain.is_some() && self.subdomain == service.metadata.name;
        self.hostname.clone().filter(|_| is_its)
    }
}

fn named_ports(container: &Container) -> impl Iterator<Item = NamedPort> {
    container.ports.iter().flatten().filter_map(|port| {
        Some(NamedPort {
            name: port.name.clone()?,
            protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
            number: port.container_port,
        })
    })
}

/// The labels that a service wants of its pods; `None` if somebody else says where it leads.
pub(super) fn selector(service: &Service) -> Option<&Labels> {
    let spec = service.spec.as_ref()?;
    let is_external = spec.type_.as_deref() == Some("ExternalName");
    spec.selector.as_ref().filter(|_| !is_external)
}

/// Whether a service without labels to look for, or with all of them on the pod, leads to it.
pub(super) fn selects(service: &Service, labels: &Labels) -> bool {
    selector(service).is_some_and(|wanted| {
        wanted
            .iter()
            .all(|(name, value)| labels.get(name) == Some(value))
    })
}

/// Whether a service has no address of its own.
pub(super) fn is_headless(spec: &ServiceSpec) -> bool {
    matches!(spec.cluster_ip.as_deref(), None | Some("" | "None"))
}
