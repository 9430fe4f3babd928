//! Decides which slices show `Endpoints` that somebody else wrote, for services that select no pods.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{EndpointAddress, EndpointSubset, Endpoints, Service},
        discovery::v1::{Endpoint, EndpointConditions, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use super::{
    classic,
    facts::{Port, selector},
    slices::{Frame, MANAGED_BY, Plan, SERVICE_NAME, Wanted, identity, spread, type_of},
};

pub(super) const CONTROLLER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// How many addresses of a subset are shown at most.
const FULL: usize = 1000;

/// What to do with the slices that mirror the endpoints of a service, if there is something to mirror.
pub(super) fn plan_mirror(
    service: &Service,
    endpoints: Option<&Endpoints>,
    existing: &[Arc<EndpointSlice>],
) -> Plan {
    let mirrored = endpoints.filter(|endpoints| is_mirrored(service, endpoints));
    let Some(endpoints) = mirrored else {
        return Plan {
            delete: existing.to_vec(),
            ..Plan::default()
        };
    };
    let mut wanted = Wanted::new();
    for subset in endpoints.subsets.iter().flatten() {
        let ports = ports(subset);
        let mut shown = BTreeSet::new();
        let ready = subset.addresses.iter().flatten().map(|each| (each, true));
        let others = subset.not_ready_addresses.iter().flatten();
        for (address, is_ready) in ready.chain(others.map(|each| (each, false))) {
            let Ok(ip) = address.ip.parse::<IpAddr>() else {
                continue;
            };
            if shown.len() == FULL {
                break;
            }
            let endpoint = endpoint(address, ip, is_ready);
            let key = identity(&endpoint);
            if shown.insert((ip, key.clone())) {
                let group = wanted.entry((type_of(&ip), ports.clone())).or_default();
                group.insert(key, endpoint);
            }
        }
    }
    let frame = Frame {
        metadata: metadata(endpoints),
        trigger: None,
    };
    spread(&frame, wanted, existing)
}

/// Whether somebody else wrote these, and does not write slices as well.
fn is_mirrored(service: &Service, endpoints: &Endpoints) -> bool {
    let labels = endpoints.metadata.labels.as_ref();
    let label = |name: &str| labels.and_then(|labels| labels.get(name));
    let annotations = endpoints.metadata.annotations.as_ref();
    let is_election = annotations.is_some_and(|annotations| annotations.contains_key(LEADER));
    let is_ours = label(classic::MANAGED_BY).is_some_and(|name| name == classic::CONTROLLER);
    let is_external = service
        .spec
        .as_ref()
        .is_none_or(|spec| spec.type_.as_deref() == Some("ExternalName"));
    selector(service).is_none()
        && !is_external
        && !is_ours
        && !is_election
        && label(SKIP).is_none_or(|skip| skip != "true")
}

fn ports(subset: &EndpointSubset) -> Vec<Port> {
    let ports = subset.ports.iter().flatten().map(|port| Port {
        name: port.name.clone().unwrap_or_default(),
        protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
        number: port.port,
        app_protocol: port.app_protocol.clone(),
    });
    ports.collect()
}

fn endpoint(address: &EndpointAddress, ip: IpAddr, is_ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(is_ready),
            ..EndpointConditions::default()
        }),
        hostname: address.hostname.clone(),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    }
}

fn metadata(endpoints: &Endpoints) -> ObjectMeta {
    let name = endpoints.metadata.name.clone().unwrap_or_default();
    let mut labels = endpoints.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), name.clone());
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    ObjectMeta {
        generate_name: Some(format!("{name}-")),
        namespace: endpoints.metadata.namespace.clone(),
        labels: Some(labels),
        owner_references: Some(vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Endpoints".to_owned(),
            name,
            uid: endpoints.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }]),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn service(spec: &Value) -> Service {
        serde_json::from_value(json!({"metadata": {"name": "s", "namespace": "n"}, "spec": spec}))
            .unwrap()
    }

    fn endpoints(metadata: &Value) -> Endpoints {
        let mut value = json!({
            "metadata": {"name": "s", "namespace": "n", "uid": "e"},
            "subsets": [
                {"addresses": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}], "notReadyAddresses": [{"ip": "192.0.2.2"}], "ports": [{"port": 80}]},
                {"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 81}]},
            ],
        });
        for (name, field) in metadata.as_object().into_iter().flatten() {
            value["metadata"][name] = field.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_somebody_wrote_is_shown_by_address_type_and_ports() {
        let plan = plan_mirror(&service(&json!({})), Some(&endpoints(&json!({}))), &[]);
        let mut shown: Vec<_> = plan
            .create
            .iter()
            .map(|slice| {
                let endpoints = slice.endpoints.iter().flatten();
                let addresses: Vec<_> = endpoints
                    .map(|each| {
                        let ready = each.conditions.as_ref().and_then(|each| each.ready);
                        (each.addresses[0].as_str(), ready.unwrap())
                    })
                    .collect();
                (slice.address_type.as_str(), addresses)
            })
            .collect();
        shown.sort();
        assert_eq!(
            shown,
            [
                ("IPv4", vec![("192.0.2.1", true)]),
                ("IPv4", vec![("192.0.2.1", true), ("192.0.2.2", false)]),
                ("IPv6", vec![("2001:db8::1", true)]),
            ]
        );
        let labels = plan.create[0].metadata.labels.as_ref().unwrap();
        assert_eq!(labels[MANAGED_BY], CONTROLLER);
    }

    #[test]
    fn what_shows_itself_or_is_not_meant_to_be_shown_is_not_mirrored() {
        let written = endpoints(&json!({}));
        let none = json!({});
        let slice = Arc::new(EndpointSlice::default());
        for (spec, metadata) in [
            (json!({"selector": {"a": "b"}}), &none),
            (json!({"type": "ExternalName"}), &none),
            (json!({}), &json!({"labels": {SKIP: "true"}})),
            (json!({}), &json!({"annotations": {LEADER: "x"}})),
            (
                json!({}),
                &json!({"labels": {classic::MANAGED_BY: classic::CONTROLLER}}),
            ),
        ] {
            let endpoints = endpoints(metadata);
            let existing = [Arc::clone(&slice)];
            let plan = plan_mirror(&service(&spec), Some(&endpoints), &existing);
            assert_eq!(
                (plan.create.len(), plan.delete.len()),
                (0, 1),
                "{spec} {metadata}"
            );
        }
        assert_eq!(
            plan_mirror(&service(&none), Some(&written), &[])
                .create
                .len(),
            3
        );
        assert_eq!(plan_mirror(&service(&none), None, &[slice]).delete.len(), 1);
    }
}
