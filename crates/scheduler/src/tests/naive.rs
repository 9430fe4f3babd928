//! The rules once more, straight from the objects: slow, plain, and sharing no code with the core.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Node, Pod, PodAffinityTerm},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};

type Map = BTreeMap<String, String>;

fn labels(map: Option<&Map>) -> Map {
    map.cloned().unwrap_or_default()
}

fn selects(selector: Option<&LabelSelector>, labels: &Map) -> bool {
    let Some(selector) = selector else {
        return false;
    };
    selector
        .match_labels
        .iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
}

fn cpu(pod: &Pod) -> i64 {
    let containers = &pod.spec.as_ref().unwrap().containers;
    containers
        .iter()
        .filter_map(|one| one.resources.as_ref()?.requests.as_ref()?.get("cpu"))
        .map(|quantity| quantity.0.parse::<i64>().unwrap())
        .sum()
}

fn ports(pod: &Pod) -> Vec<i32> {
    let containers = &pod.spec.as_ref().unwrap().containers;
    containers
        .iter()
        .flat_map(|one| one.ports.iter().flatten())
        .filter_map(|port| port.host_port)
        .collect()
}

fn on<'a>(pods: &'a [Pod], node: &str) -> Vec<&'a Pod> {
    pods.iter()
        .filter(|pod| pod.spec.as_ref().unwrap().node_name.as_deref() == Some(node))
        .collect()
}

fn terms(pod: &Pod, anti: bool) -> Vec<PodAffinityTerm> {
    let affinity = pod
        .spec
        .as_ref()
        .unwrap()
        .affinity
        .clone()
        .unwrap_or_default();
    let list = if anti {
        affinity
            .pod_anti_affinity
            .and_then(|one| one.required_during_scheduling_ignored_during_execution)
    } else {
        affinity
            .pod_affinity
            .and_then(|one| one.required_during_scheduling_ignored_during_execution)
    };
    list.unwrap_or_default()
}

fn means(term: &PodAffinityTerm, owner: &Pod, other: &Pod) -> bool {
    owner.metadata.namespace == other.metadata.namespace
        && selects(
            term.label_selector.as_ref(),
            &labels(other.metadata.labels.as_ref()),
        )
}

fn value(node: &Node, key: &str) -> Option<String> {
    labels(node.metadata.labels.as_ref()).get(key).cloned()
}

/// Pods in the same place as a node.
fn around<'a>(nodes: &[Node], pods: &'a [Pod], node: &Node, key: &str) -> Vec<&'a Pod> {
    let Some(place) = value(node, key) else {
        return Vec::new();
    };
    let same = nodes
        .iter()
        .filter(|other| value(other, key).as_ref() == Some(&place));
    same.flat_map(|other| on(pods, other.metadata.name.as_deref().unwrap()))
        .collect()
}

/// Whether a pod can go to a node.
pub(super) fn can_go(nodes: &[Node], pods: &[Pod], pod: &Pod, node: &Node) -> bool {
    let name = node.metadata.name.as_deref().unwrap();
    let spec = pod.spec.as_ref().unwrap();
    let here = on(pods, name);
    let allocatable = node.status.as_ref().unwrap().allocatable.as_ref().unwrap();
    let has = |what: &str| allocatable[what].0.parse::<i64>().unwrap();
    if i64::try_from(here.len()).unwrap() >= has("pods") {
        return false;
    }
    let used: i64 = here.iter().map(|other| cpu(other)).sum();
    if cpu(pod) > 0 && used + cpu(pod) > has("cpu") {
        return false;
    }
    if here
        .iter()
        .any(|other| ports(other).iter().any(|port| ports(pod).contains(port)))
    {
        return false;
    }
    let own = labels(node.metadata.labels.as_ref());
    if spec
        .node_selector
        .iter()
        .flatten()
        .any(|(key, value)| own.get(key) != Some(value))
    {
        return false;
    }
    let tolerates = |key: &str| {
        spec.tolerations
            .iter()
            .flatten()
            .any(|one| one.key.as_deref() == Some(key))
    };
    let node_spec = node.spec.as_ref().unwrap();
    if node_spec
        .taints
        .iter()
        .flatten()
        .any(|taint| !tolerates(&taint.key))
        || node_spec.unschedulable == Some(true)
    {
        return false;
    }
    neighbours_agree(nodes, pods, pod, node) && is_even(nodes, pods, pod, node)
}

fn neighbours_agree(nodes: &[Node], pods: &[Pod], pod: &Pod, node: &Node) -> bool {
    for term in terms(pod, true) {
        if around(nodes, pods, node, &term.topology_key)
            .iter()
            .any(|other| means(&term, pod, other))
        {
            return false;
        }
    }
    for other_node in nodes {
        for other in on(pods, other_node.metadata.name.as_deref().unwrap()) {
            for term in terms(other, true) {
                let place = value(other_node, &term.topology_key);
                if place.is_some()
                    && place == value(node, &term.topology_key)
                    && means(&term, other, pod)
                {
                    return false;
                }
            }
        }
    }
    let needs = terms(pod, false);
    if needs.is_empty() {
        return true;
    }
    let fits_all = |other: &&Pod| needs.iter().all(|term| means(term, pod, other));
    if needs
        .iter()
        .any(|term| value(node, &term.topology_key).is_none())
    {
        return false;
    }
    let is_near = needs.iter().all(|term| {
        around(nodes, pods, node, &term.topology_key)
            .iter()
            .any(fits_all)
    });
    let is_first = needs.iter().all(|term| {
        !nodes.iter().any(|one| {
            around(nodes, pods, one, &term.topology_key)
                .iter()
                .any(fits_all)
        })
    });
    is_near || (is_first && fits_all(&pod))
}

fn is_even(nodes: &[Node], pods: &[Pod], pod: &Pod, node: &Node) -> bool {
    let spec = pod.spec.as_ref().unwrap();
    let rules: Vec<_> = spec.topology_spread_constraints.iter().flatten().collect();
    let takes_part = |one: &&Node| {
        let own = labels(one.metadata.labels.as_ref());
        rules
            .iter()
            .all(|rule| own.contains_key(&rule.topology_key))
            && spec
                .node_selector
                .iter()
                .flatten()
                .all(|(key, value)| own.get(key) == Some(value))
    };
    for rule in &rules {
        let Some(place) = value(node, &rule.topology_key) else {
            return false;
        };
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for one in nodes.iter().filter(takes_part) {
            let count = counts
                .entry(value(one, &rule.topology_key).unwrap())
                .or_default();
            let others = on(pods, one.metadata.name.as_deref().unwrap());
            let same = others.iter().filter(|other| {
                other.metadata.namespace == pod.metadata.namespace
                    && selects(
                        rule.label_selector.as_ref(),
                        &labels(other.metadata.labels.as_ref()),
                    )
            });
            *count += i64::try_from(same.count()).unwrap();
        }
        let least = counts.values().min().copied().unwrap_or_default();
        let own = i64::from(selects(
            rule.label_selector.as_ref(),
            &labels(pod.metadata.labels.as_ref()),
        ));
        if counts.get(&place).copied().unwrap_or_default() + own - least > i64::from(rule.max_skew)
        {
            return false;
        }
    }
    true
}
