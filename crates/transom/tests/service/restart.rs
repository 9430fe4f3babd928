//! Services that end by themselves, and come back by their policy. Invariant: what was stopped by its
//! owner stays down, whatever the policy says.

use crate::harness::{Machine, wait_until};
use crate::processes::{is_alive, kill};

#[test]
fn a_killed_service_comes_back_with_a_new_process_and_is_counted() {
    let machine = Machine::with(&[(
        "web.service",
        "[Service]\nExecStart={echo} act spawn serve\nRestart=on-failure\nRestartSec=50ms\nTimeoutStopSec=1s\n",
    )]);
    machine.ok(["start", "web"]);
    let child: u32 = machine.wait_for_log("web", "spawned ").parse().unwrap();
    let first = machine.pid("web");
    kill(first);
    wait_until("the restart", || {
        machine.property("web", "NRestarts") == "1"
    });
    machine.wait_for_state("web", "active");
    assert_ne!(machine.pid("web"), first);
    assert!(
        !is_alive(child),
        "a child of the killed process is still there"
    );
    machine.ok(["stop", "web"]);
    machine.service(["is-active", "web"]).exits(3);
    machine.ok(["start", "web"]);
    assert_eq!(
        machine.property("web", "NRestarts"),
        "0",
        "a start by hand begins anew"
    );
}

#[test]
fn a_service_that_ends_well_is_not_restarted_on_failure() {
    let machine = Machine::with(&[
        (
            "well.service",
            "[Service]\nExecStart={echo} act exit:0\nRestart=on-failure\n",
        ),
        (
            "known.service",
            "[Service]\nExecStart={echo} act exit:42\nRestart=on-failure\nSuccessExitStatus=42\n",
        ),
        (
            "prevented.service",
            "[Service]\nExecStart={echo} act exit:9\nRestart=always\nRestartPreventExitStatus=9\n",
        ),
    ]);
    machine.ok(["start", "well", "known", "prevented"]);
    machine.wait_for_state("well", "inactive");
    machine.wait_for_state("known", "inactive");
    machine.wait_for_state("prevented", "failed");
    for unit in ["well", "known", "prevented"] {
        assert_eq!(machine.property(unit, "NRestarts"), "0", "{unit}");
    }
}

#[test]
fn restart_always_waits_as_long_as_it_is_told() {
    let machine = Machine::with(&[(
        "loop.service",
        "[Service]\nExecStart={echo} act say:round exit:0\nRestart=always\nRestartSec=700ms\n",
    )]);
    machine.ok(["start", "loop"]);
    wait_until("two rounds", || {
        machine.log("loop").matches(" round\n").count() >= 2
    });
    machine.ok(["stop", "loop"]);
    let entries = machine.ok(["logs", "-o", "json", "loop"]);
    let rounds: Vec<jiff::Timestamp> = entries
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|entry| entry["text"] == "round")
        .map(|entry| entry["time"].as_str().unwrap().parse().unwrap())
        .collect();
    let waited = rounds[1].duration_since(rounds[0]);
    assert!(waited.as_millis() >= 650, "it came back after {waited:?}");
}

#[test]
fn a_service_that_fails_again_and_again_is_given_up() {
    let machine = Machine::with(&[(
        "flaps.service",
        "[Unit]\nStartLimitBurst=3\nStartLimitIntervalSec=60\n[Service]\nExecStart={echo} act say:try exit:1\nRestart=always\nRestartSec=10ms\n",
    )]);
    machine.ok(["start", "flaps"]);
    wait_until("the limit", || {
        machine.property("flaps", "Result") == "start-limit-hit"
    });
    assert_eq!(machine.property("flaps", "ActiveState"), "failed");
    assert_eq!(machine.log("flaps").matches(" try\n").count(), 3);
    machine
        .service(["start", "flaps"])
        .exits(1)
        .says("too often");
    assert_eq!(machine.log("flaps").matches(" try\n").count(), 3);
    // The way forward that systemd offers.
    machine.ok(["reset-failed", "flaps"]);
    machine.ok(["start", "flaps"]);
    wait_until("another try", || {
        machine.log("flaps").matches(" try\n").count() > 3
    });
    machine.ok(["stop", "flaps"]);
}

#[test]
fn a_stop_wins_over_a_restart_that_is_waited_for() {
    let machine = Machine::with(&[(
        "later.service",
        "[Service]\nExecStart={echo} act exit:1\nRestart=always\nRestartSec=1h\n",
    )]);
    machine.ok(["start", "later"]);
    wait_until("the wait", || {
        machine.property("later", "SubState") == "auto-restart"
    });
    assert_eq!(
        machine.service(["is-active", "later"]).exits(3).stdout,
        "activating\n"
    );
    machine.ok(["stop", "later"]);
    machine.service(["is-active", "later"]).exits(3);
    assert_ne!(machine.property("later", "SubState"), "auto-restart");
}

#[test]
fn a_failure_starts_the_unit_that_handles_it() {
    let machine = Machine::with(&[
        (
            "bad.service",
            "[Unit]\nOnFailure=alarm@%n.service\n[Service]\nExecStart={echo} act exit:1\n",
        ),
        (
            "alarm@.service",
            "[Service]\nType=oneshot\nExecStart={echo} act say:alarm-for-%i\n",
        ),
    ]);
    machine.ok(["start", "bad"]);
    machine.wait_for_log("alarm@bad.service.service", "alarm-for-bad.service");
}
