//! One service through its life.

use std::time::Duration;

use insta::assert_snapshot;
use transom_host::process::Exit;

use super::Scenario;
use crate::control::protocol::{JobVerb, RequestError};
use crate::engine::Verdict;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_simple_service_starts_runs_and_stops() {
    let mut scenario = Scenario::new(&[("a.service", "[Service]; ExecStart=/bin/a")]);
    scenario.start("a.service");
    assert_snapshot!(scenario.transcript(), @r"
    a.service: run Main /bin/a
    a.service: job Done
    ");
    assert_snapshot!(scenario.states(), @"a.service active (running) success");
    scenario.stop("a.service");
    assert_snapshot!(scenario.transcript(), @r"
    a.service: SIGTERM to All
    a.service: SIGKILL to All
    a.service: closed
    a.service: job Done
    ");
    assert_snapshot!(scenario.states(), @"a.service inactive (dead) success");
}

#[test]
fn every_exec_line_runs_in_its_place() {
    let mut scenario = Scenario::new(&[(
        "a.service",
        "[Service]; ExecStartPre=/bin/pre; ExecStart=/bin/a; ExecStartPost=/bin/post; \
         ExecStop=/bin/stop; ExecStopPost=/bin/clean",
    )]);
    scenario.start("a.service");
    scenario.exit("a.service", Exit::Code(0)); // pre
    scenario.exit("a.service", Exit::Code(0)); // post
    scenario.stop("a.service");
    scenario.exit("a.service", Exit::Code(0)); // stop
    scenario.exit("a.service", Exit::Code(0)); // clean
    assert_snapshot!(scenario.transcript(), @r"
    a.service: run StartPre /bin/pre
    a.service: run Main /bin/a
    a.service: run StartPost /bin/post
    a.service: job Done
    a.service: run Stop /bin/stop
    a.service: SIGTERM to All
    a.service: run StopPost /bin/clean
    a.service: SIGKILL to All
    a.service: closed
    a.service: job Done
    ");
}

#[test]
fn a_failing_start_pre_fails_the_start_and_cleans_up() {
    let mut scenario = Scenario::new(&[(
        "a.service",
        "[Service]; ExecStartPre=/bin/pre; ExecStart=/bin/a; ExecStopPost=/bin/clean",
    )]);
    scenario.start("a.service");
    scenario.exit("a.service", Exit::Code(7));
    scenario.exit("a.service", Exit::Code(0));
    assert_snapshot!(scenario.transcript(), @r"
    a.service: run StartPre /bin/pre
    a.service: SIGTERM to All
    a.service: run StopPost /bin/clean
    a.service: SIGKILL to All
    a.service: closed
    a.service: job Failed: ExecStartPre= ended with exit code 7
    ");
    assert_snapshot!(scenario.states(), @"a.service failed (failed) exit-code");
}

#[test]
fn a_minus_sign_makes_a_failure_no_failure() {
    let mut scenario = Scenario::new(&[(
        "a.service",
        "[Service]; ExecStartPre=-/bin/pre; ExecStart=/bin/a",
    )]);
    scenario.start("a.service");
    scenario.exit("a.service", Exit::Code(7));
    assert_snapshot!(scenario.states(), @"a.service active (running) success");
}

#[test]
fn a_oneshot_is_started_when_all_its_commands_have_ended() {
    let mut scenario = Scenario::new(&[(
        "a.service",
        "[Service]; Type=oneshot; ExecStart=/bin/one; ExecStart=/bin/two; RemainAfterExit=yes",
    )]);
    scenario.start("a.service");
    scenario.exit("a.service", Exit::Code(0));
    assert_snapshot!(scenario.states(), @"a.service activating (start) success");
    scenario.exit("a.service", Exit::Code(0));
    assert_snapshot!(scenario.transcript(), @r"
    a.service: run Main /bin/one
    a.service: run Main /bin/two
    a.service: job Done
    ");
    assert_snapshot!(scenario.states(), @"a.service active (exited) success");
}

#[test]
fn a_service_that_says_ready_is_ready_and_not_before() {
    let mut scenario = Scenario::new(&[("a.service", "[Service]; Type=notify; ExecStart=/bin/a")]);
    scenario.start("a.service");
    assert_snapshot!(scenario.states(), @"a.service activating (start) success");
    scenario.notify("a.service", "STATUS=warming up");
    assert_snapshot!(scenario.states(), @"a.service activating (start) success");
    scenario.notify("a.service", "READY=1");
    assert_snapshot!(scenario.states(), @"a.service active (running) success");
}

#[test]
fn a_service_that_never_says_ready_times_out() {
    let mut scenario = Scenario::new(&[(
        "a.service",
        "[Service]; Type=notify; ExecStart=/bin/a; TimeoutStartSec=5",
    )]);
    scenario.start("a.service");
    scenario.wait(4 * SECOND);
    assert_snapshot!(scenario.states(), @"a.service activating (start) success");
    scenario.wait(SECOND);
    assert_snapshot!(scenario.transcript(), @r"
    a.service: run Main /bin/a
    a.service: SIGTERM to All
    a.service: SIGKILL to All
    a.service: closed
    a.service: job Timeout: it was not ready within TimeoutStartSec=
    ");
    assert_snapshot!(scenario.states(), @"a.service failed (failed) timeout");
}

#[test]
fn a_service_that_ends_before_it_is_ready_broke_the_protocol() {
    let mut scenario = Scenario::new(&[("a.service", "[Service]; Type=notify; ExecStart=/bin/a")]);
    scenario.start("a.service");
    scenario.exit("a.service", Exit::Code(0));
    assert_snapshot!(scenario.states(), @"a.service failed (failed) protocol");
}

#[test]
fn what_does_not_stop_when_asked_is_killed() {
    let mut scenario =
        Scenario::new(&[("a.service", "[Service]; ExecStart=/bin/a; TimeoutStopSec=3")]);
    scenario.obedient = false;
    scenario.start("a.service");
    scenario.stop("a.service");
    assert_snapshot!(scenario.states(), @"a.service deactivating (stop-sigterm) success");
    scenario.wait(3 * SECOND);
    assert_snapshot!(scenario.transcript(), @r"
    a.service: run Main /bin/a
    a.service: job Done
    a.service: SIGTERM to All
    a.service: SIGKILL to All
    a.service: SIGKILL to All
    a.service: closed
    a.service: job Done
    ");
    assert_snapshot!(scenario.states(), @"a.service failed (failed) timeout");
}

#[test]
fn a_crash_is_followed_by_a_restart_after_the_delay() {
    let mut scenario = Scenario::new(&[(
        "a.service",
        "[Service]; ExecStart=/bin/a; Restart=on-failure; RestartSec=2",
    )]);
    scenario.start("a.service");
    scenario.exit("a.service", Exit::Signal(11));
    assert_snapshot!(scenario.states(), @"a.service activating (auto-restart) signal");
    scenario.wait(SECOND);
    assert_snapshot!(scenario.states(), @"a.service activating (auto-restart) signal");
    scenario.wait(SECOND);
    assert_snapshot!(scenario.states(), @"a.service active (running) success");
}

#[test]
fn a_clean_exit_is_no_failure_and_a_stop_is_never_undone() {
    let unit = "[Service]; ExecStart=/bin/a; Restart=on-failure";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.start("a.service");
    scenario.exit("a.service", Exit::Code(0));
    assert_snapshot!(scenario.states(), @"a.service inactive (dead) success");

    let unit = "[Service]; ExecStart=/bin/a; Restart=always";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.start("a.service");
    scenario.stop("a.service");
    assert_snapshot!(scenario.states(), @"a.service inactive (dead) success");
}

#[test]
fn stopping_a_unit_that_waits_for_its_restart_ends_the_waiting() {
    let unit = "[Service]; ExecStart=/bin/a; Restart=always; RestartSec=10";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.start("a.service");
    scenario.exit("a.service", Exit::Code(1));
    scenario.stop("a.service");
    scenario.wait(20 * SECOND);
    assert_snapshot!(scenario.states(), @"a.service inactive (dead) exit-code");
}

#[test]
fn a_unit_that_crashes_too_often_is_left_down_until_it_is_forgiven() {
    let unit = "[Unit]; StartLimitIntervalSec=60; StartLimitBurst=3; \
                [Service]; ExecStart=/bin/a; Restart=always; RestartSec=1";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.start("a.service");
    for _ in 0..3 {
        scenario.exit("a.service", Exit::Code(1));
        scenario.wait(SECOND);
    }
    assert_snapshot!(scenario.states(), @"a.service failed (failed) start-limit-hit");
    scenario.transcript();
    scenario.start("a.service");
    assert_snapshot!(
        scenario.transcript(),
        @"a.service: job Failed: started too often in a short time"
    );
    let mut turn = scenario.engine.turn(scenario.now);
    turn.reset_failed(&super::name("a.service"));
    turn.finish();
    scenario.start("a.service");
    assert_snapshot!(scenario.states(), @"a.service active (running) success");
}

#[test]
fn conditions_skip_and_asserts_refuse() {
    let unit = "[Service]; ExecStart=/bin/a";
    let mut scenario = Scenario::new(&[("a.service", unit), ("b.service", unit)]);
    scenario.verdict("a.service", Verdict::Skip("ConditionPathExists=/x".into()));
    scenario.verdict("b.service", Verdict::Refuse("AssertPathExists=/x".into()));
    scenario.start("a.service");
    scenario.start("b.service");
    assert_snapshot!(scenario.transcript(), @r"
    a.service: job Done
    b.service: job Failed: AssertPathExists=/x is not met
    ");
    assert_snapshot!(scenario.states(), @r"
    a.service inactive (dead) success
    b.service failed (failed) assert
    ");
}

#[test]
fn an_exec_condition_skips_without_failing() {
    let unit = "[Service]; ExecCondition=/bin/ask; ExecStart=/bin/a";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.start("a.service");
    scenario.exit("a.service", Exit::Code(1));
    assert_snapshot!(scenario.transcript(), @r"
    a.service: run Condition /bin/ask
    a.service: SIGTERM to All
    a.service: SIGKILL to All
    a.service: closed
    a.service: job Done
    ");
    assert_snapshot!(scenario.states(), @"a.service inactive (dead) exec-condition");
}

#[test]
fn reload_runs_its_command_and_leaves_the_service_running() {
    let unit = "[Service]; ExecStart=/bin/a; ExecReload=/bin/hup";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.start("a.service");
    scenario.request(JobVerb::Reload, &["a.service"]).unwrap();
    assert_snapshot!(scenario.states(), @"a.service reloading (reload) success");
    scenario.exit("a.service", Exit::Code(1));
    assert_snapshot!(scenario.transcript(), @r"
    a.service: run Main /bin/a
    a.service: job Done
    a.service: run Reload /bin/hup
    a.service: job Failed: ExecReload= failed
    ");
    assert_snapshot!(scenario.states(), @"a.service active (running) success");
}

#[test]
fn reloading_what_cannot_be_reloaded_is_refused() {
    let unit = "[Service]; ExecStart=/bin/a";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    let down = scenario
        .request(JobVerb::Reload, &["a.service"])
        .unwrap_err();
    assert_eq!(
        down,
        RequestError::NotRunning {
            unit: "a.service".into()
        }
    );
    scenario.start("a.service");
    let error = scenario
        .request(JobVerb::Reload, &["a.service"])
        .unwrap_err();
    assert_snapshot!(error, @"unit a.service cannot be reloaded: its unit file has no ExecReload=");
}

#[test]
fn a_watchdog_that_is_not_fed_ends_the_service() {
    let unit = "[Service]; Type=notify; ExecStart=/bin/a; WatchdogSec=4; Restart=on-watchdog";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.start("a.service");
    scenario.notify("a.service", "READY=1");
    scenario.wait(3 * SECOND);
    scenario.notify("a.service", "WATCHDOG=1");
    scenario.wait(3 * SECOND);
    assert_snapshot!(scenario.states(), @"a.service active (running) success");
    scenario.wait(SECOND);
    assert_snapshot!(scenario.states(), @"a.service activating (auto-restart) watchdog");
}

#[test]
fn a_restart_is_a_stop_and_a_start_and_one_job() {
    let unit = "[Service]; ExecStart=/bin/a";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.start("a.service");
    scenario.transcript();
    scenario.request(JobVerb::Restart, &["a.service"]).unwrap();
    assert_snapshot!(scenario.transcript(), @r"
    a.service: SIGTERM to All
    a.service: SIGKILL to All
    a.service: closed
    a.service: run Main /bin/a
    a.service: job Done
    ");
}

#[test]
fn a_lost_keeper_is_a_failure_that_restart_repairs() {
    let unit = "[Service]; ExecStart=/bin/a; Restart=on-failure; RestartSec=1";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.start("a.service");
    scenario.lose_keeper("a.service");
    assert_snapshot!(scenario.states(), @"a.service activating (auto-restart) resources");
    scenario.wait(SECOND);
    assert_snapshot!(scenario.states(), @"a.service active (running) success");
}

#[test]
fn a_daemon_that_dies_while_a_service_starts_or_stops_goes_on_where_it_was() {
    let unit = "[Service]; ExecStartPre=/bin/pre; ExecStart=/bin/a";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.start("a.service");
    scenario.restart_daemon();
    scenario.exit("a.service", Exit::Code(0));
    assert_snapshot!(scenario.transcript(), @r"
    a.service: run StartPre /bin/pre
    daemon restarted
    a.service: run Main /bin/a
    a.service: job Done
    ");
    scenario.obedient = false;
    scenario.stop("a.service");
    scenario.obedient = true;
    scenario.restart_daemon();
    assert_snapshot!(scenario.transcript(), @r"
    a.service: SIGTERM to All
    daemon restarted
    a.service: SIGTERM to All
    a.service: SIGKILL to All
    a.service: closed
    a.service: job Done
    ");
}

#[test]
fn a_command_that_was_decided_but_never_told_is_told_after_a_restart() {
    let unit = "[Service]; ExecStart=/bin/a";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.start("a.service");
    scenario.transcript();
    scenario.runs.clear(); // As if the daemon had died before it gave the order.
    scenario.restart_daemon();
    assert_snapshot!(scenario.transcript(), @r"
    daemon restarted
    a.service: run Main /bin/a
    ");
}
