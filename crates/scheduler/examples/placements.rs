//! How many pods a second the core places, without the API: run it with `--release`.
#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use std::time::Instant;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};
use transom_scheduler::{Placement, Placer, Profile, Snapshot};

const NODES: usize = 5_000;
const PODS: usize = 10_000;

fn node(number: usize) -> Result<Node, serde_json::Error> {
    serde_json::from_value(json!({
        "metadata": {"name": format!("node-{number}"), "labels": {
            "kubernetes.io/hostname": format!("node-{number}"),
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/zone": format!("zone-{}", number % 3),
            "disk": if number.is_multiple_of(10) { "ssd" } else { "hdd" },
        }},
        "status": {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}},
    }))
}

fn pod(number: usize, spec: &Value) -> Result<Pod, serde_json::Error> {
    let mut value = json!({
        "metadata": {
            "name": format!("pod-{number}"), "namespace": "default", "uid": format!("uid-{number}"),
            "labels": {"app": format!("app-{}", number % 20), "all": "yes"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r",
                                 "uid": format!("owner-{}", number % 20), "controller": true}],
        },
        "spec": {"containers": [{"name": "c", "image": "app",
                                 "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}]},
    });
    for (key, one) in spec.as_object().into_iter().flatten() {
        value["spec"][key] = one.clone();
    }
    serde_json::from_value(value)
}

fn main() -> Result<(), serde_json::Error> {
    let zone = "topology.kubernetes.io/zone";
    let same = json!({"matchLabels": {"app": "app-1"}});
    for (name, spec) in [
        ("simple", json!({})),
        ("node selector", json!({"nodeSelector": {"disk": "ssd"}})),
        (
            "spread over zones",
            json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": zone,
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"all": "yes"}}}]}),
        ),
        (
            "preferred affinity",
            json!({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 1, "podAffinityTerm": {"labelSelector": same, "topologyKey": zone}}]}}}),
        ),
        (
            "anti-affinity",
            json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"labelSelector": same, "topologyKey": "kubernetes.io/hostname"}]}}}),
        ),
    ] {
        let mut snapshot = Snapshot::default();
        for number in 0..NODES {
            snapshot.put_node(&node(number)?);
        }
        let pods = (0..PODS)
            .map(|number| pod(number, &spec))
            .collect::<Result<Vec<_>, _>>()?;
        let mut placer = Placer::new(Profile::default());
        let mut count = 0_u32;
        let begun = Instant::now();
        for pod in &pods {
            let pod = snapshot.prepare(pod);
            if let Placement::Node(place) = placer.place(&snapshot, &pod) {
                snapshot.assume(&pod, &place.node);
                count += 1;
            }
        }
        let each = begun.elapsed() / u32::try_from(PODS).unwrap_or(1);
        let rate = 1.0 / each.as_secs_f64();
        println!("{name:<20} {count:>6} placed, {each:>10.1?} each, {rate:>8.0} pods/s");
    }
    Ok(())
}
