//! The supervisor, its keepers, or both are killed at any moment. Invariant: the next supervisor knows
//! what runs, can stop it, and leaves nothing behind.

use std::time::Duration;

use crate::harness::{Machine, wait_for, wait_until};
use crate::processes::{is_alive, kill};

const WEB: (&str, &str) = (
    "web.service",
    "[Service]\nExecStart={echo} act say:begun serve\nTimeoutStopSec=2s\n",
);
const AGAIN: (&str, &str) = (
    "again.service",
    "[Service]\nExecStart={echo} act spawn serve\nRestart=always\nRestartSec=50ms\nTimeoutStopSec=1s\n",
);

#[test]
fn services_outlive_a_killed_supervisor_and_the_next_one_adopts_them() {
    let mut machine = Machine::with(&[WEB]);
    machine.ok(["start", "web"]);
    machine.wait_for_log("web", "serving");
    let pid = machine.pid("web");
    machine.kill_daemon();
    assert!(is_alive(pid));

    machine.boot();
    assert_eq!(machine.pid("web"), pid);
    machine.service(["is-active", "web"]).exits(0);
    assert_eq!(machine.property("web", "NRestarts"), "0");
    machine.ok(["stop", "web"]);
    assert!(!is_alive(pid));
    assert!(
        machine.log("web").contains("stopping"),
        "the stop was not graceful"
    );
    assert_eq!(machine.log("web").matches("begun").count(), 1);
    machine.wait_until_empty();
}

#[test]
fn a_service_that_ended_while_nobody_looked_is_handled_by_its_policy() {
    let mut machine = Machine::with(&[WEB, AGAIN]);
    machine.ok(["start", "web", "again"]);
    let (web, again) = (machine.pid("web"), machine.pid("again"));
    let child: u32 = machine.wait_for_log("again", "spawned ").parse().unwrap();
    machine.kill_daemon();
    kill(web);
    kill(again);
    wait_until("both to end", || !is_alive(web) && !is_alive(again));

    machine.boot();
    machine.wait_for_state("web", "failed");
    wait_until("the restart", || {
        machine.property("again", "NRestarts") == "1"
    });
    machine.wait_for_state("again", "active");
    assert_ne!(machine.pid("again"), again);
    assert!(!is_alive(child));
}

#[test]
fn a_service_that_gets_ready_while_nobody_looks_is_active_afterwards() {
    let mut machine = Machine::with(&[(
        "late.service",
        "[Service]\nType=notify\nExecStart={echo} act say:begun pause:400 ready say:told serve\n",
    )]);
    machine.ok(["start", "--no-block", "late"]);
    machine.wait_for_log("late", "begun");
    // What it says may be in its log before the supervisor has heard that it runs.
    let pid = wait_for("the main process to be known", || {
        let pid = machine.property("late", "MainPID");
        (pid != "0").then_some(pid)
    });
    machine.kill_daemon();
    machine.wait_for_log("late", "told");
    machine.boot();
    machine.wait_for_state("late", "active");
    assert_eq!(machine.property("late", "MainPID"), pid);
}

#[test]
fn a_service_ends_with_its_keeper_and_comes_back_by_its_policy() {
    let machine = Machine::with(&[AGAIN]);
    machine.ok(["start", "again"]);
    let child: u32 = machine.wait_for_log("again", "spawned ").parse().unwrap();
    let pid = machine.pid("again");
    kill(machine.only_keeper());
    wait_until("the restart", || {
        machine.property("again", "NRestarts") == "1"
    });
    machine.wait_for_state("again", "active");
    assert_ne!(machine.pid("again"), pid);
    assert!(!is_alive(pid), "the old process is still there");
    assert!(
        !is_alive(child),
        "a child of the old process is still there"
    );
    machine.ok(["stop", "again"]);
    machine.wait_until_empty();
}

#[test]
fn without_a_policy_a_service_fails_when_its_keeper_is_killed() {
    let machine = Machine::with(&[WEB]);
    machine.ok(["start", "web"]);
    let pid = machine.pid("web");
    kill(machine.only_keeper());
    machine.wait_for_state("web", "failed");
    wait_until("the process to end", || !is_alive(pid));
    machine.wait_until_empty();
    machine.ok(["start", "web"]);
}

#[test]
fn keeper_and_supervisor_killed_together_leave_nothing_that_runs_unseen() {
    let mut machine = Machine::with(&[AGAIN]);
    machine.ok(["start", "again"]);
    let child: u32 = machine.wait_for_log("again", "spawned ").parse().unwrap();
    let pid = machine.pid("again");
    let keeper = machine.only_keeper();
    machine.kill_daemon();
    kill(keeper);

    machine.boot();
    wait_until("the restart", || {
        machine.property("again", "NRestarts") == "1"
    });
    machine.wait_for_state("again", "active");
    assert_ne!(machine.pid("again"), pid);
    assert!(!is_alive(pid) && !is_alive(child));
    machine.ok(["stop", "again"]);
    machine.wait_until_empty();
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

#[test]
fn a_supervisor_killed_at_any_moment_of_a_storm_loses_nothing() {
    const ROUNDS: u64 = if cfg!(windows) { 10 } else { 20 };
    const NAMES: [&str; 4] = ["s@1", "s@2", "s@3", "s@4"];
    let mut machine = Machine::off();
    machine.unit(
        "s@.service",
        "[Service]\nExecStart={echo} act spawn serve\nRestart=on-failure\nRestartSec=20ms\nTimeoutStopSec=1s\n[Unit]\nStartLimitIntervalSec=0\n",
    );
    let mut dice = Dice(0x5eed_2026);
    for _ in 0..ROUNDS {
        machine.boot();
        for _ in 0..3 {
            let verb = ["start", "stop", "restart"][usize::try_from(dice.roll(3)).unwrap()];
            let unit = NAMES[usize::try_from(dice.roll(4)).unwrap()];
            machine.ok([verb, "--no-block", unit]);
        }
        // Not to let anything settle: to be killed at a moment that nobody chose.
        std::thread::sleep(Duration::from_millis(dice.roll(120)));
        machine.kill_daemon();
    }
    machine.boot();
    for unit in NAMES {
        machine.ok(["start", unit]);
        assert!(is_alive(machine.pid(unit)));
    }
    machine.ok(["stop", NAMES[0], NAMES[1], NAMES[2], NAMES[3]]);
    machine.wait_until_empty();
}
