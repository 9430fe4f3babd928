//! `transom agent --runtime docker`, with Debian's Docker behind it.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use transom_testkit::{Running, eventually};

use crate::image;
use crate::machine::{Machine, SOON};

const PORT: &str = "8080";

/// The cgroup that Docker makes containers in, and never removes. Gone with this value, which must outlive Docker.
struct Group(String);

impl Group {
    fn new() -> Self {
        Self(format!("transom-lab-docker-{}", std::process::id()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let groups = fs_err::read_dir("/sys/fs/cgroup").into_iter().flatten();
        let tops = groups
            .flatten()
            .map(|hierarchy| hierarchy.path().join(&self.0));
        for top in tops.chain([Path::new("/sys/fs/cgroup").join(&self.0)]) {
            let inner = fs_err::read_dir(&top).into_iter().flatten().flatten();
            for container in inner.map(|entry| entry.path()).filter(|path| path.is_dir()) {
                let _ = fs_err::remove_dir(container);
            }
            // In most places there is none.
            let _ = fs_err::remove_dir(top);
        }
    }
}

/// Starts Docker where agents look for it, with the image that pods use.
fn start(machine: &Machine, group: &Group) -> Result<Running> {
    image::write(&machine.host.path("/srv/data/box.tar")?);
    let docker = machine.host.spawn([
        "dockerd",
        "--data-root=/srv/data/docker",
        "--storage-driver=vfs",
        "--bip=10.199.0.1/24",
        "--iptables=false",
        "--ip6tables=false",
        &format!("--cgroup-parent=/{}", group.0),
    ])?;
    let load = || {
        let line = ["docker", "load", "--input", "/srv/data/box.tar"];
        machine.host.run(line)?.success()
    };
    eventually("docker to take an image", SOON, load)?;
    Ok(docker)
}

/// A pod with a network of its own, whose server gives back what it is told.
fn pod() -> Value {
    let script = format!("echo hello from $WHO; exec nc -ll -p {PORT} -e /bin/cat");
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "box"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "box",
                "image": image::NAME,
                "imagePullPolicy": "Never",
                "command": ["/bin/sh", "-c", script],
                "env": [{"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
            }],
        },
    })
}

/// What a server gives back for a word.
fn ask(machine: &Machine, address: &str, port: &str) -> Result<String> {
    let line = ["busybox", "nc", "-w", "3", address, port];
    let asked = machine.host.command(line).input("ping\n").run()?;
    Ok(asked.success()?.stdout)
}

#[test]
fn a_pod_runs_by_docker_and_outlives_its_agent() {
    let group = Group::new();
    let machine = Machine::set_up("docker").unwrap();
    let _docker = start(&machine, &group).unwrap();
    let agent = machine.start_agent("docker").unwrap();
    let node = machine.wait_until_ready(&agent).unwrap();
    let version = node["status"]["nodeInfo"]["containerRuntimeVersion"].as_str();
    assert!(version.unwrap().starts_with("docker://"), "{version:?}");

    machine.apply(&pod()).unwrap();
    let running = machine.wait_until_running("box").unwrap();
    let address = running["status"]["podIP"].as_str().unwrap();
    assert!(address.starts_with("10.199.0."), "{address}");
    assert_eq!(ask(&machine, address, PORT).unwrap(), "ping\n");
    let forward = machine
        .start_kubectl(&["port-forward", "pod/box", "18080:8080"])
        .unwrap();
    eventually("the port to be forwarded", SOON, || {
        let answer = ask(&machine, "127.0.0.1", "18080")?;
        ensure!(answer == "ping\n", "{answer:?}");
        Ok(())
    })
    .unwrap();
    forward.kill().unwrap();
    let said = machine
        .kubectl(&["exec", "box", "--", "/bin/sh", "-c", "echo $WHO again"])
        .unwrap();
    assert_eq!(said, "box again\n");

    agent.kill().unwrap();
    let agent = machine
        .start_agent("docker=unix:///run/docker.sock")
        .unwrap();
    machine.wait_until_ready(&agent).unwrap();
    let container = |pod: &Value| pod["status"]["containerStatuses"][0].clone();
    eventually("the next agent to have looked", SOON, || {
        let now = machine.get(&["pod", "box"])?;
        let same = container(&now)["containerID"] == container(&running)["containerID"];
        ensure!(same && container(&now)["restartCount"] == 0, "{now:#}");
        let log = machine.kubectl(&["logs", "box"])?;
        ensure!(log == "hello from box\n", "{log:?}");
        Ok(())
    })
    .unwrap();

    machine
        .kubectl(&["delete", "pod", "box", "--wait"])
        .unwrap();
    eventually("nothing to be left", SOON, || {
        let left = machine.host.run(["docker", "ps", "--all", "--quiet"])?;
        let left = left.success()?.stdout;
        ensure!(left.is_empty(), "{left}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn an_agent_without_its_docker_says_where_it_looked_and_what_to_do() {
    let machine = Machine::set_up("no-docker").unwrap();
    let agent = machine
        .start_agent("docker=unix:///run/nowhere.sock")
        .unwrap();
    let status = agent.wait(SOON).unwrap();
    let said = agent.stderr().unwrap();
    assert!(!status.success(), "{said}");
    for expected in [
        "unix:///run/nowhere.sock",
        "No such file or directory",
        "systemctl start docker",
        "--runtime docker=",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in:\n{said}");
    }
}
