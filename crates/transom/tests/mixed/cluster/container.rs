//! `transom up` as root, on a host of its own: containers with an image of their own, on a network of their own.

use std::time::Duration;

use anyhow::ensure;
use transom_testkit::{Lab, eventually};

use super::containers::Groups;
use crate::{Node, SOON};

/// The image is made from a program with all that a debugger wants to know.
const LIMIT: Duration = Duration::from_mins(2);

#[test]
fn root_gets_a_cluster_with_containers_and_gets_rid_of_it() {
    // A disk on which containers can have theirs: the host's own is a layer above another already. Control groups are
    // named after it and belong to the machine, so no other test may have the same.
    let place = format!("/run/up-{}", std::process::id());
    let groups = Groups::of(&format!("{place}/agent"));
    let lab = Lab::new("up").unwrap();
    let node = Node::set_up(lab.linux_host("alpha").unwrap()).unwrap();
    let host = &node.host;
    let before = host.processes().unwrap();
    let tables = || host.run(["nft", "list", "tables"]).unwrap().success();
    assert_eq!(tables().unwrap().stdout, "");
    let kubeconfig = format!("{place}/server/admin.kubeconfig");
    let data = format!("--data-dir={place}");
    let run = |line: &[&str]| {
        let command = host.command(line.iter().copied()).timeout(LIMIT);
        let output = command.variable("KUBECONFIG", &kubeconfig).run().unwrap();
        let output = output.success().unwrap();
        format!("{}{}", output.stdout, output.stderr)
    };
    let transom = node.program();
    let said = run(&[transom, "up", &data, "--runtime=oci"]);
    assert!(said.contains("http://127.0.0.1:8080"), "{said}");

    let page = || host.http_get("http://127.0.0.1:8080/");
    assert_eq!(page().unwrap().status, 200);
    let pod = run(&["kubectl", "get", "pods", "-A", "-o", "name"]);
    let pod = pod.trim();
    let addresses = run(&[
        "kubectl",
        "get",
        "pods",
        "-A",
        "-o",
        "jsonpath={.items[*].status.podIP} {.items[*].status.hostIP}",
    ]);
    let (own, machine) = addresses.split_once(' ').unwrap();
    assert_ne!(own, machine);
    assert!(
        run(&[
            "kubectl", "exec", pod, "--", "/transom", "version", "--short"
        ])
        .starts_with("0.")
    );

    // The cluster is killed; what runs goes on, and is found by the next.
    let container = "jsonpath={.items[*].status.containerStatuses[*].containerID}";
    let get = ["kubectl", "get", "pods", "-A", "-o", container];
    let id = run(&get);
    let cluster = "pkill -KILL -f '[t]ransom up --foreground'";
    host.run(["sh", "-c", cluster]).unwrap().success().unwrap();
    assert_eq!(page().unwrap().status, 200);
    run(&[transom, "up", &data, "--runtime=oci"]);
    assert_eq!(run(&get), id);

    // What is looked for below is there now.
    assert_ne!(tables().unwrap().stdout, "");
    assert!(!groups.found().is_empty());
    run(&[transom, "down", &data]);
    eventually("nothing to be left", SOON, || {
        let left: Vec<String> = host
            .processes()?
            .iter()
            .filter(|process| before.iter().all(|it| it.id != process.id))
            .map(ToString::to_string)
            .collect();
        ensure!(left.is_empty(), "{left:#?}");
        Ok(())
    })
    .unwrap();
    assert!(!host.path(&place).unwrap().exists());
    let links = host.run(["ip", "-o", "link"]).unwrap().stdout;
    assert_eq!(links.lines().count(), 2, "{links}");
    assert_eq!(tables().unwrap().stdout, "");
    let rules = host.run(["iptables-save"]).unwrap().stdout;
    assert!(!rules.contains("transom"), "{rules}");
    let left = groups.found();
    assert!(left.is_empty(), "{left:?}");
}
