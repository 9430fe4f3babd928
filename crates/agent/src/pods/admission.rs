//! Whether this node takes a pod on. The scheduler thought so; the node has the last word.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{NodeSelectorTerm, Pod, PodSpec};
use transom_model::{Os, labels};

use super::memory::Verdict;
use crate::{
    compose,
    pressure::{Condition, is_critical},
    resources,
    site::Site,
};

/// A verdict that ends the search for others.
fn refuse(reason: &str, message: String) -> Verdict {
    Verdict {
        reason: reason.to_owned(),
        message,
        ..Verdict::default()
    }
}

fn is_active(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Judges a pod that is new here. One that was taken on before, or has ended, is not judged again.
pub(super) fn judge(site: &Site, pod: &Pod, others: &[Arc<Pod>]) -> Option<Verdict> {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let known = !site.observer.sandboxes(uid).is_empty();
    if known || !is_active(pod) || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let spec = pod.spec.as_ref()?;
    let node = site.node();
    let of_node = node.as_ref().and_then(|node| node.metadata.labels.clone());
    let of_node = of_node.unwrap_or_else(|| crate::node::own_labels(site));
    let others: Vec<_> = others
        .iter()
        .filter(|other| is_active(other) && other.metadata.uid != pod.metadata.uid)
        .map(AsRef::as_ref)
        .collect();
    let specs: Vec<_> = others
        .iter()
        .filter_map(|other| other.spec.as_ref())
        .collect();
    of_pressure(&site.pressure.conditions(), pod)
        .or_else(|| of_system(site.os, spec, &of_node))
        .or_else(|| of_selectors(spec, &of_node))
        .or_else(|| of_ports(pod, &others))
        .or_else(|| of_room(site, spec, &specs))
}

/// A node that is short of memory takes on nobody who asks for none; one short of anything else takes on nobody.
fn of_pressure(conditions: &[Condition], pod: &Pod) -> Option<Verdict> {
    let spec = pod.spec.as_ref()?;
    if conditions.is_empty() || is_critical(pod) {
        return None;
    }
    if conditions == [Condition::Memory]
        && (resources::class_of_service(spec) != "BestEffort" || tolerates_memory_pressure(spec))
    {
        return None;
    }
    let names: Vec<_> = conditions.iter().map(|one| one.name()).collect();
    let text = format!(
        "Pod was rejected: The node had condition: [{}]. ",
        names.join(" ")
    );
    Some(refuse("Evicted", text))
}

fn tolerates_memory_pressure(spec: &PodSpec) -> bool {
    spec.tolerations.iter().flatten().any(|one| {
        let of_key = match one.key.as_deref() {
            None | Some("") => one.operator.as_deref() == Some("Exists"),
            Some(key) => key == "node.kubernetes.io/memory-pressure",
        };
        let of_value = one.operator.as_deref() == Some("Exists")
            || one.value.as_deref().unwrap_or_default().is_empty();
        let of_effect = one
            .effect
            .as_deref()
            .is_none_or(|effect| matches!(effect, "" | "NoSchedule"));
        of_key && of_value && of_effect
    })
}

fn of_system(os: Os, spec: &PodSpec, of_node: &BTreeMap<String, String>) -> Option<Verdict> {
    let selected = spec
        .node_selector
        .as_ref()
        .and_then(|selector| selector.get(labels::OS));
    if selected.is_some_and(|wanted| of_node.get(labels::OS) != Some(wanted)) {
        let text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
        return Some(refuse(
            "PodOSSelectorNodeLabelDoesNotMatch",
            text.to_owned(),
        ));
    }
    let named = spec.os.as_ref().map(|named| named.name.as_str());
    if named.is_some_and(|named| named != os.to_string()) {
        let text = "Failed to admit pod as the OS field doesn't match node OS";
        return Some(refuse("PodOSNotSupported", text.to_owned()));
    }
    None
}

fn of_selectors(spec: &PodSpec, of_node: &BTreeMap<String, String>) -> Option<Verdict> {
    let mut selector = spec.node_selector.iter().flatten();
    let selected = selector.all(|(name, value)| of_node.get(name) == Some(value));
    let affinity = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|one| {
        one.required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let name = of_node
        .get(labels::HOSTNAME)
        .map(String::as_str)
        .unwrap_or_default();
    let fits = required.is_none_or(|required| {
        required
            .node_selector_terms
            .iter()
            .any(|term| matches(term, of_node, name))
    });
    if selected && fits {
        return None;
    }
    let text = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
    Some(refuse("NodeAffinity", format!("Pod was rejected: {text}")))
}

fn matches(term: &NodeSelectorTerm, of_node: &BTreeMap<String, String>, name: &str) -> bool {
    let expressions = term.match_expressions.iter().flatten();
    let fields = term.match_fields.iter().flatten();
    let mut count = 0;
    let by_label = expressions.map(|one| (one, of_node.get(&one.key).map(String::as_str)));
    let by_field = fields.map(|one| (one, (one.key == "metadata.name").then_some(name)));
    let all = by_label.chain(by_field).all(|(one, actual)| {
        count += 1;
        let values = one.values.as_deref().unwrap_or_default();
        let listed = actual.is_some_and(|actual| values.iter().any(|value| value == actual));
        let numbers = || -> Option<(i64, i64)> {
            Some((actual?.parse().ok()?, values.first()?.parse().ok()?))
        };
        match one.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => actual.is_some(),
            "DoesNotExist" => actual.is_none(),
            "Gt" => numbers().is_some_and(|(actual, bound)| actual > bound),
            "Lt" => numbers().is_some_and(|(actual, bound)| actual < bound),
            _ => false,
        }
    });
    // A term without any condition selects nothing.
    all && count > 0
}

/// The ports of the node that a pod takes, each with its protocol and address.
fn host_ports(pod: &Pod) -> Vec<(i32, &str, &str)> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers
        .flat_map(|one| one.ports.iter().flatten())
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            let address = port
                .host_ip
                .as_deref()
                .filter(|ip| !ip.is_empty())
                .or_else(|| compose::given_address(pod))
                .unwrap_or("0.0.0.0");
            Some((number, protocol, address))
        })
        .collect()
}

fn of_ports(pod: &Pod, others: &[&Pod]) -> Option<Verdict> {
    let wanted = host_ports(pod);
    let taken =
        others
            .iter()
            .flat_map(|other| host_ports(other))
            .any(|(number, protocol, address)| {
                wanted
                    .iter()
                    .any(|(its_number, its_protocol, its_address)| {
                        let any = [address, its_address].contains(&"0.0.0.0");
                        (number, protocol) == (*its_number, *its_protocol)
                            && (any || address == *its_address)
                    })
            });
    let text = "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
    if taken {
        Some(refuse("NodePorts", text.to_owned()))
    } else {
        None
    }
}

fn of_room(site: &Site, spec: &PodSpec, others: &[&PodSpec]) -> Option<Verdict> {
    let short = |name: &str, requested: i128, used: i128, capacity: i128| {
        let text = format!(
            "Pod was rejected: Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
        );
        Some(refuse(&format!("OutOf{name}"), text))
    };
    let (count, most) = (others.len(), site.options.max_pods as usize);
    if count >= most {
        return short(
            "pods",
            1,
            i128::try_from(count).unwrap_or(0),
            i128::from(site.options.max_pods),
        );
    }
    let wanted = resources::pod_requests(spec);
    let mut used = resources::Amounts::new();
    for other in others {
        for (name, millis) in resources::pod_requests(other) {
            *used.entry(name).or_default() += millis;
        }
    }
    let room = &site.allocatable;
    for (name, unit, capacity) in [
        ("cpu", 1, i128::from(room.cpu_millis)),
        ("memory", 1000, i128::from(room.memory_bytes)),
        ("ephemeral-storage", 1000, i128::from(room.storage_bytes)),
    ] {
        let requested = wanted.get(name).copied().unwrap_or(0) / unit;
        let used = used.get(name).copied().unwrap_or(0) / unit;
        if requested > 0 && requested + used > capacity {
            return short(name, requested, used, capacity);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(mut value: Value) -> PodSpec {
        value["containers"] = json!([{"name": "c", "ports": value["ports"].take()}]);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn pods_for_another_system_are_refused_with_the_reason_people_know() {
        let of_node: BTreeMap<_, _> = [(labels::OS.to_owned(), "linux".to_owned())].into();
        for (value, wanted) in [
            (json!({}), None),
            (json!({"os": {"name": "linux"}}), None),
            (
                json!({"os": {"name": "windows"}}),
                Some("PodOSNotSupported"),
            ),
            (
                json!({"nodeSelector": {"kubernetes.io/os": "windows"}}),
                Some("PodOSSelectorNodeLabelDoesNotMatch"),
            ),
        ] {
            let found =
                of_system(Os::Linux, &spec(value.clone()), &of_node).map(|verdict| verdict.reason);
            assert_eq!(found.as_deref(), wanted, "{value}");
        }
    }

    #[test]
    fn affinity_is_any_term_of_which_all_conditions_hold() {
        let of_node: BTreeMap<_, _> = [
            ("zone".to_owned(), "a".to_owned()),
            ("size".to_owned(), "5".to_owned()),
        ]
        .into();
        let term = |list: Value| json!({"matchExpressions": list});
        for (terms, fits) in [
            (
                json!([term(
                    json!([{"key": "zone", "operator": "In", "values": ["a", "b"]}])
                )]),
                true,
            ),
            (
                json!([term(
                    json!([{"key": "zone", "operator": "NotIn", "values": ["a"]}])
                )]),
                false,
            ),
            (
                json!([term(
                    json!([{"key": "size", "operator": "Gt", "values": ["4"]}, {"key": "x", "operator": "Exists"}])
                )]),
                false,
            ),
            (
                json!([
                    term(json!([{"key": "x", "operator": "Exists"}])),
                    term(json!([{"key": "size", "operator": "Lt", "values": ["6"]}]))
                ]),
                true,
            ),
            (json!([term(json!([]))]), false),
            (
                json!([term(json!([{"key": "zone", "operator": "Like"}]))]),
                false,
            ),
        ] {
            let value = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
            assert_eq!(
                of_selectors(&spec(value.clone()), &of_node).is_none(),
                fits,
                "{value}"
            );
        }
    }

    #[test]
    fn a_node_short_of_memory_takes_on_only_who_asks_for_some() {
        let memory = [Condition::Memory];
        let both = [Condition::Memory, Condition::Disk];
        let pod = |change: Value| -> Pod {
            let mut value = json!({"metadata": {}, "spec": {"containers": [{"name": "c"}]}});
            json_patch(&mut value["spec"], change);
            serde_json::from_value(value).unwrap()
        };
        let tolerant = |key: &str| json!({"tolerations": [{"key": key, "operator": "Exists", "effect": "NoSchedule"}]});
        for (conditions, change, is_taken) in [
            (&[][..], json!({}), true),
            (&memory, json!({}), false),
            (
                &memory,
                json!({"containers": [{"name": "c", "resources": {"requests": {"memory": "1Mi"}}}]}),
                true,
            ),
            (
                &memory,
                tolerant("node.kubernetes.io/memory-pressure"),
                true,
            ),
            (&memory, tolerant("node.kubernetes.io/disk-pressure"), false),
            (&both, tolerant("node.kubernetes.io/memory-pressure"), false),
            (&both, json!({"priority": 2_000_001_000}), true),
        ] {
            let verdict = of_pressure(conditions, &pod(change.clone()));
            assert_eq!(verdict.is_none(), is_taken, "{conditions:?} {change}");
        }
        let verdict = of_pressure(&both, &pod(json!({}))).unwrap();
        assert_eq!(
            (verdict.reason.as_str(), verdict.message.as_str()),
            (
                "Evicted",
                "Pod was rejected: The node had condition: [MemoryPressure DiskPressure]. "
            )
        );
    }

    fn json_patch(to: &mut Value, change: Value) {
        if let Value::Object(change) = change {
            for (key, value) in change {
                to[key] = value;
            }
        }
    }

    #[test]
    fn a_port_of_the_node_is_given_once() {
        let ports = |list: Value| Pod {
            spec: Some(spec(json!({"ports": list}))),
            ..Pod::default()
        };
        let first = ports(json!([{"containerPort": 1, "hostPort": 80}]));
        let clash = ports(json!([{"containerPort": 2, "hostPort": 80, "hostIP": "127.0.0.1"}]));
        let other = ports(json!([{"containerPort": 2, "hostPort": 80, "protocol": "UDP"}]));
        assert!(of_ports(&clash, &[&first]).is_some());
        assert!(of_ports(&other, &[&first]).is_none());
    }

    #[test]
    fn pods_that_were_given_different_addresses_share_a_port() {
        let at = |address: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"annotations": {"scheduler.transom.dev/address": address}},
                "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}]}]},
            }))
            .unwrap()
        };
        let first = at("192.0.2.1");
        assert!(of_ports(&at("192.0.2.2"), &[&first]).is_none());
        for address in ["192.0.2.1", "0.0.0.0", "auto", ""] {
            assert!(of_ports(&at(address), &[&first]).is_some(), "{address}");
        }
    }
}
