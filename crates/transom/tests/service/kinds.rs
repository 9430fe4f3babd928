//! Types of services and the commands around them. Invariant: a unit counts as started when its type
//! says so, neither earlier nor later.

use crate::harness::Machine;
use crate::processes::is_alive;

#[test]
fn a_oneshot_is_started_when_its_last_command_has_ended() {
    let machine = Machine::with(&[(
        "once.service",
        "[Service]\nType=oneshot\nExecStart={echo} act pause:200 say:first\nExecStart={echo} act say:second\n",
    )]);
    machine.ok(["start", "once"]);
    let log = machine.log("once");
    let (first, second) = (log.find("first").unwrap(), log.find("second").unwrap());
    assert!(first < second, "{log}");
    assert_eq!(
        machine.service(["is-active", "once"]).exits(3).stdout,
        "inactive\n"
    );
}

#[test]
fn a_oneshot_that_remains_is_active_until_it_is_stopped() {
    let machine = Machine::with(&[(
        "remains.service",
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={echo} act say:up\nExecStop={echo} act say:down\n",
    )]);
    machine.ok(["start", "remains"]);
    assert_eq!(machine.property("remains", "SubState"), "exited");
    machine.ok(["start", "remains"]);
    assert_eq!(machine.log("remains").matches(" up\n").count(), 1);
    machine.ok(["stop", "remains"]);
    assert_eq!(machine.log("remains").matches(" down\n").count(), 1);
    machine.service(["is-active", "remains"]).exits(3);
}

#[test]
fn a_oneshot_that_fails_fails_its_start() {
    let machine = Machine::with(&[(
        "once.service",
        "[Service]\nType=oneshot\nExecStart=-{echo} act exit:4\nExecStart={echo} act exit:5\nExecStart={echo} act say:never\n",
    )]);
    machine
        .service(["start", "once"])
        .exits(1)
        .says("once.service");
    assert_eq!(machine.property("once", "ExecMainStatus"), "5");
    assert!(!machine.log("once").contains("never"));
}

#[test]
fn a_notify_service_is_started_when_it_says_so() {
    // A file tells: what a service says goes into its log by another way than its word that it is ready.
    let machine = Machine::with(&[(
        "late.service",
        "[Service]\nType=notify\nExecStart={echo} act say:begun pause:500 \"write:{root}{/}now=yes\" ready serve\n",
    )]);
    machine.ok(["start", "late"]);
    assert!(
        machine.root().join("now").exists(),
        "started too early: {}",
        machine.log("late")
    );
    machine.service(["is-active", "late"]).exits(0);
}

#[test]
fn a_notify_service_that_never_says_so_fails_after_its_time() {
    let machine = Machine::with(&[(
        "never.service",
        "[Service]\nType=notify\nTimeoutStartSec=600ms\nTimeoutStopSec=1s\nExecStart={echo} act serve\n",
    )]);
    machine
        .service(["start", "never"])
        .exits(1)
        .says("never.service");
    assert_eq!(machine.property("never", "Result"), "timeout");
    assert_eq!(machine.property("never", "ActiveState"), "failed");
    machine.wait_until_empty();
}

#[test]
fn a_notify_service_that_ends_before_it_is_ready_fails() {
    let machine = Machine::with(&[(
        "ends.service",
        "[Service]\nType=notify\nExecStart={echo} act exit:0\n",
    )]);
    machine.service(["start", "ends"]).exits(1);
    assert_eq!(machine.property("ends", "Result"), "protocol");
}

#[test]
fn a_simple_service_is_not_told_where_to_notify() {
    let machine = Machine::with(&[(
        "plain.service",
        "[Service]\nExecStart={echo} act env:NOTIFY_SOCKET ready serve\n",
    )]);
    machine.ok(["start", "plain"]);
    assert_eq!(machine.wait_for_log("plain", "NOTIFY_SOCKET="), "(not set)");
    machine.wait_for_log("plain", "serving");
}

#[test]
fn a_failing_command_before_the_start_prevents_it() {
    let machine = Machine::with(&[(
        "pre.service",
        "[Service]\nExecStartPre={echo} act say:before exit:6\nExecStart={echo} act say:main serve\nExecStopPost={echo} act say:after\n",
    )]);
    machine
        .service(["start", "pre"])
        .exits(1)
        .says("pre.service");
    let log = machine.log("pre");
    assert!(log.contains("before") && !log.contains(" main\n"), "{log}");
    assert!(
        log.contains("after"),
        "ExecStopPost= runs after a failed start, too: {log}"
    );
    assert_eq!(machine.property("pre", "Result"), "exit-code");
}

#[test]
fn commands_around_the_service_run_in_their_order() {
    let machine = Machine::with(&[(
        "all.service",
        "[Service]\nExecStartPre={echo} act say:one\nExecStartPre=-{echo} act exit:1\nExecStart={echo} act serve\nExecStartPost={echo} act say:two\nExecStop={echo} act say:three\nExecStopPost={echo} act say:four env:SERVICE_RESULT\n",
    )]);
    machine.ok(["start", "all"]);
    machine.wait_for_log("all", "serving");
    machine.ok(["stop", "all"]);
    let log = machine.log("all");
    let places: Vec<_> = ["one", "two", "three", "four", "SERVICE_RESULT=success"]
        .iter()
        .map(|word| {
            log.find(&format!(" {word}\n"))
                .unwrap_or_else(|| panic!("no {word}: {log}"))
        })
        .collect();
    assert!(places.is_sorted(), "{log}");
}

#[test]
fn exec_stop_post_runs_after_a_crash_and_knows_why() {
    let machine = Machine::with(&[(
        "crash.service",
        "[Service]\nExecStart={echo} act exit:8\nExecStopPost={echo} act env:SERVICE_RESULT env:EXIT_STATUS\n",
    )]);
    machine.ok(["start", "crash"]);
    machine.wait_for_state("crash", "failed");
    let log = machine.log("crash");
    assert!(
        log.contains("SERVICE_RESULT=exit-code") && log.contains("EXIT_STATUS=8"),
        "{log}"
    );
}

#[test]
fn unmet_conditions_skip_a_unit_and_unmet_asserts_fail_it() {
    let machine = Machine::with(&[
        (
            "skip.service",
            "[Unit]\nConditionPathExists={root}{/}missing\n[Service]\nExecStart={echo} act say:ran serve\n",
        ),
        (
            "must.service",
            "[Unit]\nAssertPathExists={root}{/}missing\n[Service]\nExecStart={echo} act say:ran serve\n",
        ),
        (
            "runs.service",
            "[Unit]\nConditionPathExists=!{root}{/}missing\nConditionPathIsDirectory={root}\n[Service]\nExecStart={echo} act serve\n",
        ),
    ]);
    machine.ok(["start", "skip"]);
    machine
        .service(["status", "skip"])
        .exits(3)
        .says("ConditionPathExists=");
    assert_eq!(machine.property("skip", "ConditionResult"), "no");
    machine
        .service(["start", "must"])
        .exits(1)
        .says("AssertPathExists=");
    assert!(!machine.log("skip").contains(" ran\n") && !machine.log("must").contains(" ran\n"));
    machine.ok(["start", "runs"]);
    machine.service(["is-active", "runs"]).exits(0);

    // The condition is looked at again at each start.
    fs_err::write(machine.root().join("missing"), "").unwrap();
    machine.ok(["start", "skip"]);
    machine.service(["is-active", "skip"]).exits(0);
}

#[test]
fn a_service_that_runs_longer_than_it_may_is_ended() {
    let machine = Machine::with(&[(
        "long.service",
        "[Service]\nExecStart={echo} act serve\nRuntimeMaxSec=400ms\nTimeoutStopSec=2s\n",
    )]);
    machine.ok(["start", "long"]);
    machine.wait_for_state("long", "failed");
    assert_eq!(machine.property("long", "Result"), "timeout");
    machine.wait_until_empty();
}

#[test]
fn a_start_that_is_cancelled_by_a_stop_leaves_no_process() {
    let machine = Machine::with(&[(
        "slow.service",
        "[Service]\nExecStartPre={echo} act say:waiting spawn deaf\nExecStart={echo} act serve\nTimeoutStopSec=300ms\n",
    )]);
    machine.ok(["start", "--no-block", "slow"]);
    let child: u32 = machine.wait_for_log("slow", "spawned ").parse().unwrap();
    machine.ok(["stop", "slow"]);
    assert!(!is_alive(child));
    machine.wait_until_empty();
}
