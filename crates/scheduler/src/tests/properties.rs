//! What must hold whatever the cluster looks like.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{naive::can_go, node, pod, snapshot};
use crate::{Placement, Snapshot, Verdict, explain, place};

fn any_node() -> impl Strategy<Value = Node> {
    (0..6_u8, 0..3_u8, 1..5_i64, 1..4_i64, any::<[bool; 4]>()).prop_map(|(name, zone, cpu, pods, is)| {
        let mut more = json!({"status": {"allocatable": {"cpu": cpu.to_string(), "pods": pods.to_string()}}});
        if is[0] {
            more["spec"]["taints"] = json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]);
        }
        if is[1] {
            more["metadata"]["labels"]["disk"] = "ssd".into();
        }
        more["spec"]["unschedulable"] = (is[2] && is[3]).into();
        let mut node = node(&format!("n{name}"), &format!("z{zone}"), &more);
        if zone == 2 {
            node.metadata.labels.get_or_insert_default().remove("topology.kubernetes.io/zone");
        }
        node
    })
}

fn term(to: u8, zone: bool) -> Value {
    let key = if zone {
        "topology.kubernetes.io/zone"
    } else {
        "kubernetes.io/hostname"
    };
    json!({"labelSelector": {"matchLabels": {"app": format!("a{to}")}}, "topologyKey": key})
}

fn any_wish() -> impl Strategy<Value = Value> {
    let place = || (0..3_u8, any::<bool>());
    prop_oneof![
        6 => Just(json!({})),
        1 => place().prop_map(|(to, zone)| json!({"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term(to, zone)]}}})),
        1 => (place(), place()).prop_map(|((to, zone), (other, there))| json!({"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term(to, zone), term(other, there)]}}})),
        2 => place().prop_map(|(to, zone)| json!({"affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term(to, zone)]}}})),
        2 => (place(), 1..3_i32).prop_map(|((to, zone), skew)| {
            let mut rule = term(to, zone);
            rule["maxSkew"] = skew.into();
            rule["whenUnsatisfiable"] = "DoNotSchedule".into();
            json!({"topologySpreadConstraints": [rule]})
        }),
    ]
}

fn any_pod(name: u8) -> impl Strategy<Value = Pod> {
    (0..3_u8, 0..3_i64, any_wish(), any::<[bool; 4]>()).prop_map(move |(app, cpu, wish, is)| {
        let mut spec = wish;
        spec["containers"] =
            json!([{"name": "c", "resources": {"requests": {"cpu": cpu.to_string()}}}]);
        if is[0] {
            spec["tolerations"] = json!([{"key": "k", "operator": "Exists"}]);
        }
        if is[1] && is[2] {
            spec["nodeSelector"] = json!({"disk": "ssd"});
        }
        if is[3] {
            spec["containers"][0]["ports"] =
                json!([{"containerPort": 1, "hostPort": 80 + i32::from(app)}]);
        }
        let namespace = if is[2] { "default" } else { "other" };
        let metadata = json!({"labels": {"app": format!("a{app}")}, "namespace": namespace});
        pod(
            &format!("p{name}"),
            &json!({"metadata": metadata, "spec": spec}),
        )
    })
}

/// What happens to a cluster.
#[derive(Clone, Debug)]
enum Act {
    Node(Node),
    NoNode(u8),
    Pod(Pod, u8),
    NoPod(u8),
    Assume(Pod, u8),
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => any_node().prop_map(Act::Node),
        1 => (0..6_u8).prop_map(Act::NoNode),
        6 => (0..12_u8).prop_flat_map(|name| (any_pod(name), 0..6_u8)).prop_map(|(pod, on)| Act::Pod(pod, on)),
        2 => (0..12_u8).prop_map(Act::NoPod),
        1 => (0..12_u8).prop_flat_map(|name| (any_pod(name), 0..6_u8)).prop_map(|(pod, on)| Act::Assume(pod, on)),
    ]
}

/// The cluster as plain lists, and as a snapshot that was told of each step.
#[derive(Default)]
struct World {
    nodes: BTreeMap<String, Node>,
    pods: BTreeMap<String, Pod>,
    snapshot: Snapshot,
}

impl World {
    fn after(acts: Vec<Act>) -> Self {
        let mut world = Self::default();
        for act in acts {
            world.take(act);
        }
        world
    }

    fn take(&mut self, act: Act) {
        match act {
            Act::Node(node) => {
                self.snapshot.put_node(&node);
                self.nodes.insert(node.metadata.name.clone().unwrap(), node);
            }
            Act::NoNode(name) => {
                self.snapshot.remove_node(&format!("n{name}"));
                self.nodes.remove(&format!("n{name}"));
            }
            Act::Pod(mut pod, on) => {
                pod.spec.get_or_insert_default().node_name = Some(format!("n{on}"));
                self.snapshot.put_pod(&pod);
                self.pods.insert(pod.metadata.name.clone().unwrap(), pod);
            }
            Act::Assume(mut pod, on) => {
                let prepared = self.snapshot.prepare(&pod);
                self.snapshot.assume(&prepared, &format!("n{on}"));
                pod.spec.get_or_insert_default().node_name = Some(format!("n{on}"));
                self.pods.insert(pod.metadata.name.clone().unwrap(), pod);
            }
            Act::NoPod(name) => {
                self.snapshot.remove_pod(&format!("uid-p{name}"));
                self.pods.remove(&format!("p{name}"));
            }
        }
    }

    fn lists(&self) -> (Vec<Node>, Vec<Pod>) {
        (
            self.nodes.values().cloned().collect(),
            self.pods.values().cloned().collect(),
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_pod_goes_only_where_the_plain_rules_let_it_and_somewhere_if_they_do(
        acts in proptest::collection::vec(any_act(), 0..30),
        wants in any_pod(99),
    ) {
        let mut world = World::after(acts);
        let (nodes, pods) = world.lists();
        let allowed: Vec<&str> = nodes
            .iter()
            .filter(|node| can_go(&nodes, &pods, &wants, node))
            .map(|node| node.metadata.name.as_deref().unwrap())
            .collect();
        let prepared = world.snapshot.prepare(&wants);
        match place(&world.snapshot, &prepared) {
            Placement::Node(place) => prop_assert!(allowed.contains(&&*place.node), "{} of {allowed:?}", place.node),
            Placement::Unplaceable(why) => {
                prop_assert!(allowed.is_empty(), "{} but {allowed:?}", why.message());
                prop_assert_eq!(why.nodes, nodes.len());
            }
        }
        let verdicts = explain(&mut world.snapshot, &wants);
        for (name, verdict) in verdicts {
            let is_possible = matches!(verdict, Verdict::Possible(_));
            prop_assert_eq!(is_possible, allowed.contains(&&*name), "{} {:?}", name, verdict);
        }
    }

    #[test]
    fn a_snapshot_that_was_kept_is_like_one_that_was_built(
        acts in proptest::collection::vec(any_act(), 0..40),
        wants in any_pod(99),
    ) {
        let mut world = World::after(acts);
        let (nodes, pods) = world.lists();
        let mut built = snapshot(&nodes, &pods);
        prop_assert_eq!(world.snapshot.pod_count(), built.pod_count());
        let kept: BTreeMap<_, _> = explain(&mut world.snapshot, &wants).into_iter().collect();
        let anew: BTreeMap<_, _> = explain(&mut built, &wants).into_iter().collect();
        prop_assert_eq!(kept, anew);
    }

    #[test]
    fn whoever_goes_makes_room_and_was_less_important(
        acts in proptest::collection::vec(any_act(), 0..30),
        priorities in proptest::collection::vec(0..3_i32, 12),
        wants in any_pod(99),
    ) {
        let mut world = World::after(acts);
        for (number, priority) in priorities.iter().enumerate() {
            if let Some(pod) = world.pods.get_mut(&format!("p{number}")) {
                pod.spec.get_or_insert_default().priority = Some(*priority);
                world.snapshot.put_pod(pod);
            }
        }
        let mut wants = wants;
        wants.spec.get_or_insert_default().priority = Some(2);
        let prepared = world.snapshot.prepare(&wants);
        if let Placement::Unplaceable(why) = place(&world.snapshot, &prepared)
            && let Ok(found) = crate::preempt::preempt(&world.snapshot, &prepared, &why, 0)
        {
            prop_assert!(!found.victims.is_empty());
            for victim in &found.victims {
                prop_assert!(victim.priority < 2);
                world.pods.remove(&*victim.name);
            }
            let (nodes, pods) = world.lists();
            let node = &world.nodes[&*found.node];
            prop_assert!(can_go(&nodes, &pods, &wants, node));
        }
    }
}
