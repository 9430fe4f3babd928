//! Timers. Invariant: a timer starts its unit, and says when it will and when it did.

use crate::harness::{Machine, wait_until};

const TICK: (&str, &str) = (
    "tick.service",
    "[Service]\nType=oneshot\nExecStart={echo} act say:ticked\n",
);

#[test]
fn a_timer_starts_its_unit_after_its_time() {
    let machine = Machine::with(&[TICK, ("tick.timer", "[Timer]\nOnActiveSec=1\n")]);
    machine.ok(["start", "tick.timer"]);
    machine.service(["is-active", "tick.timer"]).exits(0);
    machine.wait_for_log("tick", "ticked");
    let waited = machine
        .time_of("tick", "ticked")
        .duration_since(machine.time_of("tick.timer", "Started tick.timer."));
    assert!(waited.as_millis() >= 950, "it fired after {waited:?}");
    wait_until("the time it fired to be told", || {
        let timers = machine.service(["list-timers", "-o", "json"]);
        timers.code == 0 && timers.json()[0]["last"].is_string()
    });
}

#[test]
fn a_timer_that_repeats_fires_again_and_stops_when_stopped() {
    let machine = Machine::with(&[
        TICK,
        (
            "again.timer",
            "[Timer]\nOnActiveSec=100ms\nOnUnitActiveSec=200ms\nAccuracySec=1ms\nUnit=tick.service\n",
        ),
    ]);
    machine.ok(["start", "again.timer"]);
    wait_until("three ticks", || {
        machine.log("tick").matches(" ticked\n").count() >= 3
    });
    machine.ok(["stop", "again.timer"]);
    machine.service(["is-active", "again.timer"]).exits(3);
    assert_eq!(
        machine.service(["list-timers", "-o", "json"]).json(),
        serde_json::json!([])
    );
}

#[test]
fn a_calendar_timer_says_when_it_fires_next() {
    let machine = Machine::with(&[
        TICK,
        (
            "night.timer",
            "[Timer]\nOnCalendar=*-*-* 03:00:00 UTC\nUnit=tick.service\n[Install]\nWantedBy=timers.target\n",
        ),
    ]);
    machine.ok(["enable", "--now", "night.timer"]);
    let timers = machine
        .service(["list-timers", "-o", "json"])
        .exits(0)
        .json();
    assert_eq!(timers[0]["unit"], "night.timer");
    assert_eq!(timers[0]["activates"], "tick.service");
    let next = timers[0]["next"].as_str().unwrap();
    assert!(next.contains("T03:00:00"), "{next}");
    machine
        .service(["list-timers"])
        .exits(0)
        .says("night.timer")
        .says("NEXT");
    machine
        .service(["status", "night.timer"])
        .exits(0)
        .says("tick.service");
}

#[test]
fn a_timer_keeps_its_time_over_a_killed_supervisor() {
    let mut machine = Machine::with(&[TICK, ("tick.timer", "[Timer]\nOnActiveSec=1h\n")]);
    machine.ok(["start", "tick.timer"]);
    let next = |machine: &Machine| {
        let timers = machine
            .service(["list-timers", "-o", "json"])
            .exits(0)
            .json();
        timers[0]["next"]
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
    };
    let before = next(&machine);
    machine.kill_daemon();
    machine.boot();
    machine.service(["is-active", "tick.timer"]).exits(0);
    let moved = next(&machine).duration_since(before).abs();
    assert!(moved.as_millis() < 500, "the timer moved by {moved:?}");
}
