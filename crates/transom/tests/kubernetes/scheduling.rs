//! Schedulers that a server has beside the usual one. No machine runs the pods; they only get their nodes.

use crate::server::Server;

/// Two nodes, of which the first is half full.
const CLUSTER: &str = "
apiVersion: v1
kind: Node
metadata: {name: fuller, labels: {which: fuller}}
---
apiVersion: v1
kind: Node
metadata: {name: emptier, labels: {which: emptier}}
---
apiVersion: v1
kind: Pod
metadata: {name: resident}
spec:
  nodeName: fuller
  containers: [{name: main, image: app, resources: {requests: {cpu: '2', memory: 2Gi}}}]
";

fn pod(name: &str, wants: &str, request: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  {wants}
  tolerations: [{{operator: Exists}}]
  containers: [{{name: main, image: app, resources: {{requests: {request}}}}}]
"
    )
}

/// Creates pods and waits until each has the node that it should have.
fn place(server: &Server, text: &str, wanted: &[(&str, &str)]) {
    server.write("pods.yaml", text);
    server.ok("kubectl create -f pods.yaml");
    for (pod, node) in wanted {
        server.ok(&format!(
            "kubectl wait pod/{pod} --for=jsonpath='{{.spec.nodeName}}'={node} --timeout=50s"
        ));
    }
}

#[test]
fn a_pod_gets_its_node_from_the_scheduler_that_it_names() {
    let server = Server::start_whole(&["--scheduler", "batch,packing=fill,resources=10"]);
    server.write("cluster.yaml", CLUSTER);
    server.ok("kubectl create -f cluster.yaml");
    let has = r#"{"cpu":"4","memory":"4Gi","pods":"10"}"#;
    let patch = format!(r#"{{"status":{{"capacity":{has},"allocatable":{has}}}}}"#);
    server.ok(&format!(
        "kubectl patch node fuller emptier --subresource=status --type=merge -p '{patch}'"
    ));
    // Afterwards the schedulers know of both nodes, whichever of their watches is faster.
    let probe = |node: &str| pod(node, &format!("nodeSelector: {{which: {node}}}"), "{}");
    let probes = probe("fuller") + &probe("emptier");
    place(
        &server,
        &probes,
        &[("fuller", "fuller"), ("emptier", "emptier")],
    );

    let request = "{cpu: '1', memory: 1Gi}";
    let pods = pod("packed", "schedulerName: batch", request)
        + &pod("spread", "schedulerName: default-scheduler", request);
    place(
        &server,
        &pods,
        &[("packed", "fuller"), ("spread", "emptier")],
    );
}
