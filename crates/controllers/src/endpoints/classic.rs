//! Decides what the `Endpoints` of a service say: all of its pods in one object, up to a limit.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use k8s_openapi::{
    api::core::v1::{
        EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Service,
        ServiceSpec,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    jiff::Timestamp,
};

use super::{
    facts::{PodFacts, Port, is_headless},
    slices::HEADLESS,
    trigger,
};

/// How many addresses there are at most, ready or not.
pub(super) const FULL: usize = 1000;
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
pub(super) const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
pub(super) const CONTROLLER: &str = "endpoint-controller";

/// The object as it should be; `None` if it is so already.
pub(super) fn plan_endpoints(
    service: &Service,
    pods: &[Arc<PodFacts>],
    current: Option<&Endpoints>,
    trigger: Option<Timestamp>,
) -> Option<Endpoints> {
    let mut subsets = subsets(service, pods);
    let is_truncated = truncate(&mut subsets);
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if service.spec.as_ref().is_none_or(is_headless) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    if let Some(current) = current {
        let has_mark = current
            .metadata
            .annotations
            .as_ref()
            .is_some_and(|annotations| annotations.contains_key(OVER_CAPACITY));
        if current.subsets.as_deref().unwrap_or_default() == subsets
            && current.metadata.labels.as_ref() == Some(&labels)
            && has_mark == is_truncated
        {
            return None;
        }
    }
    let mut wanted = current.cloned().unwrap_or_else(|| Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        subsets: None,
    });
    wanted.subsets = Some(subsets);
    wanted.metadata.labels = Some(labels);
    let annotations = wanted.metadata.annotations.get_or_insert_default();
    annotations.remove(trigger::ANNOTATION);
    annotations.remove(OVER_CAPACITY);
    if let Some(time) = trigger {
        annotations.insert(trigger::ANNOTATION.to_owned(), time.to_string());
    }
    if is_truncated {
        annotations.insert(OVER_CAPACITY.to_owned(), "truncated".to_owned());
    }
    Some(wanted)
}

fn subsets(service: &Service, pods: &[Arc<PodFacts>]) -> Vec<EndpointSubset> {
    let spec = service.spec.clone().unwrap_or_default();
    let publishes = spec.publish_not_ready_addresses == Some(true);
    let has_ports = spec.ports.as_ref().is_some_and(|ports| !ports.is_empty());
    // By ports: addresses that are ready, and those that are not.
    let mut groups: BTreeMap<Vec<Port>, [Vec<EndpointAddress>; 2]> = BTreeMap::new();
    for pod in pods {
        if !pod.is_reachable() || (pod.is_going && !publishes) {
            continue;
        }
        let Some(address) = address_for(&spec, pod) else {
            continue;
        };
        let mut ports = pod.ports_of(&spec);
        ports.sort();
        let leads_somewhere = !ports.is_empty() || (!has_ports && is_headless(&spec));
        if !leads_somewhere {
            continue;
        }
        let group = groups.entry(ports).or_default();
        let place = usize::from(!publishes && !pod.is_ready);
        group[place].push(EndpointAddress {
            hostname: pod.hostname_in(service),
            ip: address.to_string(),
            node_name: pod.node.clone(),
            target_ref: Some(ObjectReference {
                kind: Some("Pod".to_owned()),
                namespace: Some(pod.namespace.clone()),
                name: Some(pod.name.clone()),
                uid: Some(pod.uid.clone()),
                ..ObjectReference::default()
            }),
        });
    }
    let subset = |(ports, addresses): (Vec<Port>, [Vec<EndpointAddress>; 2])| {
        let [ready, not_ready] = addresses.map(|mut list| {
            list.sort_by(|one, other| one.ip.cmp(&other.ip));
            (!list.is_empty()).then_some(list)
        });
        EndpointSubset {
            addresses: ready,
            not_ready_addresses: not_ready,
            ports: (!ports.is_empty()).then(|| ports.into_iter().map(port).collect()),
        }
    };
    groups.into_iter().map(subset).collect()
}

fn port(port: Port) -> EndpointPort {
    EndpointPort {
        name: Some(port.name).filter(|name| !name.is_empty()),
        port: port.number,
        protocol: Some(port.protocol),
        app_protocol: port.app_protocol,
    }
}

/// The address of a pod in the first family of a service.
fn address_for(spec: &ServiceSpec, pod: &PodFacts) -> Option<IpAddr> {
    let family = spec.ip_families.iter().flatten().next();
    let cluster_ip = spec.cluster_ip.as_deref().unwrap_or_default();
    let is_six = match (family, cluster_ip.parse::<IpAddr>()) {
        (Some(family), _) => family == "IPv6",
        (None, Ok(address)) => address.is_ipv6(),
        // Nothing says which: the first that the pod has.
        (None, Err(_)) => return pod.addresses.first().copied(),
    };
    let mut addresses = pod.addresses.iter();
    addresses
        .find(|address| address.is_ipv6() == is_six)
        .copied()
}

/// Leaves out what is too much, of each subset its share, those that are not ready first.
fn truncate(subsets: &mut [EndpointSubset]) -> bool {
    let length = |list: &Option<Vec<EndpointAddress>>| list.as_ref().map_or(0, Vec::len);
    let ready: usize = subsets.iter().map(|each| length(&each.addresses)).sum();
    let not_ready: usize = subsets
        .iter()
        .map(|each| length(&each.not_ready_addresses))
        .sum();
    if ready + not_ready <= FULL {
        return false;
    }
    let cuts_ready = ready > FULL;
    let (room, total) = if cuts_ready {
        (FULL, ready)
    } else {
        (FULL - ready, not_ready)
    };
    let mut left = room;
    for subset in subsets {
        if cuts_ready {
            subset.not_ready_addresses = None;
        }
        let list = if cuts_ready {
            &mut subset.addresses
        } else {
            &mut subset.not_ready_addresses
        };
        let share = (length(list) * room).div_ceil(total).min(left);
        if let Some(addresses) = list {
            addresses.truncate(share);
            left -= addresses.len();
        }
        if length(list) == 0 {
            *list = None;
        }
    }
    true
}
