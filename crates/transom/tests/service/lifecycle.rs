//! Start, stop, restart, reload, kill, and what status says meanwhile, with the exit codes of
//! systemctl. Invariant: a verb that returned has happened.

use crate::harness::{Machine, wait_until};
use crate::processes::is_alive;

const WEB: (&str, &str) = (
    "web.service",
    "[Unit]\nDescription=The web\n[Service]\nExecStart={echo} act serve\n",
);
const DEAF: (&str, &str) = (
    "deaf.service",
    "[Service]\nExecStart={echo} act deaf\nTimeoutStopSec=500ms\n",
);

#[test]
fn a_started_unit_runs_and_a_stopped_one_does_not() {
    let machine = Machine::with(&[WEB]);
    machine.service(["status", "web"]).exits(3).says("inactive");
    assert_eq!(
        machine.service(["is-active", "web"]).exits(3).stdout,
        "inactive\n"
    );

    assert_eq!(machine.ok(["start", "web"]), "");
    let pid = machine.pid("web");
    assert!(is_alive(pid));
    assert_eq!(machine.ok(["is-active", "web.service"]), "active\n");
    machine
        .service(["status", "web"])
        .exits(0)
        .says("web.service - The web")
        .says("active (running)")
        .says(&pid.to_string());

    machine.ok(["stop", "web"]);
    assert!(!is_alive(pid), "stop returned before the process ended");
    machine.service(["is-active", "web"]).exits(3);
    assert_eq!(machine.property("web", "Result"), "success");
    machine.wait_until_empty();
}

#[test]
fn a_second_start_changes_nothing() {
    let machine = Machine::with(&[WEB]);
    machine.ok(["start", "web"]);
    let pid = machine.pid("web");
    machine.ok(["start", "web"]);
    assert_eq!(machine.pid("web"), pid);
    machine.ok(["stop", "web"]);
    machine.ok(["stop", "web"]);
}

#[test]
fn a_service_is_asked_to_stop_before_it_is_made_to() {
    let machine = Machine::with(&[WEB]);
    machine.ok(["start", "web"]);
    machine.wait_for_log("web", "serving");
    machine.ok(["stop", "web"]);
    assert!(
        machine.log("web").contains("stopping"),
        "{}",
        machine.log("web")
    );
    assert_eq!(machine.property("web", "ActiveState"), "inactive");
}

#[test]
fn a_service_that_does_not_stop_in_time_is_killed() {
    let machine = Machine::with(&[DEAF]);
    machine.ok(["start", "deaf"]);
    machine.wait_for_log("deaf", "deaf");
    let pid = machine.pid("deaf");
    machine.ok(["stop", "deaf"]);
    assert!(!is_alive(pid));
    assert_eq!(machine.property("deaf", "Result"), "timeout");
    assert_eq!(machine.property("deaf", "ActiveState"), "failed");
    machine.wait_until_empty();
}

#[test]
fn no_descendant_survives_a_stop() {
    let machine = Machine::with(&[(
        "family.service",
        "[Service]\nExecStart={echo} act spawn spawn serve\nTimeoutStopSec=1s\n",
    )]);
    machine.ok(["start", "family"]);
    machine.wait_for_log("family", "serving");
    let child: u32 = machine.wait_for_log("family", "spawned ").parse().unwrap();
    assert!(is_alive(child));
    machine.ok(["stop", "family"]);
    assert!(!is_alive(child), "the grandchild outlived the stop");
    machine.wait_until_empty();
}

#[test]
fn no_descendant_survives_a_main_process_that_ends_by_itself() {
    let machine = Machine::with(&[(
        "family.service",
        "[Service]\nExecStart={echo} act spawn exit:0\nTimeoutStopSec=500ms\n",
    )]);
    machine.ok(["start", "family"]);
    let child: u32 = machine.wait_for_log("family", "spawned ").parse().unwrap();
    wait_until("the grandchild to end", || !is_alive(child));
    machine.wait_until_empty();
}

#[test]
fn restart_gives_a_new_process_and_starts_what_did_not_run() {
    let machine = Machine::with(&[WEB]);
    machine.ok(["try-restart", "web"]);
    machine.service(["is-active", "web"]).exits(3);
    machine.ok(["restart", "web"]);
    let first = machine.pid("web");
    machine.ok(["restart", "web"]);
    let second = machine.pid("web");
    assert_ne!(first, second);
    assert!(!is_alive(first));
    machine.ok(["try-restart", "web"]);
    assert_ne!(machine.pid("web"), second);
    assert_eq!(
        machine.property("web", "NRestarts"),
        "0",
        "only automatic restarts count"
    );
}

#[test]
fn reload_runs_its_command_and_keeps_the_process() {
    let machine = Machine::with(&[
        WEB,
        (
            "loads.service",
            "[Service]\nExecStart={echo} act serve\nExecReload={echo} act say:reloaded env:MAINPID\n",
        ),
    ]);
    machine.service(["reload", "loads"]).exits(1);
    machine.ok(["start", "loads", "web"]);
    let pid = machine.pid("loads");
    machine.ok(["reload", "loads"]);
    assert_eq!(machine.wait_for_log("loads", "MAINPID="), pid.to_string());
    assert_eq!(machine.pid("loads"), pid);

    machine
        .service(["reload", "web"])
        .exits(1)
        .says("web.service");
    let web = machine.pid("web");
    machine.ok(["reload-or-restart", "web"]);
    assert_ne!(machine.pid("web"), web);
}

#[test]
fn kill_reaches_the_processes_of_a_unit() {
    let machine = Machine::with(&[WEB, DEAF]);
    machine.ok(["start", "web", "deaf"]);
    machine.wait_for_log("web", "serving");
    let deaf = machine.pid("deaf");
    machine.ok(["kill", "web"]);
    machine.wait_for_state("web", "inactive");
    assert!(machine.log("web").contains("stopping"), "TERM is a request");
    machine.ok(["kill", "-s", "KILL", "deaf"]);
    machine.wait_for_state("deaf", "failed");
    assert!(!is_alive(deaf));
    machine
        .service(["kill", "-s", "SIGNONSENSE", "web"])
        .exits(1)
        .says("SIGNONSENSE");
}

#[test]
fn no_block_returns_before_it_has_happened() {
    let machine = Machine::with(&[(
        "slow.service",
        "[Service]\nType=oneshot\nExecStart={echo} act say:begun pause:600000\nTimeoutStopSec=500ms\n",
    )]);
    machine.ok(["start", "--no-block", "slow"]);
    machine.wait_for_log("slow", "begun");
    assert_eq!(
        machine.service(["is-active", "slow"]).exits(3).stdout,
        "activating\n"
    );
    machine.ok(["stop", "slow"]);
    machine.wait_until_empty();
}

#[test]
fn patterns_name_many_units_at_once() {
    let machine = Machine::with(&[("worker@.service", "[Service]\nExecStart={echo} act serve\n")]);
    machine.ok(["start", "worker@1", "worker@2"]);
    assert_eq!(
        machine.ok(["is-active", "worker@1", "worker@2"]),
        "active\nactive\n"
    );
    machine.ok(["stop", "worker@*"]);
    machine
        .service(["is-active", "worker@1", "worker@2"])
        .exits(3);
}

#[test]
fn is_failed_and_reset_failed_know_what_failed() {
    let machine = Machine::with(&[
        WEB,
        ("bad.service", "[Service]\nExecStart={echo} act exit:7\n"),
    ]);
    machine.ok(["start", "bad"]);
    machine.wait_for_state("bad", "failed");
    assert_eq!(machine.ok(["is-failed", "bad"]), "failed\n");
    machine.service(["is-failed", "web"]).exits(1);
    machine
        .service(["is-active", "bad"])
        .exits(3)
        .says("failed");
    machine.service(["status", "bad"]).exits(3).says("status=7");
    assert_eq!(machine.property("bad", "ExecMainStatus"), "7");
    assert_eq!(machine.property("bad", "Result"), "exit-code");

    machine.ok(["reset-failed", "bad"]);
    assert_eq!(machine.property("bad", "ActiveState"), "inactive");
    machine.service(["is-failed", "bad"]).exits(1);
}

#[test]
fn shutdown_stops_everything_gracefully_and_ends_the_supervisor() {
    let mut machine = Machine::with(&[WEB]);
    machine.ok(["start", "web"]);
    machine.wait_for_log("web", "serving");
    let pid = machine.pid("web");
    machine.ok(["shutdown"]);
    assert!(machine.wait_for_daemon().success());
    assert!(!is_alive(pid));
    assert!(machine.log("web").contains("stopping"));
    machine.wait_until_empty();
    machine
        .service(["status", "web"])
        .exits(3)
        .says("no supervisor is running here");
}
