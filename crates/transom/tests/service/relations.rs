//! Units that need, exclude or follow one another. Invariant: order is only promised where After= or
//! Before= ask for it.

use crate::harness::{Machine, wait_until};
use crate::processes::kill;

#[test]
fn a_unit_starts_after_what_it_comes_after_and_stops_before_it() {
    let machine = Machine::with(&[
        (
            "second.service",
            "[Unit]\nRequires=first.service\nAfter=first.service\n[Service]\nExecStart={echo} act say:begun serve\n",
        ),
        (
            "first.service",
            "[Service]\nType=notify\nExecStart={echo} act pause:300 say:up ready serve\n",
        ),
    ]);
    machine.ok(["start", "second"]);
    machine.wait_for_log("second", "serving");
    machine.wait_for_log("first", "serving");
    assert!(machine.time_of("first", "up") <= machine.time_of("second", "begun"));
    // Both stop, the one that needs the other first.
    machine.ok(["stop", "first"]);
    machine.service(["is-active", "second"]).exits(3);
    assert!(machine.time_of("second", "stopping") <= machine.time_of("first", "stopping"));
}

#[test]
fn units_without_an_order_start_at_the_same_time() {
    let slow = "[Service]\nType=oneshot\nExecStart={echo} act say:begun pause:5000 say:done\n";
    let machine = Machine::with(&[
        ("left.service", slow),
        ("right.service", slow),
        (
            "both.target",
            "[Unit]\nWants=left.service right.service\nAfter=left.service right.service\n",
        ),
    ]);
    machine.ok(["start", "both.target"]);
    let begun = machine
        .time_of("left", "begun")
        .max(machine.time_of("right", "begun"));
    let done = machine
        .time_of("left", "done")
        .min(machine.time_of("right", "done"));
    assert!(begun < done, "one waited for the other");
    machine.service(["is-active", "both.target"]).exits(0);
}

#[test]
fn a_failed_requirement_fails_the_unit_and_a_failed_wish_does_not() {
    let machine = Machine::with(&[
        (
            "bad.service",
            "[Service]\nType=oneshot\nExecStart={echo} act exit:1\n",
        ),
        (
            "needs.service",
            "[Unit]\nRequires=bad.service\nAfter=bad.service\n[Service]\nExecStart={echo} act say:ran serve\n",
        ),
        (
            "likes.service",
            "[Unit]\nWants=bad.service missing.service\nAfter=bad.service\n[Service]\nExecStart={echo} act serve\n",
        ),
        (
            "lacks.service",
            "[Unit]\nRequires=missing.service\n[Service]\nExecStart={echo} act serve\n",
        ),
    ]);
    machine
        .service(["start", "needs"])
        .exits(1)
        .says("needs.service");
    assert!(!machine.log("needs").contains(" ran\n"));
    machine.ok(["start", "likes"]);
    machine.service(["is-active", "likes"]).exits(0);
    machine
        .service(["start", "lacks"])
        .exits(5)
        .says("missing.service");
}

#[test]
fn a_conflicting_unit_is_stopped_by_the_start() {
    let machine = Machine::with(&[
        ("day.service", "[Service]\nExecStart={echo} act serve\n"),
        (
            "night.service",
            "[Unit]\nConflicts=day.service\n[Service]\nExecStart={echo} act serve\n",
        ),
    ]);
    machine.ok(["start", "day"]);
    machine.ok(["start", "night"]);
    machine.wait_for_state("day", "inactive");
    machine.ok(["start", "day"]);
    machine.wait_for_state("night", "inactive");
    machine.service(["is-active", "day"]).exits(0);
}

#[test]
fn a_bound_unit_goes_when_the_other_crashes_and_a_requiring_one_stays() {
    let machine = Machine::with(&[
        ("base.service", "[Service]\nExecStart={echo} act serve\n"),
        (
            "bound.service",
            "[Unit]\nBindsTo=base.service\nAfter=base.service\n[Service]\nExecStart={echo} act serve\n",
        ),
        (
            "part.service",
            "[Unit]\nPartOf=base.service\nAfter=base.service\n[Service]\nExecStart={echo} act serve\n",
        ),
    ]);
    machine.ok(["start", "bound", "part"]);
    let part = machine.pid("part");
    machine.ok(["restart", "base"]);
    wait_until("the part to be restarted", || {
        machine.property("part", "MainPID") != part.to_string()
            && machine.property("part", "ActiveState") == "active"
    });
    machine.ok(["start", "bound"]);
    kill(machine.pid("base"));
    machine.wait_for_state("bound", "inactive");
    machine.wait_for_state("base", "failed");
    machine.service(["is-active", "part"]).exits(0);
}

#[test]
fn a_cycle_is_named_and_nothing_is_started() {
    let machine = Machine::with(&[
        (
            "egg.service",
            "[Unit]\nRequires=hen.service\nAfter=hen.service\n[Service]\nExecStart={echo} act serve\n",
        ),
        (
            "hen.service",
            "[Unit]\nRequires=egg.service\nAfter=egg.service\n[Service]\nExecStart={echo} act serve\n",
        ),
    ]);
    machine
        .service(["start", "egg"])
        .exits(1)
        .says("cycle")
        .says("egg.service")
        .says("hen.service");
    machine.service(["is-active", "egg", "hen"]).exits(3);
}

#[test]
fn an_upheld_unit_is_brought_back() {
    let machine = Machine::with(&[
        ("held.service", "[Service]\nExecStart={echo} act serve\n"),
        (
            "holds.service",
            "[Unit]\nUpholds=held.service\n[Service]\nExecStart={echo} act serve\n",
        ),
    ]);
    machine.ok(["start", "holds"]);
    machine.wait_for_state("held", "active");
    let pid = machine.pid("held");
    kill(pid);
    wait_until("another process", || {
        machine.property("held", "ActiveState") == "active"
            && machine.property("held", "MainPID") != pid.to_string()
    });
}
