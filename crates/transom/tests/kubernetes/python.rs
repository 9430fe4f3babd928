//! Client libraries in Python: the official one, and an operator made with kr8s. The scripts say what they
//! saw; here stands what they must have seen.

use std::process::Output;

use serde_json::{Value, json};

use crate::server::{Beside, Server};

/// A script of this folder, run by the Python that `cargo xtask tools` made.
fn script(server: &Server, name: &str, arguments: &[&str]) -> std::process::Command {
    let mut command = server.program("timeout");
    command
        .args(["--kill-after=5", "100", "transom-python"])
        .arg(format!(
            "{}/tests/kubernetes/{name}",
            env!("CARGO_MANIFEST_DIR")
        ))
        .arg("data/admin.kubeconfig")
        .args(arguments);
    command
}

#[track_caller]
fn seen(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{errors}\nIf there is no transom-python: `cargo xtask tools install linux`, then `cargo xtask test`"
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_official_client_sees_what_it_knows() {
    let server = Server::start();
    let output = script(&server, "official_client.py", &["widgets.yaml"]).output();
    let seen = seen(&output.unwrap());
    assert_eq!(
        seen["configMaps"],
        json!({
            "again": [409, "AlreadyExists"],
            "listed": ["python"],
            "stale": [409, "Conflict"],
            "replaced": {"c": "3"},
            "gone": [404, "NotFound"],
            "events": [
                ["MODIFIED", {"a": "1", "b": "2"}],
                ["MODIFIED", {"c": "3"}],
                ["DELETED", {"c": "3"}],
            ],
        })
    );
    assert_eq!(
        seen["deployments"],
        json!({
            "defaults": ["RollingUpdate", "Always", 10],
            "scaled": 3,
            "status": [2, 3],
            "invalid": [422, "Invalid"],
            "left": [],
        })
    );
    assert_eq!(
        seen["custom"],
        json!({
            "made": [{"count": 1, "size": "small"}, null],
            "wrong": [422, "Invalid"],
            "status": ["Ready", "small"],
            "table": [["Name", "Size", "Count", "Phase"], ["python", "small", 1, "Ready"]],
        })
    );
    assert_eq!(seen["version"], "36");
}

#[test]
fn an_operator_holds_its_objects_until_it_is_done_with_them() {
    let server = Server::start();
    server.ok("kubectl create -f widgets.yaml");
    server.ok("kubectl wait --for=condition=Established crd/widgets.example.org --timeout=50s");
    let operator = Beside::start(&mut script(&server, "operator_loop.py", &["1"]));
    server.ok("kubectl create -f widget.yaml");
    server.ok("kubectl wait --for=jsonpath={.status.phase}=Ready widget/first --timeout=50s");
    assert_eq!(
        server.ok("kubectl get configmap of-first -o jsonpath={.data}"),
        r#"{"size":"small"}"#
    );
    server.ok("kubectl delete widget first --timeout=50s");
    let did: Value = serde_json::from_str(&operator.until("held")).unwrap();
    assert_eq!(
        did,
        json!([["held", "first"], ["ready", "first"], ["let go", "first"]])
    );
    let (text, code) = server.shell("kubectl get configmap of-first");
    assert_eq!(code, 1, "{text}");
}
