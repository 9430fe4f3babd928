//! On which nodes a daemon should run, and what a pod must say to run on one of them.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{
    Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod,
    PodSpec, PodTemplateSpec, Taint, Toleration,
};
use kube::ResourceExt as _;
use transom_model::labels as names;

use super::platforms::Needs;
use crate::workloads::{nodes::info, revisions::REVISION};

const NAME: &str = "metadata.name";
const GENERATION: &str = "pod-template-generation";
/// What a daemon puts up with whatever its template says.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
const NO_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Whether a daemon should begin on a node, and whether one that is there may stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) should_run: bool,
    pub(super) may_stay: bool,
    /// Though none may stay, one that runs proves that it can: registries tell what a name stands for now.
    pub(super) spares_running: bool,
}

/// Judges nodes for daemons that are made from a template, tolerations included.
pub(super) fn judge_all(
    template: &PodTemplateSpec,
    needs: &Needs,
    nodes: &[Arc<Node>],
) -> BTreeMap<String, Verdict> {
    let empty = PodSpec::default();
    let spec = template.spec.as_ref().unwrap_or(&empty);
    let nodes = nodes.iter();
    nodes
        .map(|node| (node.name_any(), judge(spec, needs, node)))
        .collect()
}

fn judge(spec: &PodSpec, needs: &Needs, node: &Node) -> Verdict {
    let never = Verdict {
        should_run: false,
        may_stay: false,
        spares_running: false,
    };
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let wants_other = spec
        .node_name
        .as_deref()
        .is_some_and(|wanted| !wanted.is_empty() && wanted != name);
    if wants_other || !is_selected(spec, node) || is_for_other_system(spec, node) {
        return never;
    }
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let repels = |effect: &str| {
        let mut taints = taints.into_iter().flatten();
        taints.any(|taint| taint.effect == effect && !is_tolerated(spec, taint))
    };
    if repels("NoExecute") {
        return never;
    }
    if !needs.are_met_by(node) {
        return Verdict {
            spares_running: true,
            ..never
        };
    }
    Verdict {
        should_run: !repels("NoSchedule"),
        may_stay: true,
        spares_running: false,
    }
}

/// Whether the daemon is for another system than the node's. A node that does not say what it is may be any.
fn is_for_other_system(spec: &PodSpec, node: &Node) -> bool {
    let wanted = spec.os.as_ref().map(|os| os.name.as_str());
    let labels = node.labels();
    let is = labels
        .get(names::OS)
        .or_else(|| labels.get(names::OS_BETA))
        .or_else(|| info(node).map(|info| &info.operating_system))
        .filter(|os| !os.is_empty());
    matches!((wanted, is), (Some(wanted), Some(is)) if wanted != is)
}

fn is_selected(spec: &PodSpec, node: &Node) -> bool {
    let labels = node.labels();
    let mut pairs = spec.node_selector.iter().flatten();
    if !pairs.all(|(key, value)| labels.get(key) == Some(value)) {
        return false;
    }
    let required = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| {
            affinity
                .required_during_scheduling_ignored_during_execution
                .as_ref()
        });
    required.is_none_or(|required| {
        required
            .node_selector_terms
            .iter()
            .any(|term| is_met(term, node))
    })
}

fn is_met(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    // A term that says nothing is met by no node.
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let name = node.name_any();
    expressions
        .iter()
        .all(|one| holds(one, node.labels().get(&one.key)))
        && fields
            .iter()
            .all(|one| holds(one, (one.key == NAME).then_some(&name)))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&String>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let number = |text: Option<&String>| text.and_then(|text| text.parse::<i64>().ok());
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => {
            matches!((number(value), number(values.first())), (Some(has), Some(limit)) if has > limit)
        }
        "Lt" => {
            matches!((number(value), number(values.first())), (Some(has), Some(limit)) if has < limit)
        }
        _ => false,
    }
}

fn is_tolerated(spec: &PodSpec, taint: &Taint) -> bool {
    let mut tolerations = spec.tolerations.iter().flatten();
    tolerations.any(|one| tolerates(one, taint))
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
    let (effect, key) = (text(&toleration.effect), text(&toleration.key));
    if (!effect.is_empty() && effect != taint.effect) || (!key.is_empty() && key != taint.key) {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => true,
        "" | "Equal" => text(&toleration.value) == text(&taint.value),
        _ => false,
    }
}

/// The template with what every daemon has: tolerations, and the revision that it is of.
pub(super) fn complete(
    template: &PodTemplateSpec,
    hash: &str,
    generation: Option<&str>,
) -> PodTemplateSpec {
    let mut template = template.clone();
    let labels = template
        .metadata
        .get_or_insert_default()
        .labels
        .get_or_insert_default();
    if let Some(generation) = generation {
        labels.insert(GENERATION.to_owned(), generation.to_owned());
    }
    labels.insert(REVISION.to_owned(), hash.to_owned());
    let spec = template.spec.get_or_insert_default();
    let network = (spec.host_network == Some(true)).then_some(NO_NETWORK);
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        tolerate(spec, key, effect);
    }
    template
}

fn tolerate(spec: &mut PodSpec, key: &str, effect: &str) {
    let wanted = Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some(effect.to_owned()),
        ..Toleration::default()
    };
    let tolerations = spec.tolerations.get_or_insert_default();
    if !tolerations.contains(&wanted) {
        tolerations.push(wanted);
    }
}

/// Binds a template to one node, by an affinity that leaves the last word to the scheduler.
pub(super) fn pin(template: &PodTemplateSpec, node: &str) -> PodTemplateSpec {
    let mut template = template.clone();
    let spec = template.spec.get_or_insert_default();
    let affinity: &mut Affinity = spec.affinity.get_or_insert_default();
    let affinity: &mut NodeAffinity = affinity.node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_expressions: None,
            match_fields: Some(vec![NodeSelectorRequirement {
                key: NAME.to_owned(),
                operator: "In".to_owned(),
                values: Some(vec![node.to_owned()]),
            }]),
        }],
    });
    template
}

/// The node that a daemon is on or was made for.
pub(super) fn target(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(node) = spec.node_name.as_deref().filter(|node| !node.is_empty()) {
        return Some(node);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let mut fields = required
        .node_selector_terms
        .iter()
        .flat_map(|term| term.match_fields.iter().flatten());
    let field = fields.find(|field| field.key == NAME && field.operator == "In")?;
    field.values.as_ref()?.first().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(taints: &Value) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "labels": {"zone": "1", "size": "5"}}, "spec": {"taints": taints},
        }))
        .unwrap()
    }

    fn template(spec: Value) -> PodTemplateSpec {
        let mut spec = spec;
        spec["containers"] = json!([]);
        serde_json::from_value(json!({"spec": spec})).unwrap()
    }

    fn verdict(spec: Value, taints: &Value) -> (bool, bool) {
        let template = complete(&template(spec), "h", None);
        let verdict = judge(&template.spec.unwrap(), &Needs::default(), &node(taints));
        (verdict.should_run, verdict.may_stay)
    }

    fn affinity(field: &str, key: &str, operator: &str, values: &[&str]) -> Value {
        let term = json!({field: [{"key": key, "operator": operator, "values": values}]});
        json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
        }}})
    }

    #[test]
    fn a_node_is_chosen_by_name_labels_and_affinity() {
        let expression = "matchExpressions";
        for (spec, wanted) in [
            (json!({}), true),
            (json!({"nodeName": "a"}), true),
            (json!({"nodeName": "b"}), false),
            (json!({"nodeSelector": {"zone": "1"}}), true),
            (json!({"nodeSelector": {"zone": "2"}}), false),
            (affinity(expression, "zone", "In", &["1"]), true),
            (affinity(expression, "zone", "NotIn", &["1"]), false),
            (affinity(expression, "size", "Gt", &["4"]), true),
            (affinity(expression, "size", "Lt", &["4"]), false),
            (affinity(expression, "none", "DoesNotExist", &[]), true),
            (affinity("matchFields", "metadata.name", "In", &["a"]), true),
            (
                affinity("matchFields", "metadata.name", "In", &["b"]),
                false,
            ),
        ] {
            assert_eq!(
                verdict(spec.clone(), &json!([])),
                (wanted, wanted),
                "{spec}"
            );
        }
    }

    #[test]
    fn a_daemon_that_is_for_a_system_goes_to_its_nodes_only() {
        let windows = template(json!({"os": {"name": "windows"}})).spec.unwrap();
        let any = template(json!({})).spec.unwrap();
        let info = |os: &str| {
            json!({"status": {"nodeInfo": {"operatingSystem": os, "architecture": "amd64", "machineID": "",
                "systemUUID": "", "bootID": "", "osImage": "", "containerRuntimeVersion": "", "kernelVersion": "",
                "kubeletVersion": "", "kubeProxyVersion": ""}}})
        };
        for (node, is_windows) in [
            (
                json!({"metadata": {"labels": {"kubernetes.io/os": "windows"}}}),
                true,
            ),
            (
                json!({"metadata": {"labels": {"beta.kubernetes.io/os": "windows"}}}),
                true,
            ),
            (info("windows"), true),
            (json!({"metadata": {"name": "says nothing"}}), true),
            (
                json!({"metadata": {"labels": {"kubernetes.io/os": "linux"}}}),
                false,
            ),
            (info("linux"), false),
        ] {
            let read: Node = serde_json::from_value(node.clone()).unwrap();
            let verdict = judge(&windows, &Needs::default(), &read);
            assert_eq!(
                (verdict.should_run, verdict.may_stay),
                (is_windows, is_windows),
                "{node}"
            );
            assert!(judge(&any, &Needs::default(), &read).should_run, "{node}");
        }
    }

    #[test]
    fn taints_keep_daemons_away_or_drive_them_out_unless_they_are_tolerated() {
        let taint = |key: &str, effect: &str| json!([{"key": key, "effect": effect}]);
        for (taints, wanted) in [
            (
                taint("node.kubernetes.io/not-ready", "NoExecute"),
                (true, true),
            ),
            (
                taint("node.kubernetes.io/unschedulable", "NoSchedule"),
                (true, true),
            ),
            (
                taint("node.kubernetes.io/network-unavailable", "NoSchedule"),
                (false, true),
            ),
            (taint("mine", "NoSchedule"), (false, true)),
            (taint("mine", "PreferNoSchedule"), (true, true)),
            (taint("mine", "NoExecute"), (false, false)),
        ] {
            assert_eq!(verdict(json!({}), &taints), wanted, "{taints}");
        }
        let tolerant = json!({"tolerations": [{"operator": "Exists"}]});
        assert_eq!(verdict(tolerant, &taint("mine", "NoExecute")), (true, true));
        let host = json!({"hostNetwork": true});
        let taints = taint("node.kubernetes.io/network-unavailable", "NoSchedule");
        assert_eq!(verdict(host, &taints), (true, true));
    }

    #[test]
    fn a_pod_says_which_node_it_was_made_for() {
        let pinned = pin(
            &template(affinity("matchExpressions", "zone", "In", &["1"])),
            "b",
        );
        let pod = Pod {
            spec: pinned.spec,
            ..Pod::default()
        };
        assert_eq!(target(&pod), Some("b"));
        assert_eq!(target(&Pod::default()), None);
    }
}
