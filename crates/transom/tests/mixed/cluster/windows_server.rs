//! The server on Windows: it keeps what it knows over a kill, and machines of both systems are its nodes.

use anyhow::ensure;
use serde_json::json;
use transom_model::os::Os;
use transom_testkit::eventually;

use super::Cluster;
use crate::SOON;

#[test]
fn a_server_on_windows_has_nodes_of_both_systems() {
    let hosts = [("gamma", Os::Windows), ("alpha", Os::Linux)];
    let mut cluster = Cluster::set_up("reversed", &hosts).unwrap();
    for node in &cluster.nodes {
        cluster.apply(&Cluster::web(node)).unwrap();
    }
    let pods = ["web-gamma", "web-alpha"];
    let before = pods.map(|pod| cluster.wait_until_running(pod).unwrap());

    cluster.server.kill().unwrap();
    cluster.start_server().unwrap();
    let kept = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "written-afterwards"},
    });
    cluster.apply(&kept).unwrap();
    for (pod, before) in pods.iter().zip(&before) {
        let now = cluster.wait_until_running(pod).unwrap();
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"]);
        let container = &before["status"]["containerStatuses"][0]["containerID"];
        assert_eq!(
            now["status"]["containerStatuses"][0]["containerID"],
            *container
        );
        // It listens, and so is ready, before what it says is in its log.
        eventually("the log of a pod", SOON, || {
            let log = cluster.kubectl(&["logs", pod])?;
            ensure!(log.contains("listening on"), "{log}");
            Ok(())
        })
        .unwrap();
    }
}
