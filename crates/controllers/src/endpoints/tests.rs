//! What services lead to, for pods and services of all sorts.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{Endpoints, Pod, Service},
        discovery::v1::{Endpoint, EndpointSlice},
    },
    jiff::Timestamp,
};
use serde_json::{Value, json};

use super::{
    classic::{self, plan_endpoints},
    facts::PodFacts,
    slices::{FULL, NodeFacts, Plan, plan_slices},
};

fn service(spec: &Value) -> Service {
    let mut value = json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "s", "labels": {"team": "a"}},
        "spec": {
            "clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"], "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}],
        },
    });
    for (name, field) in spec.as_object().unwrap() {
        value["spec"][name] = field.clone();
    }
    serde_json::from_value(value).unwrap()
}

fn pod(number: usize, change: impl Fn(&mut Value)) -> Arc<PodFacts> {
    let address = format!("10.1.{}.{}", number / 250, number % 250 + 1);
    let mut value = json!({
        "metadata": {"name": format!("p{number}"), "namespace": "n", "uid": format!("u{number}"), "labels": {"app": "web"}},
        "spec": {"nodeName": "node", "containers": [{"name": "c", "ports": [{"name": "main", "containerPort": 9000, "protocol": "TCP"}]}]},
        "status": {
            "phase": "Running", "podIP": address,
            "podIPs": [{"ip": address}, {"ip": format!("fd00::{number:x}")}],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    });
    change(&mut value);
    Arc::new(PodFacts::read(
        &serde_json::from_value::<Pod>(value).unwrap(),
    ))
}

fn pods(count: usize) -> Vec<Arc<PodFacts>> {
    (0..count).map(|number| pod(number, |_| {})).collect()
}

fn node(name: &str) -> Option<Arc<NodeFacts>> {
    (name == "node").then(|| {
        Arc::new(NodeFacts {
            zone: Some("z".to_owned()),
        })
    })
}

fn plan(service: &Service, pods: &[Arc<PodFacts>], existing: &[Arc<EndpointSlice>]) -> Plan {
    plan_slices(service, pods, node, existing, None)
}

/// Does what a plan says.
fn execute(plan: Plan, mut slices: Vec<Arc<EndpointSlice>>) -> Vec<Arc<EndpointSlice>> {
    let name = |slice: &EndpointSlice| slice.metadata.name.clone();
    slices.retain(|slice| {
        let mut deleted = plan.delete.iter();
        !deleted.any(|each| name(each) == name(slice))
    });
    for slice in &mut slices {
        let mut updated = plan.update.iter();
        if let Some(newer) = updated.find(|each| name(each) == name(slice)) {
            *slice = Arc::new(newer.clone());
        }
    }
    let first = slices.len();
    for (number, mut slice) in plan.create.into_iter().enumerate() {
        slice.metadata.name = Some(format!("web-{}", first + number));
        slices.push(Arc::new(slice));
    }
    slices
}

fn endpoints(slice: &EndpointSlice) -> &[Endpoint] {
    slice.endpoints.as_deref().unwrap_or_default()
}

fn addresses(slices: &[Arc<EndpointSlice>]) -> BTreeSet<String> {
    let all = slices.iter().flat_map(|slice| endpoints(slice));
    all.flat_map(|each| each.addresses.clone()).collect()
}

/// Ready, serving and terminating of the only endpoint.
fn conditions(plan: &Plan) -> [bool; 3] {
    let [slice] = &plan.create[..] else {
        panic!("{plan:?}");
    };
    let [endpoint] = endpoints(slice) else {
        panic!("{slice:?}");
    };
    let conditions = endpoint.conditions.clone().unwrap();
    [
        conditions.ready.unwrap(),
        conditions.serving.unwrap(),
        conditions.terminating.unwrap(),
    ]
}

#[test]
fn a_service_without_pods_has_an_empty_slice_per_family() {
    let plan = plan(&service(&json!({"ipFamilies": ["IPv6", "IPv4"]})), &[], &[]);
    let types: Vec<&str> = plan
        .create
        .iter()
        .map(|slice| slice.address_type.as_str())
        .collect();
    assert_eq!(types, ["IPv4", "IPv6"]);
    assert!(plan.create.iter().all(|slice| endpoints(slice).is_empty()));
}

#[test]
fn a_slice_says_whose_it_is_and_where_its_endpoints_are() {
    let time = Timestamp::from_second(7).ok();
    let plan = plan_slices(&service(&json!({})), &pods(1), node, &[], time);
    let slice = serde_json::to_value(&plan.create[0]).unwrap();
    assert_eq!(
        slice,
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "generateName": "web-", "namespace": "n",
                "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": "1970-01-01T00:00:07Z"},
                "labels": {
                    "team": "a", "kubernetes.io/service-name": "web",
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                },
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Service", "name": "web", "uid": "s",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "addressType": "IPv4",
            "endpoints": [{
                "addresses": ["10.1.0.1"], "nodeName": "node", "zone": "z",
                "conditions": {"ready": true, "serving": true, "terminating": false},
                "targetRef": {"kind": "Pod", "namespace": "n", "name": "p0", "uid": "u0"},
            }],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        })
    );
}

#[test]
fn conditions_follow_the_pod_and_what_the_service_publishes() {
    let ready = |pod: &mut Value| pod["status"]["conditions"][0]["status"] = "False".into();
    let going =
        |pod: &mut Value| pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let all = service(&json!({"publishNotReadyAddresses": true}));
    let some = service(&json!({}));
    let unready = [pod(0, ready)];
    let leaving = [pod(0, going)];
    for (service, pods, expected) in [
        (&some, &unready, [false, false, false]),
        (&all, &unready, [true, false, false]),
        (&some, &leaving, [false, true, true]),
        (&all, &leaving, [true, true, true]),
    ] {
        assert_eq!(conditions(&plan(service, pods, &[])), expected);
    }
}

#[test]
fn pods_that_ended_have_no_address_or_lost_their_node_are_left_out() {
    let ended = pod(0, |pod| pod["status"]["phase"] = "Failed".into());
    let nowhere = pod(1, |pod| pod["status"] = json!({"phase": "Pending"}));
    let lost = pod(2, |pod| pod["spec"]["nodeName"] = "gone".into());
    let pods = [ended, nowhere, lost];
    let found = execute(plan(&service(&json!({})), &pods, &[]), Vec::new());
    assert_eq!(addresses(&found), BTreeSet::new());
    let all = service(&json!({"publishNotReadyAddresses": true}));
    let found = execute(plan(&all, &pods, &[]), Vec::new());
    assert_eq!(addresses(&found), BTreeSet::from(["10.1.0.3".to_owned()]));
}

#[test]
fn a_named_port_is_looked_up_in_each_pod_and_pods_that_differ_have_slices_of_their_own() {
    let other = pod(1, |pod| {
        pod["spec"]["initContainers"] = json!([
            {"name": "i", "ports": [{"name": "main", "containerPort": 1}]},
            {"name": "s", "restartPolicy": "Always", "ports": [{"name": "main", "containerPort": 7000, "protocol": "TCP"}]},
        ]);
        pod["spec"]["containers"] = json!([{"name": "c"}]);
    });
    let without = pod(2, |pod| {
        pod["spec"]["containers"][0]["ports"][0]["protocol"] = "UDP".into();
    });
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "main"}]);
    let service = service(&json!({"ports": ports}));
    let pods = [pod(0, |_| {}), other, without];
    let plan = plan(&service, &pods, &[]);
    let ports = plan.create.iter().map(|slice| {
        let mut ports = slice.ports.iter().flatten();
        ports.next().and_then(|port| port.port)
    });
    assert_eq!(ports.collect::<Vec<_>>(), [None, Some(7000), Some(9000)]);
    let classic = plan_endpoints(&service, &pods, None, None).unwrap();
    let subsets = classic.subsets.unwrap();
    assert_eq!(
        subsets.len(),
        2,
        "a pod without any of the ports is left out"
    );
}

#[test]
fn a_pod_has_its_name_below_the_service_that_is_its_subdomain() {
    let named = |subdomain: &'static str| {
        pod(0, move |pod| {
            pod["spec"]["hostname"] = "first".into();
            pod["spec"]["subdomain"] = subdomain.into();
        })
    };
    let headless = service(&json!({"clusterIP": "None", "ports": []}));
    for (subdomain, expected) in [("web", Some("first")), ("other", None)] {
        let pods = [named(subdomain)];
        let plan = plan(&headless, &pods, &[]);
        let slice = &plan.create[0];
        assert_eq!(endpoints(slice)[0].hostname.as_deref(), expected);
        let labels = slice.metadata.labels.as_ref().unwrap();
        assert_eq!(labels["service.kubernetes.io/headless"], "");
        let classic = plan_endpoints(&headless, &pods, None, None).unwrap();
        let subset = &classic.subsets.unwrap()[0];
        let address = &subset.addresses.as_ref().unwrap()[0];
        assert_eq!(address.hostname.as_deref(), expected);
        assert_eq!(subset.ports, None);
    }
}

#[test]
fn what_is_right_is_not_written() {
    let service = service(&json!({"ipFamilies": ["IPv4", "IPv6"]}));
    let pods = pods(250);
    let slices = execute(plan(&service, &pods, &[]), Vec::new());
    assert_eq!(slices.len(), 6);
    assert_eq!(addresses(&slices).len(), 500);
    assert!(slices.iter().all(|slice| endpoints(slice).len() <= FULL));
    assert_eq!(plan(&service, &pods, &slices), Plan::default());
    let classic = plan_endpoints(&service, &pods, None, None).unwrap();
    assert_eq!(plan_endpoints(&service, &pods, Some(&classic), None), None);
}

#[test]
fn one_pod_more_or_less_changes_one_slice() {
    let service = service(&json!({}));
    let mut pods = pods(250);
    let slices = execute(plan(&service, &pods, &[]), Vec::new());
    pods.remove(3);
    let less = plan(&service, &pods, &slices);
    assert_eq!(
        (less.create.len(), less.update.len(), less.delete.len()),
        (0, 1, 0)
    );
    let slices = execute(less, slices);
    pods.push(pod(900, |_| {}));
    let more = plan(&service, &pods, &slices);
    assert_eq!(
        (more.create.len(), more.update.len(), more.delete.len()),
        (0, 1, 0)
    );
    // It went where it fits best: beside 99 others.
    assert_eq!(endpoints(&more.update[0]).len(), FULL);
    let slices = execute(more, slices);
    assert_eq!(addresses(&slices).len(), 250);
}

#[test]
fn slices_that_become_empty_go_and_an_empty_one_is_used_again() {
    let service = service(&json!({}));
    let slices = execute(plan(&service, &pods(250), &[]), Vec::new());
    let none = plan(&service, &[], &slices);
    assert_eq!(
        (none.create.len(), none.update.len(), none.delete.len()),
        (0, 1, 2)
    );
    let slices = execute(none, slices);
    assert_eq!(plan(&service, &[], &slices), Plan::default());
    let again = plan(&service, &pods(1), &slices);
    assert_eq!(
        (again.create.len(), again.update.len(), again.delete.len()),
        (0, 1, 0)
    );
    assert_eq!(again.update[0].ports.as_ref().unwrap().len(), 1);
}

#[test]
fn an_endpoint_that_is_in_two_slices_stays_in_one() {
    let service = service(&json!({}));
    let mut slices = execute(plan(&service, &pods(3), &[]), Vec::new());
    let mut twin = EndpointSlice::clone(&slices[0]);
    twin.metadata.name = Some("twin".to_owned());
    slices.push(Arc::new(twin));
    let mended = plan(&service, &pods(3), &slices);
    assert_eq!(
        (
            mended.create.len(),
            mended.update.len(),
            mended.delete.len()
        ),
        (0, 0, 1)
    );
}

#[test]
fn labels_that_change_on_the_service_change_on_slices_and_endpoints() {
    let mut service = service(&json!({}));
    let slices = execute(plan(&service, &pods(1), &[]), Vec::new());
    let classic = plan_endpoints(&service, &pods(1), None, None).unwrap();
    service.metadata.labels = Some([("team".to_owned(), "b".to_owned())].into());
    let changed = plan(&service, &pods(1), &slices);
    let labels = changed.update[0].metadata.labels.as_ref().unwrap();
    assert_eq!(labels["team"], "b");
    let newer: Endpoints = plan_endpoints(&service, &pods(1), Some(&classic), None).unwrap();
    assert_eq!(newer.metadata.labels.unwrap()["team"], "b");
}

#[test]
fn endpoints_are_cut_at_their_limit_and_say_so_those_that_are_not_ready_first() {
    let service = service(&json!({}));
    let unready = |number| {
        pod(number, |pod| {
            pod["status"]["conditions"][0]["status"] = "False".into();
        })
    };
    let count = |ready: usize, not_ready: usize| {
        let ready = (0..ready).map(|number| pod(number, |_| {}));
        let not_ready = (0..not_ready).map(|number| unready(5000 + number));
        let pods: Vec<_> = ready.chain(not_ready).collect();
        let endpoints = plan_endpoints(&service, &pods, None, None).unwrap();
        let subset = &endpoints.subsets.as_ref().unwrap()[0];
        let length = |list: &Option<Vec<_>>| list.as_ref().map_or(0, Vec::len);
        let annotations = endpoints.metadata.annotations.unwrap();
        let mark = annotations.get("endpoints.kubernetes.io/over-capacity");
        (
            length(&subset.addresses),
            length(&subset.not_ready_addresses),
            mark.cloned(),
        )
    };
    let cut = Some("truncated".to_owned());
    assert_eq!(count(990, 10), (990, 10, None));
    assert_eq!(count(990, 20), (990, 10, cut.clone()));
    assert_eq!(count(classic::FULL + 7, 20), (1000, 0, cut));
}
