//! Decides how the endpoints of a service are spread over slices.
//!
//! Endpoints stay in the slice they are in, and no slice is written that does not have to be: each write goes to
//! every node of the cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use k8s_openapi::{
    api::{
        core::v1::{ObjectReference, Service},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
    jiff::Timestamp,
};

use super::{
    facts::{Labels, PodFacts, Port, is_headless},
    trigger,
};

/// How many endpoints a slice has at most.
pub(super) const FULL: usize = 100;
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(super) const CONTROLLER: &str = "endpointslice-controller.k8s.io";
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";

/// What to do so that the slices show what is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
}

/// A node as far as slices tell of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeFacts {
    pub(super) zone: Option<String>,
}

/// Who shares slices: the same kind of address and the same ports.
pub(super) type Group = (&'static str, Vec<Port>);

/// What of a service all of its slices show.
pub(super) struct Frame {
    pub(super) metadata: ObjectMeta,
    pub(super) trigger: Option<Timestamp>,
}

pub(super) fn plan_slices(
    service: &Service,
    pods: &[Arc<PodFacts>],
    node: impl Fn(&str) -> Option<Arc<NodeFacts>>,
    existing: &[Arc<EndpointSlice>],
    trigger: Option<Timestamp>,
) -> Plan {
    let types = address_types(service);
    let mut wanted = wanted_endpoints(service, pods, node, &types);
    for kind in &types {
        // A service that leads nowhere says so with an empty slice.
        if !wanted.keys().any(|(each, _)| each == kind) {
            wanted.insert((kind, Vec::new()), BTreeMap::new());
        }
    }
    let frame = Frame {
        metadata: metadata(service),
        trigger,
    };
    spread(&frame, wanted, existing)
}

/// The kinds of address that a service has.
fn address_types(service: &Service) -> BTreeSet<&'static str> {
    let spec = service.spec.clone().unwrap_or_default();
    let families = spec.ip_families.iter().flatten();
    let types: BTreeSet<_> = families
        .filter_map(|family| match family.as_str() {
            "IPv4" => Some("IPv4"),
            "IPv6" => Some("IPv6"),
            _ => None,
        })
        .collect();
    if !types.is_empty() {
        return types;
    }
    let address = spec.cluster_ip.unwrap_or_default().parse::<IpAddr>();
    match address {
        Ok(address) => [type_of(&address)].into(),
        Err(_) => ["IPv4", "IPv6"].into(),
    }
}

pub(super) fn type_of(address: &IpAddr) -> &'static str {
    if address.is_ipv6() { "IPv6" } else { "IPv4" }
}

/// Endpoints by what makes them the same, by group.
pub(super) type Wanted = BTreeMap<Group, BTreeMap<String, Endpoint>>;

fn wanted_endpoints(
    service: &Service,
    pods: &[Arc<PodFacts>],
    node: impl Fn(&str) -> Option<Arc<NodeFacts>>,
    types: &BTreeSet<&'static str>,
) -> Wanted {
    let spec = service.spec.clone().unwrap_or_default();
    let publishes = spec.publish_not_ready_addresses == Some(true);
    let mut wanted = Wanted::new();
    for pod in pods.iter().filter(|pod| pod.is_reachable()) {
        let on = pod.node.as_deref().map(&node);
        // A pod of a node that is gone is about to be collected.
        if on == Some(None) && !publishes {
            continue;
        }
        let zone = on.flatten().and_then(|node| node.zone.clone());
        let ports = pod.ports_of(&spec);
        for kind in types {
            let of_type = |address: &&IpAddr| type_of(address) == *kind;
            let addresses = pod.addresses.iter().filter(of_type);
            let addresses: Vec<String> = addresses.map(ToString::to_string).collect();
            if addresses.is_empty() {
                continue;
            }
            let endpoint = Endpoint {
                addresses,
                conditions: Some(EndpointConditions {
                    ready: Some(publishes || (pod.is_ready && !pod.is_going)),
                    serving: Some(pod.is_ready),
                    terminating: Some(pod.is_going),
                }),
                hostname: pod.hostname_in(service),
                node_name: pod.node.clone(),
                target_ref: Some(ObjectReference {
                    kind: Some("Pod".to_owned()),
                    namespace: Some(pod.namespace.clone()),
                    name: Some(pod.name.clone()),
                    uid: Some(pod.uid.clone()),
                    ..ObjectReference::default()
                }),
                zone: zone.clone(),
                ..Endpoint::default()
            };
            let group = wanted.entry((*kind, ports.clone())).or_default();
            group.insert(identity(&endpoint), endpoint);
        }
    }
    wanted
}

/// What makes an endpoint the same after it changed.
pub(super) fn identity(endpoint: &Endpoint) -> String {
    let target = endpoint.target_ref.as_ref();
    let uid = target.and_then(|target| target.uid.as_deref());
    let host = endpoint.hostname.as_deref().unwrap_or_default();
    let node = endpoint.node_name.as_deref().unwrap_or_default();
    match uid {
        Some(uid) => format!("{uid} {}", endpoint.addresses.join(" ")),
        None => format!("{host} {node} {}", endpoint.addresses.join(" ")),
    }
}

/// What the slices of a service say about themselves.
fn metadata(service: &Service) -> ObjectMeta {
    let name = service.metadata.name.clone().unwrap_or_default();
    let mut labels: Labels = service.metadata.labels.clone().unwrap_or_default();
    for reserved in [SERVICE_NAME, MANAGED_BY, HEADLESS] {
        labels.remove(reserved);
    }
    if service.spec.as_ref().is_none_or(is_headless) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), name.clone());
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    ObjectMeta {
        generate_name: Some(format!("{name}-")),
        namespace: service.metadata.namespace.clone(),
        labels: Some(labels),
        owner_references: Some(vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            name,
            uid: service.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }]),
        ..ObjectMeta::default()
    }
}

/// Spreads endpoints over the slices that exist, and new ones.
pub(super) fn spread(frame: &Frame, mut wanted: Wanted, existing: &[Arc<EndpointSlice>]) -> Plan {
    let mut plan = Plan::default();
    let mut by_group: BTreeMap<Group, Vec<Arc<EndpointSlice>>> = BTreeMap::new();
    for slice in existing {
        match group_of(slice) {
            Some(group) if wanted.contains_key(&group) => {
                by_group.entry(group).or_default().push(Arc::clone(slice));
            }
            _ => plan.delete.push(Arc::clone(slice)),
        }
    }
    while let Some((group, endpoints)) = wanted.pop_first() {
        let slices = by_group.remove(&group).unwrap_or_default();
        spread_group(frame, &group, endpoints, slices, &mut plan);
    }
    recycle(frame, &mut plan);
    plan
}

fn group_of(slice: &EndpointSlice) -> Option<Group> {
    let kind = match slice.address_type.as_str() {
        "IPv4" => "IPv4",
        "IPv6" => "IPv6",
        _ => return None,
    };
    let ports = slice.ports.iter().flatten().map(|port| Port {
        name: port.name.clone().unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
        number: port.port.unwrap_or_default(),
        app_protocol: port.app_protocol.clone(),
    });
    Some((kind, ports.collect()))
}

/// A slice on the way to what it will be.
struct Draft {
    slice: Arc<EndpointSlice>,
    endpoints: Vec<Endpoint>,
    is_changed: bool,
}

fn spread_group(
    frame: &Frame,
    group: &Group,
    mut wanted: BTreeMap<String, Endpoint>,
    slices: Vec<Arc<EndpointSlice>>,
    plan: &mut Plan,
) {
    let stays_empty = wanted.is_empty();
    let mut drafts: Vec<Draft> = slices
        .into_iter()
        .map(|slice| draft(frame, slice, &mut wanted))
        .collect();
    let mut rest: Vec<Endpoint> = wanted.into_values().collect();
    // Slices that are written anyway are filled first, the fullest of them before others.
    drafts.sort_by_key(|draft| (!draft.is_changed, usize::MAX - draft.endpoints.len()));
    for draft in drafts.iter_mut().filter(|draft| draft.is_changed) {
        let room = FULL.saturating_sub(draft.endpoints.len()).min(rest.len());
        draft.endpoints.extend(rest.drain(..room));
    }
    while !rest.is_empty() {
        let fits = |draft: &&mut Draft| draft.endpoints.len() + rest.len() <= FULL;
        let fullest = drafts
            .iter_mut()
            .filter(fits)
            .max_by_key(|draft| draft.endpoints.len());
        if let Some(draft) = fullest {
            draft.endpoints.append(&mut rest);
            draft.is_changed = true;
        } else {
            let some = rest.drain(..FULL.min(rest.len())).collect();
            plan.create.push(new_slice(frame, group, some));
        }
    }
    let mut has_empty = false;
    for draft in drafts {
        let is_kept = !draft.endpoints.is_empty() || (stays_empty && !has_empty);
        has_empty |= draft.endpoints.is_empty();
        if !is_kept {
            plan.delete.push(draft.slice);
        } else if draft.is_changed {
            plan.update
                .push(changed(frame, &draft.slice, draft.endpoints));
        }
    }
    if stays_empty && !has_empty {
        plan.create.push(new_slice(frame, group, Vec::new()));
    }
}

/// Takes what a slice has of what is wanted.
fn draft(
    frame: &Frame,
    slice: Arc<EndpointSlice>,
    wanted: &mut BTreeMap<String, Endpoint>,
) -> Draft {
    let has = |one: &ObjectMeta| (one.labels.clone(), one.owner_references.clone());
    let mut is_changed = has(&slice.metadata) != has(&frame.metadata);
    let mut endpoints = Vec::new();
    for endpoint in slice.endpoints.iter().flatten() {
        match wanted.remove(&identity(endpoint)) {
            Some(newer) => {
                is_changed |= newer != *endpoint;
                endpoints.push(newer);
            }
            None => is_changed = true,
        }
    }
    Draft {
        slice,
        endpoints,
        is_changed,
    }
}

fn new_slice(frame: &Frame, (kind, ports): &Group, endpoints: Vec<Endpoint>) -> EndpointSlice {
    let ports = ports.iter().map(|port| EndpointPort {
        name: Some(port.name.clone()),
        protocol: Some(port.protocol.clone()),
        port: Some(port.number),
        app_protocol: port.app_protocol.clone(),
    });
    let mut slice = EndpointSlice {
        address_type: (*kind).to_owned(),
        endpoints: Some(endpoints),
        metadata: frame.metadata.clone(),
        ports: Some(ports.collect()),
    };
    stamp(&mut slice, frame);
    slice
}

fn changed(frame: &Frame, slice: &EndpointSlice, endpoints: Vec<Endpoint>) -> EndpointSlice {
    let mut slice = slice.clone();
    slice.endpoints = Some(endpoints);
    slice.metadata.labels.clone_from(&frame.metadata.labels);
    let owners = &frame.metadata.owner_references;
    slice.metadata.owner_references.clone_from(owners);
    stamp(&mut slice, frame);
    slice
}

fn stamp(slice: &mut EndpointSlice, frame: &Frame) {
    let annotations = slice.metadata.annotations.get_or_insert_default();
    annotations.remove(trigger::ANNOTATION);
    if let Some(time) = frame.trigger {
        annotations.insert(trigger::ANNOTATION.to_owned(), time.to_string());
    }
}

/// Writes what would be a new slice into one that would go: one request instead of two.
fn recycle(frame: &Frame, plan: &mut Plan) {
    let mut fresh = Vec::new();
    for slice in std::mem::take(&mut plan.create) {
        let mut old = plan.delete.iter();
        match old.position(|old| old.address_type == slice.address_type) {
            Some(place) => {
                let old = plan.delete.swap_remove(place);
                let endpoints = slice.endpoints.unwrap_or_default();
                let mut reused = changed(frame, &old, endpoints);
                reused.ports = slice.ports;
                plan.update.push(reused);
            }
            None => fresh.push(slice),
        }
    }
    plan.create = fresh;
}
