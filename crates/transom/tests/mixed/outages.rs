//! Hosts that lose their cable, stand still, or lose power. Services go on where their host goes on,
//! and come up by themselves where it starts again.

use std::time::Duration;

use anyhow::{Result, ensure};
use transom_testkit::{Lab, eventually};

use crate::{NEIGHBOUR, Node, SOON, Service, WEB, mixed_lab, on_each};

/// How long to try to reach a host that cannot be reached. Nothing is lost if it is too short.
const IN_VAIN: Duration = Duration::from_secs(1);

#[test]
fn services_of_a_host_that_is_cut_off_go_on() {
    let (_lab, nodes) = mixed_lab("cut-off").unwrap();
    on_each(&nodes, serve).unwrap();
    for [cut_off, other] in both_ways(&nodes) {
        let before = cut_off.state(WEB).unwrap();
        other.wait_for_page_of(cut_off).unwrap();
        cut_off.host.cut_off().unwrap();
        assert!(!other.reaches(cut_off, IN_VAIN).unwrap());
        assert!(!cut_off.reaches(other, IN_VAIN).unwrap());

        assert_eq!(cut_off.page_of(cut_off).unwrap(), cut_off.host.name());
        // The supervisor needs no network either.
        cut_off.service(&["restart", NEIGHBOUR]).unwrap();
        cut_off.wait_until_active(NEIGHBOUR).unwrap();
        cut_off.host.rejoin().unwrap();
        other.wait_for_page_of(cut_off).unwrap();
        cut_off.wait_for_page_of(other).unwrap();
        assert_eq!(cut_off.state(WEB).unwrap(), before);
    }
}

#[test]
fn a_host_that_stood_still_goes_on_with_its_services() {
    let (_lab, nodes) = mixed_lab("pause").unwrap();
    on_each(&nodes, serve).unwrap();
    for [paused, other] in both_ways(&nodes) {
        let before = states(paused).unwrap();
        paused.host.pause().unwrap();
        assert!(!other.reaches(paused, IN_VAIN).unwrap());
        assert_eq!(other.page_of(other).unwrap(), other.host.name());

        paused.host.resume().unwrap();
        other.wait_for_page_of(paused).unwrap();
        assert_eq!(states(paused).unwrap(), before);
    }
}

#[test]
fn a_full_disk_ends_no_service_and_is_forgotten_when_there_is_room_again() {
    let lab = Lab::new("full-disk").unwrap();
    let node = Node::set_up(lab.linux_host("full").unwrap()).unwrap();
    let run = |line: &[&str]| node.host.run(line.iter().copied()).unwrap();
    run(&["mkdir", "-p", "/run/transom"]).success().unwrap();
    let options = ["-t", "tmpfs", "-o", "size=512k", "tmpfs", "/run/transom"];
    run(&[&["mount"][..], &options].concat()).success().unwrap();
    let daemon = node.start_supervisor().unwrap();
    node.service(&["start", WEB, NEIGHBOUR]).unwrap();
    let before = node.wait_until_active(WEB).unwrap();
    node.wait_for_page_of(&node).unwrap();

    let fill = run(&["dd", "if=/dev/zero", "of=/run/transom/filler", "bs=4k"]);
    assert!(fill.stderr.contains("No space left"), "{fill:?}");
    // What happens now cannot be written down. Whether the neighbour comes back depends on the room
    // that its end makes; what counts is that the supervisor gets over it.
    node.kill(node.state(NEIGHBOUR).unwrap().pid).unwrap();
    eventually("the neighbour to come back or be given up", SOON, || {
        let state = node.state(NEIGHBOUR)?;
        let is_back = state.active == "active" && state.restarts > 0;
        ensure!(is_back || state.active == "failed", "{state:?}");
        Ok(())
    })
    .unwrap();
    assert_eq!(node.state(WEB).unwrap(), before);
    assert_eq!(node.page_of(&node).unwrap(), node.host.name());

    run(&["rm", "/run/transom/filler"]).success().unwrap();
    node.service(&["reset-failed", NEIGHBOUR]).unwrap();
    node.service(&["start", NEIGHBOUR]).unwrap();
    node.wait_until_active(NEIGHBOUR).unwrap();
    assert_eq!(node.state(WEB).unwrap(), before);
    node.shut_down(&daemon).unwrap();
}

#[test]
fn enabled_services_come_up_by_themselves_after_a_power_cut() {
    let (_lab, nodes) = mixed_lab("power-cut").unwrap();
    on_each(&nodes, |node| {
        serve(node)?;
        node.service(&["disable", NEIGHBOUR])?;
        let first = node.wait_until_active(WEB)?;
        // It is read from a pipe, and what is in the pipe is lost with the power.
        eventually("the log of the first start", SOON, || {
            let logs = node.logs(WEB)?;
            ensure!(logs.contains(": listening on"), "{logs}");
            Ok(())
        })?;
        let (memory, boot) = node.memory()?;
        node.host.stop()?;
        node.host.start()?;
        ensure!(node.page_of(node).is_err(), "it runs without a supervisor");

        // On Windows it is there anyway: no folder of a Windows host is empty after a boot.
        node.host.write(&node.memory_file(), memory)?;
        node.start_supervisor()?;
        let second = node.wait_until_active(WEB)?;
        // A supervisor that believes the old memory finds its process gone, and restarts it.
        ensure!(second.restarts == 0, "first {first:?}, then {second:?}");
        node.wait_for_page_of(node)?;
        let now = node.memory()?.1;
        ensure!(now != boot, "the boot is still {boot}");
        let neighbour = node.state(NEIGHBOUR)?;
        ensure!(
            neighbour.active == "inactive",
            "it is disabled: {neighbour:?}"
        );
        let keepers = node.keepers()?;
        ensure!(keepers.len() == 1, "one service has {keepers:?}");
        eventually("the log of the second start", SOON, || {
            let logs = node.logs(WEB)?;
            let starts = logs.matches(": listening on").count();
            ensure!(
                starts == 2,
                "{starts} starts instead of one per boot:\n{logs}"
            );
            Ok(())
        })
    })
    .unwrap();
}

/// Starts the supervisor with both services and waits until they run.
fn serve(node: &Node) -> Result<()> {
    node.start_supervisor()?;
    node.service(&["enable", "--now", WEB, NEIGHBOUR])?;
    node.wait_for_page_of(node)
}

fn states(node: &Node) -> Result<[Service; 2]> {
    Ok([node.state(WEB)?, node.state(NEIGHBOUR)?])
}

fn both_ways([alpha, beta]: &[Node; 2]) -> [[&Node; 2]; 2] {
    [[alpha, beta], [beta, alpha]]
}
