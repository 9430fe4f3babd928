//! What an object uses of the resources that quotas can limit.

use serde_json::{Map, Value};

use super::{Attributes, Context, scopes};
use crate::validation::{
    amounts::{self, Amounts},
    quantities::{self, Amount},
    read::Read,
};

/// Kinds that quotas of old count under their own names.
const PLAIN_COUNTS: [&str; 7] = [
    "configmaps",
    "secrets",
    "services",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
];

/// What a quota says that containers must say about their resources too.
const DEMANDED: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

/// What one object of the request's kind uses.
pub(super) fn of(request: &Attributes, object: &Value) -> Amounts {
    let mut used = Amounts::new();
    if object.is_null() {
        return used;
    }
    let one = Amount::from_integer(1);
    let resource = request.resource.as_str();
    let core = request.group.is_empty();
    let full = if core {
        resource.to_owned()
    } else {
        format!("{resource}.{}", request.group)
    };
    used.insert(format!("count/{full}"), one);
    if core && PLAIN_COUNTS.contains(&resource) {
        used.insert(resource.to_owned(), one);
    }
    match (core, request.kind.as_str()) {
        (true, "Pod") => pod(object, &mut used),
        (true, "Service") => service(&object["spec"], &mut used),
        (true, "PersistentVolumeClaim") => claim(object, &mut used),
        _ => {}
    }
    used
}

fn pod(pod: &Value, used: &mut Amounts) {
    let ended = matches!(pod["status"].text("phase"), "Succeeded" | "Failed");
    if ended {
        used.retain(|name, _| name.starts_with("count/"));
        return;
    }
    for (name, amount) in amounts::pod_requests(&pod["spec"]) {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
            || name.starts_with("hugepages-")
        {
            used.insert(name.clone(), amount);
        }
        used.insert(format!("requests.{name}"), amount);
    }
    for (name, amount) in amounts::pod_limits(&pod["spec"]) {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            used.insert(format!("limits.{name}"), amount);
        }
    }
}

fn service(spec: &Value, used: &mut Amounts) {
    let ports = i64::try_from(spec.items("ports").len()).unwrap_or(i64::MAX);
    let (on_nodes, balancers) = match spec.text("type") {
        "NodePort" => (ports, 0),
        "LoadBalancer" => {
            let allocates = spec
                .maybe_flag("allocateLoadBalancerNodePorts")
                .unwrap_or(true);
            let chosen = spec
                .items("ports")
                .iter()
                .filter(|port| port.number("nodePort") != 0)
                .count();
            let chosen = i64::try_from(chosen).unwrap_or(i64::MAX);
            (if allocates { ports } else { chosen }, 1)
        }
        _ => (0, 0),
    };
    used.insert(
        "services.nodeports".to_owned(),
        Amount::from_integer(on_nodes),
    );
    used.insert(
        "services.loadbalancers".to_owned(),
        Amount::from_integer(balancers),
    );
}

fn claim(claim: &Value, used: &mut Amounts) {
    let class = claim["spec"].text("storageClassName");
    let of_class = |what: &str| format!("{class}.storageclass.storage.k8s.io/{what}");
    if !class.is_empty() {
        used.insert(of_class("persistentvolumeclaims"), Amount::from_integer(1));
    }
    let requests = &claim["spec"]["resources"]["requests"];
    if let Some(storage) = quantities::amount_of(requests, "storage") {
        // What is allocated already counts if it is more.
        let allocated = quantities::amount_of(&claim["status"]["allocatedResources"], "storage");
        let storage = allocated.map_or(storage, |allocated| allocated.max(storage));
        used.insert("requests.storage".to_owned(), storage);
        if !class.is_empty() {
            used.insert(of_class("requests.storage"), storage);
        }
    }
}

/// What a quota limits and containers do not say, with the names of the containers.
pub(super) fn missing(spec: &Value, hard: &Map<String, Value>) -> Vec<String> {
    let mut sentences = Vec::new();
    for name in hard.keys().filter(|name| DEMANDED.contains(&name.as_str())) {
        let (field, resource) = match name.split_once('.') {
            Some((field, resource)) => (field, resource),
            None => ("requests", name.as_str()),
        };
        if spec["resources"][field].has(resource) {
            continue;
        }
        let without: Vec<&str> = ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| spec.items(list))
            .filter(|container| !container["resources"][field].has(resource))
            .map(|container| container.text("name"))
            .collect();
        if !without.is_empty() {
            sentences.push(format!("{name} for: {}", without.join(",")));
        }
    }
    sentences
}

/// What all objects in the namespace use, for a quota that has not been counted yet.
pub(super) fn total(
    name: &str,
    spec: &Value,
    request: &Attributes,
    context: &Context<'_>,
) -> Amount {
    let Some((group, kind, resource)) = counted_kind(name, request) else {
        return Amount::ZERO;
    };
    let mut like = request.clone();
    like.group = group;
    like.kind = kind;
    like.resource = resource;
    context
        .objects
        .list(&like.group, &like.kind, &request.namespace)
        .iter()
        .filter(|object| scopes::select(spec, &like, object))
        .filter_map(|object| of(&like, object).get(name).copied())
        .fold(Amount::ZERO, Amount::plus)
}

/// Whose objects a resource counts: group, kind and plural.
fn counted_kind(name: &str, request: &Attributes) -> Option<(String, String, String)> {
    let core =
        |kind: &str, resource: &str| Some((String::new(), kind.to_owned(), resource.to_owned()));
    let plain = name.strip_prefix("count/").unwrap_or(name);
    let full = if request.group.is_empty() {
        request.resource.clone()
    } else {
        format!("{}.{}", request.resource, request.group)
    };
    if plain == full {
        return Some((
            request.group.clone(),
            request.kind.clone(),
            request.resource.clone(),
        ));
    }
    if name.contains("storageclass.storage.k8s.io/") || name == "requests.storage" {
        return core("PersistentVolumeClaim", "persistentvolumeclaims");
    }
    match plain {
        "configmaps" => core("ConfigMap", plain),
        "secrets" => core("Secret", plain),
        "services" | "services.nodeports" | "services.loadbalancers" => core("Service", "services"),
        "persistentvolumeclaims" => core("PersistentVolumeClaim", plain),
        "replicationcontrollers" => core("ReplicationController", plain),
        "resourcequotas" => core("ResourceQuota", plain),
        _ if name.starts_with("count/") => None,
        _ => core("Pod", "pods"),
    }
}
