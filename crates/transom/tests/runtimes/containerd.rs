//! `transom agent --runtime cri`, with Debian's containerd behind it.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use transom_testkit::{Running, eventually};

use crate::image;
use crate::machine::{Machine, SOON};

const CONFIGURATION: &str = r#"version = 2
root = "/srv/data/root"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs"]
[plugins."io.containerd.internal.v1.opt"]
path = "/srv/data/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "transom.dev/box:1"
restrict_oom_score_adj = true
disable_hugetlb_controller = true
tolerate_missing_hugetlb_controller = true
stream_server_address = "127.0.0.1"
stream_server_port = "0"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"#;

/// Starts containerd where agents look for it, with the image that pods use.
fn start(machine: &Machine) -> Result<Running> {
    machine.host.write("/srv/data/config.toml", CONFIGURATION)?;
    image::write(&machine.host.path("/srv/data/box.tar")?);
    let line = ["containerd", "--config", "/srv/data/config.toml"];
    let containerd = machine.host.spawn(line)?;
    eventually("containerd to take an image", SOON, || {
        let line = [
            "ctr",
            "-n",
            "k8s.io",
            "images",
            "import",
            "/srv/data/box.tar",
        ];
        machine.host.run(line)?.success()
    })?;
    Ok(containerd)
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "box"},
        "spec": {
            // Without plugins for networks containerd has none to give.
            "hostNetwork": true,
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "box",
                "image": image::NAME,
                "imagePullPolicy": "Never",
                "command": ["/bin/sh", "-c", "echo hello from $WHO; exec sleep 1000"],
                "env": [{"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            }],
        },
    })
}

#[test]
fn a_pod_runs_by_containerd_and_outlives_its_agent() {
    let machine = Machine::set_up("containerd").unwrap();
    let _containerd = start(&machine).unwrap();
    let agent = machine.start_agent("cri").unwrap();
    let node = machine.wait_until_ready(&agent).unwrap();
    let version = node["status"]["nodeInfo"]["containerRuntimeVersion"].as_str();
    assert!(version.unwrap().starts_with("containerd://"), "{version:?}");

    machine.apply(&pod()).unwrap();
    let running = machine.wait_until_running("box").unwrap();
    let container = |pod: &Value| pod["status"]["containerStatuses"][0].clone();
    eventually("what the pod says", SOON, || {
        let log = machine.kubectl(&["logs", "box"])?;
        ensure!(log == "hello from box\n", "{log:?}");
        Ok(())
    })
    .unwrap();
    let said = machine
        .kubectl(&["exec", "box", "--", "/bin/sh", "-c", "echo $WHO again"])
        .unwrap();
    assert_eq!(said, "box again\n");

    agent.kill().unwrap();
    let agent = machine
        .start_agent("cri=/run/containerd/containerd.sock")
        .unwrap();
    machine.wait_until_ready(&agent).unwrap();
    eventually("the next agent to have looked", SOON, || {
        let now = machine.get(&["pod", "box"])?;
        let same = container(&now)["containerID"] == container(&running)["containerID"];
        ensure!(same && container(&now)["restartCount"] == 0, "{now:#}");
        machine.kubectl(&["exec", "box", "--", "/bin/sh", "-c", "exit 0"])
    })
    .unwrap();

    machine
        .kubectl(&["delete", "pod", "box", "--wait"])
        .unwrap();
    let left = machine
        .host
        .run(["ctr", "-n", "k8s.io", "tasks", "list", "-q"]);
    assert_eq!(left.unwrap().success().unwrap().stdout, "");
}

#[test]
fn an_agent_without_its_containerd_says_where_it_looked_and_what_to_do() {
    let machine = Machine::set_up("no-containerd").unwrap();
    let agent = machine.start_agent("cri").unwrap();
    let status = agent.wait(SOON).unwrap();
    let said = agent.stderr().unwrap();
    assert!(!status.success(), "{said}");
    for expected in [
        "unix:///run/containerd/containerd.sock",
        "unix:///run/crio/crio.sock",
        "No such file or directory",
        "systemctl start containerd",
        "--runtime cri=",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in:\n{said}");
    }
}
