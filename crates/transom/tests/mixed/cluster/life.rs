//! Pods live through kills of agents and go when they are deleted.

use anyhow::ensure;
use serde_json::Value;
use transom_model::os::Os;
use transom_testkit::eventually;

use super::{Cluster, PORT};
use crate::SOON;

#[test]
fn a_cluster_of_linux_and_windows_machines_runs_pods_on_both() {
    let mut cluster = Cluster::set_up(
        "cluster",
        &[
            ("alpha", Os::Linux),
            ("beta", Os::Linux),
            ("gamma", Os::Windows),
        ],
    )
    .unwrap();
    let labels = |name: &str| cluster.get(&["node", name]).unwrap()["metadata"]["labels"].clone();
    assert_eq!(labels("alpha")["kubernetes.io/os"], "linux");
    assert_eq!(labels("gamma")["kubernetes.io/os"], "windows");
    assert!(labels("gamma")["node.kubernetes.io/windows-build"].is_string());

    // One for each host; where they go is decided by their system and by keeping apart.
    let pods: Vec<Value> = cluster.nodes.iter().map(Cluster::web).collect();
    for pod in &pods {
        cluster.apply(pod).unwrap();
    }
    let names: Vec<String> = cluster
        .nodes
        .iter()
        .map(|node| format!("web-{}", node.host.name()))
        .collect();
    let running: Vec<Value> = names
        .iter()
        .map(|name| cluster.wait_until_running(name).unwrap())
        .collect();
    assert_eq!(running[2]["spec"]["nodeName"], "gamma");
    for (pod, name) in running.iter().zip(&names) {
        let address = pod["status"]["hostIP"].as_str().unwrap();
        for node in &cluster.nodes {
            assert_eq!(Cluster::page(node, address).unwrap(), *name);
        }
    }

    // Killed agents leave pods alone, and the next ones find them.
    for agent in cluster.agents.values() {
        agent.kill().unwrap();
    }
    for (pod, name) in running.iter().zip(&names) {
        let address = pod["status"]["hostIP"].as_str().unwrap();
        assert_eq!(Cluster::page(&cluster.nodes[0], address).unwrap(), *name);
    }
    for index in 0..cluster.nodes.len() {
        cluster.start_agent(index).unwrap();
    }
    for (before, name) in running.iter().zip(&names) {
        let container = |pod: &Value| pod["status"]["containerStatuses"][0].clone();
        eventually("the agent to have looked again", SOON, || {
            let now = cluster.get(&["pod", name])?;
            ensure!(
                container(&now)["containerID"] == container(before)["containerID"],
                "{now:#}"
            );
            ensure!(container(&now)["restartCount"] == 0, "{now:#}");
            Ok(())
        })
        .unwrap();
    }

    // Logs and shells, through the API server, on both systems.
    for (node, name) in cluster.nodes.iter().zip(&names) {
        eventually("the logs of a pod", SOON, || {
            let log = cluster.kubectl(&["logs", name])?;
            ensure!(log.contains(&PORT.to_string()), "{log:?}");
            Ok(())
        })
        .unwrap();
        let said = cluster
            .kubectl(&["exec", name, "--", node.echo(), "act", "say:hello"])
            .unwrap();
        assert_eq!(said.trim_end(), "hello");
    }

    // Deleted pods take their processes along.
    cluster
        .kubectl(&["delete", "pods", "--all", "--wait"])
        .unwrap();
    for pod in &running {
        let address = pod["status"]["hostIP"].as_str().unwrap();
        assert!(Cluster::page(&cluster.nodes[0], address).is_err());
    }
}
