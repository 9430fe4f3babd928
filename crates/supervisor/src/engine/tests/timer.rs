//! Timers against both clocks.

use std::time::Duration;

use insta::assert_snapshot;
use transom_host::process::Exit;

use super::{Scenario, name};

const JOB: &str = "[Service]; Type=oneshot; ExecStart=/bin/job";

fn fired(scenario: &mut Scenario) -> usize {
    scenario.transcript().matches("run Main /bin/job").count()
}

fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3600)
}

#[test]
fn a_calendar_timer_fires_at_its_time_and_again_the_next_day() {
    let timer = "[Timer]; OnCalendar=*-*-* 18:30:00";
    let mut scenario = Scenario::new(&[("job.service", JOB), ("job.timer", timer)]);
    scenario.start("job.timer");
    let next = scenario
        .engine
        .status(&name("job.timer"))
        .timer
        .unwrap()
        .next
        .unwrap();
    assert_eq!(next.to_string(), "2026-03-01T18:30:00Z");
    scenario.wait(hours(6));
    assert_eq!(fired(&mut scenario), 0);
    scenario.wait(hours(1));
    assert_eq!(fired(&mut scenario), 1);
    assert_snapshot!(scenario.states(), @r"
    job.service activating (start) success
    job.timer active (running) success
    ");
    scenario.exit("job.service", Exit::Code(0));
    let next = scenario
        .engine
        .status(&name("job.timer"))
        .timer
        .unwrap()
        .next
        .unwrap();
    assert_eq!(next.to_string(), "2026-03-02T18:30:00Z");
}

#[test]
fn a_span_is_measured_from_the_end_of_the_last_run() {
    let timer = "[Timer]; OnActiveSec=10; OnUnitInactiveSec=60";
    let mut scenario = Scenario::new(&[("job.service", JOB), ("job.timer", timer)]);
    scenario.start("job.timer");
    scenario.wait(Duration::from_secs(10));
    assert_eq!(fired(&mut scenario), 1);
    scenario.wait(Duration::from_secs(100));
    assert_eq!(fired(&mut scenario), 0, "it is still running");
    scenario.exit("job.service", Exit::Code(1));
    scenario.wait(Duration::from_secs(59));
    assert_eq!(fired(&mut scenario), 0);
    scenario.wait(Duration::from_secs(1));
    assert_eq!(fired(&mut scenario), 1);
}

#[test]
fn a_span_since_boot_that_is_over_already_fires_at_once_and_once() {
    let timer = "[Timer]; OnBootSec=30";
    let mut scenario = Scenario::new(&[("job.service", JOB), ("job.timer", timer)]);
    scenario.start("job.timer");
    scenario.wait(Duration::ZERO);
    assert_eq!(fired(&mut scenario), 1);
    scenario.exit("job.service", Exit::Code(0));
    scenario.wait(hours(1));
    assert_eq!(fired(&mut scenario), 0);
    assert_snapshot!(scenario.states(), @r"
    job.service inactive (dead) success
    job.timer active (elapsed) success
    ");
}

#[test]
fn setting_the_clock_moves_calendar_timers_and_leaves_spans_alone() {
    let timer = "[Timer]; OnCalendar=*-*-* 18:30:00";
    let mut scenario = Scenario::new(&[("job.service", JOB), ("job.timer", timer)]);
    scenario.start("job.timer");
    let idle = scenario.engine.idle_for(scenario.now).unwrap();
    assert!(
        idle <= Duration::from_mins(1),
        "the wall clock is looked at again soon"
    );
    scenario.now.wall = "2026-03-01T18:31:00Z".parse().unwrap();
    scenario.wait(Duration::ZERO);
    assert_eq!(fired(&mut scenario), 1);
}

#[test]
fn a_stopped_timer_does_not_fire() {
    let timer = "[Timer]; OnActiveSec=10";
    let mut scenario = Scenario::new(&[("job.service", JOB), ("job.timer", timer)]);
    scenario.start("job.timer");
    scenario.stop("job.timer");
    scenario.wait(hours(1));
    assert_eq!(fired(&mut scenario), 0);
    assert_eq!(scenario.engine.idle_for(scenario.now), None);
}
