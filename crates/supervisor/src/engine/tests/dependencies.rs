//! Several units: order, need, conflict, cycles.

use std::time::Duration;

use insta::assert_snapshot;
use transom_host::process::Exit;

use super::Scenario;
use crate::control::protocol::JobVerb;

#[test]
fn what_is_needed_comes_first_and_goes_last() {
    let mut scenario = Scenario::new(&[
        ("db.service", "[Service]; ExecStart=/bin/db"),
        (
            "web.service",
            "[Unit]; Requires=db.service; After=db.service; [Service]; ExecStart=/bin/web",
        ),
    ]);
    scenario.start("web.service");
    scenario.stop("db.service");
    assert_snapshot!(scenario.transcript(), @r"
    db.service: run Main /bin/db
    db.service: job Done
    web.service: run Main /bin/web
    web.service: job Done
    web.service: SIGTERM to All
    web.service: SIGKILL to All
    web.service: closed
    web.service: job Done
    db.service: SIGTERM to All
    db.service: SIGKILL to All
    db.service: closed
    db.service: job Done
    ");
}

#[test]
fn units_without_order_start_together() {
    let unit = "[Service]; Type=notify; ExecStart=/bin/x";
    let target = "[Unit]; Wants=a.service b.service";
    let mut scenario = Scenario::new(&[
        ("a.service", unit),
        ("b.service", unit),
        ("all.target", target),
    ]);
    scenario.start("all.target");
    assert_snapshot!(scenario.states(), @r"
    a.service activating (start) success
    all.target active (active) success
    b.service activating (start) success
    ");
}

#[test]
fn a_unit_whose_requirement_fails_does_not_start_but_a_wish_is_only_a_wish() {
    let bad = "[Service]; Type=oneshot; ExecStart=/bin/bad";
    let needs = "[Unit]; Requires=bad.service; After=bad.service; [Service]; ExecStart=/bin/x";
    let wishes = "[Unit]; Wants=bad.service; After=bad.service; [Service]; ExecStart=/bin/y";
    let mut scenario = Scenario::new(&[
        ("bad.service", bad),
        ("needs.service", needs),
        ("wishes.service", wishes),
    ]);
    scenario
        .request(JobVerb::Start, &["needs.service", "wishes.service"])
        .unwrap();
    scenario.exit("bad.service", Exit::Code(1));
    assert_snapshot!(scenario.transcript(), @r"
    bad.service: run Main /bin/bad
    bad.service: SIGTERM to All
    bad.service: SIGKILL to All
    bad.service: closed
    bad.service: job Failed: the main process ended with exit code 1
    needs.service: job Dependency: bad.service, which it needs, did not start
    wishes.service: run Main /bin/y
    wishes.service: job Done
    ");
}

#[test]
fn a_cycle_is_named_and_nothing_is_started() {
    let mut scenario = Scenario::new(&[
        (
            "a.service",
            "[Unit]; Requires=b.service; After=b.service; [Service]; ExecStart=/a",
        ),
        (
            "b.service",
            "[Unit]; Requires=c.service; After=c.service; [Service]; ExecStart=/b",
        ),
        (
            "c.service",
            "[Unit]; After=a.service; [Service]; ExecStart=/c",
        ),
    ]);
    let error = scenario
        .request(JobVerb::Start, &["a.service"])
        .unwrap_err();
    assert_snapshot!(
        error,
        @"ordering cycle: c.service -> b.service -> a.service -> c.service"
    );
    assert_snapshot!(scenario.transcript(), @"");
}

#[test]
fn a_cycle_through_a_wish_is_broken_there() {
    let mut scenario = Scenario::new(&[
        (
            "a.service",
            "[Unit]; Wants=b.service; After=b.service; [Service]; ExecStart=/a",
        ),
        (
            "b.service",
            "[Unit]; After=a.service; [Service]; ExecStart=/b",
        ),
    ]);
    scenario.start("a.service");
    assert_snapshot!(scenario.transcript(), @r"
    warning: b.service is left out, to break the ordering cycle b.service -> a.service -> b.service
    a.service: run Main /a
    a.service: job Done
    ");
}

#[test]
fn a_conflict_stops_the_other_first() {
    let mut scenario = Scenario::new(&[
        ("a.service", "[Service]; ExecStart=/bin/a"),
        (
            "b.service",
            "[Unit]; Conflicts=a.service; After=a.service; [Service]; ExecStart=/bin/b",
        ),
    ]);
    scenario.start("a.service");
    scenario.start("b.service");
    assert_snapshot!(scenario.states(), @r"
    a.service inactive (dead) success
    b.service active (running) success
    ");
    scenario.start("a.service");
    assert_snapshot!(scenario.states(), @r"
    a.service active (running) success
    b.service inactive (dead) success
    ");
    let error = scenario
        .request(JobVerb::Start, &["a.service", "b.service"])
        .unwrap_err();
    assert_snapshot!(error, @"unit a.service cannot be both started and stopped: the units asked for conflict with each other");
}

#[test]
fn what_is_bound_follows_a_crash_and_what_only_requires_does_not() {
    let mut scenario = Scenario::new(&[
        ("base.service", "[Service]; ExecStart=/bin/base"),
        (
            "bound.service",
            "[Unit]; BindsTo=base.service; After=base.service; [Service]; ExecStart=/bin/bound",
        ),
        (
            "needs.service",
            "[Unit]; Requires=base.service; After=base.service; [Service]; ExecStart=/bin/needs",
        ),
    ]);
    scenario
        .request(JobVerb::Start, &["bound.service", "needs.service"])
        .unwrap();
    scenario.exit("base.service", Exit::Signal(9));
    assert_snapshot!(scenario.states(), @r"
    base.service failed (failed) signal
    bound.service inactive (dead) success
    needs.service active (running) success
    ");
}

#[test]
fn a_part_is_stopped_and_restarted_with_the_whole_but_not_started() {
    let part = "[Unit]; PartOf=whole.target; [Service]; ExecStart=/bin/part";
    let mut scenario = Scenario::new(&[("whole.target", "[Unit]"), ("part.service", part)]);
    scenario.start("whole.target");
    assert_snapshot!(scenario.states(), @"whole.target active (active) success");
    scenario.start("part.service");
    scenario.transcript();
    scenario
        .request(JobVerb::Restart, &["whole.target"])
        .unwrap();
    assert_snapshot!(scenario.transcript(), @r"
    part.service: SIGTERM to All
    part.service: SIGKILL to All
    part.service: closed
    part.service: run Main /bin/part
    part.service: job Done
    whole.target: job Done
    ");
    scenario.stop("whole.target");
    assert_snapshot!(scenario.states(), @r"
    part.service inactive (dead) success
    whole.target inactive (dead) success
    ");
}

#[test]
fn a_failure_starts_what_is_there_for_it() {
    let mut scenario = Scenario::new(&[
        (
            "a.service",
            "[Unit]; OnFailure=mail.service; [Service]; ExecStart=/bin/a",
        ),
        (
            "mail.service",
            "[Service]; Type=oneshot; ExecStart=/bin/mail",
        ),
    ]);
    scenario.start("a.service");
    scenario.transcript();
    scenario.exit("a.service", Exit::Code(2));
    assert!(
        scenario
            .transcript()
            .contains("mail.service: run Main /bin/mail")
    );
}

#[test]
fn what_is_needed_no_more_goes_down_if_it_says_so() {
    let mut scenario = Scenario::new(&[
        (
            "a.service",
            "[Unit]; Requires=helper.service; [Service]; ExecStart=/bin/a",
        ),
        (
            "helper.service",
            "[Unit]; StopWhenUnneeded=yes; [Service]; ExecStart=/bin/helper",
        ),
    ]);
    scenario.start("a.service");
    scenario.stop("a.service");
    assert_snapshot!(scenario.states(), @r"
    a.service inactive (dead) success
    helper.service inactive (dead) success
    ");
}

#[test]
fn a_second_request_joins_or_replaces_the_first() {
    let unit = "[Service]; Type=notify; ExecStart=/bin/a; TimeoutStopSec=1";
    let mut scenario = Scenario::new(&[("a.service", unit)]);
    scenario.obedient = false;
    scenario.start("a.service");
    scenario.start("a.service");
    scenario.stop("a.service");
    scenario.start("a.service");
    assert_snapshot!(scenario.transcript(), @r"
    a.service: run Main /bin/a
    a.service: job Canceled
    a.service: job Canceled
    a.service: SIGTERM to All
    a.service: job Canceled
    ");
    scenario.wait(Duration::from_secs(1));
    scenario.notify("a.service", "READY=1");
    assert_snapshot!(scenario.transcript(), @r"
    a.service: SIGKILL to All
    a.service: SIGKILL to All
    a.service: closed
    a.service: run Main /bin/a
    a.service: job Done
    ");
}

#[test]
fn unknown_units_are_named_and_known_ones_untouched() {
    let mut scenario = Scenario::new(&[
        (
            "a.service",
            "[Unit]; Requires=ghost.service; [Service]; ExecStart=/bin/a",
        ),
        (
            "b.service",
            "[Unit]; Wants=ghost.service; [Service]; ExecStart=/bin/b",
        ),
    ]);
    let error = scenario
        .request(JobVerb::Start, &["a.service"])
        .unwrap_err();
    assert_snapshot!(error, @"unit ghost.service not found");
    scenario.start("b.service");
    assert_snapshot!(scenario.states(), @"b.service active (running) success");
}
