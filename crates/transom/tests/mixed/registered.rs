//! The supervisor as a service of Windows: registered by our own command, started by the service
//! manager at once and at each boot, and gone without a trace when it is taken away.

use anyhow::{Result, ensure};
use transom_testkit::{Lab, eventually};

use crate::{NEIGHBOUR, Node, SOON, WEB};

/// The name that the service manager knows.
const NAME: &str = "transom-supervisor";

#[test]
fn windows_runs_the_supervisor_as_its_own_service() {
    let lab = Lab::new("registered").unwrap();
    let node = Node::set_up(lab.windows_host("beta").unwrap()).unwrap();
    let before = node.host.processes().unwrap();
    assert!(!query(&node).unwrap().contains("RUNNING"));

    node.service(&["install", "--now"]).unwrap();
    let shown = query(&node).unwrap();
    assert!(shown.contains("RUNNING"), "{shown}");
    node.service(&["enable", "--now", WEB]).unwrap();
    node.wait_for_page_of(&node).unwrap();
    let first = node.wait_until_active(WEB).unwrap();
    // Once more changes nothing.
    node.service(&["install", "--now"]).unwrap();
    assert_eq!(node.state(WEB).unwrap(), first);

    node.service(&["uninstall"]).unwrap();
    let shown = query(&node).unwrap();
    assert!(!shown.contains("RUNNING"), "{shown}");
    let logs = node.logs(WEB).unwrap();
    assert!(logs.contains(": stopping"), "{logs}");
    assert!(node.page_of(&node).is_err());
    node.wait_until_only(&before).unwrap();
}

#[test]
fn windows_brings_a_registered_supervisor_and_its_services_up_at_boot() {
    let lab = Lab::new("autostart").unwrap();
    let node = Node::set_up(lab.windows_host("beta").unwrap()).unwrap();
    node.service(&["install"]).unwrap();
    node.service(&["enable", WEB]).unwrap();
    node.host.stop().unwrap();
    node.host.start().unwrap();

    node.wait_for_page_of(&node).unwrap();
    node.wait_for_supervisor().unwrap();
    let first = node.wait_until_active(WEB).unwrap();
    assert_eq!(first.restarts, 0);
    let neighbour = node.state(NEIGHBOUR).unwrap();
    assert_eq!(neighbour.active, "inactive");
    eventually("the service manager to know", SOON, || {
        let shown = query(&node)?;
        ensure!(shown.contains("RUNNING"), "{shown}");
        Ok(())
    })
    .unwrap();
}

/// What the system's own program says about the supervisor's service.
fn query(node: &Node) -> Result<String> {
    let output = node.host.run(["sc", "query", NAME])?;
    Ok(format!(
        "{}: {}{}",
        output.status, output.stdout, output.stderr
    ))
}
