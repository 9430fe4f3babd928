//! The report on machines that a test made up.

use jiff::Timestamp;
use transom_host::machine::fake::FakeMachine;
use transom_host::machine::features::{Area, Finding, Purpose, State};
use transom_model::Os;

use super::report::Report;
use crate::failure::{Exit, Failure};
use crate::output::{Document as _, Shown};

fn finding(id: &str, area: Area, state: State) -> Finding {
    Finding {
        id: id.to_owned(),
        area,
        what: format!("the {id}"),
        state,
        detail: "as it was seen".to_owned(),
        way_forward: (state != State::Ok).then(|| format!("mend the {id}")),
        needed_for: vec![Purpose::Containers, Purpose::PodNetwork],
    }
}

fn findings() -> Vec<Finding> {
    vec![
        finding("clock", Area::System, State::Ok),
        finding("cgroups", Area::Kernel, State::Warning),
        finding("overlay", Area::Kernel, State::Ok),
        finding("forwarding", Area::Network, State::Missing),
        finding("driver", Area::Network, State::Unknown),
    ]
}

fn report(os: Os, findings: Vec<Finding>) -> Report {
    Report::new(&FakeMachine::new(os), findings)
}

fn plain(report: &Report, wide: bool, unicode: bool) -> String {
    let shown = Shown {
        unicode,
        ..Shown::plain(Timestamp::UNIX_EPOCH)
    };
    anstream::adapter::strip_str(&report.text(wide, shown)).to_string()
}

#[test]
fn a_report_names_what_is_wrong_and_the_way_forward() {
    insta::assert_snapshot!(plain(&report(Os::Linux, findings()), false, false), @"
    fake: Fake linux, 6.1.0, amd64, 2 processors, 4096 MiB memory

    System
      [ok] the clock: as it was seen

    Kernel
      [!!] the cgroups: as it was seen
           needed for: containers, pod-network
           way forward: mend the cgroups
      [ok] the overlay: as it was seen

    Network
      [--] the forwarding: as it was seen
           needed for: containers, pod-network
           way forward: mend the forwarding
      [??] the driver: as it was seen
           needed for: containers, pod-network
           way forward: mend the driver

    2 ok, 1 to look at, 1 missing, 1 unknown
    ");
}

#[test]
fn a_terminal_that_can_gets_signs() {
    insta::assert_snapshot!(plain(&report(Os::Windows, findings()), false, true), @"
    fake: Fake windows, 10.0.20348.2113, amd64, 2 processors, 4096 MiB memory

    System
      ✓ the clock: as it was seen

    Kernel
      ! the cgroups: as it was seen
        needed for: containers, pod-network
        way forward: mend the cgroups
      ✓ the overlay: as it was seen

    Network
      ✗ the forwarding: as it was seen
        needed for: containers, pod-network
        way forward: mend the forwarding
      ? the driver: as it was seen
        needed for: containers, pod-network
        way forward: mend the driver

    2 ok, 1 to look at, 1 missing, 1 unknown
    ");
}

#[test]
fn a_wide_report_says_what_everything_is_needed_for() {
    let limited = report(Os::Linux, findings()).limited_to(&["kernel".to_owned()]);
    insta::assert_snapshot!(plain(&limited.unwrap(), true, true), @"
    fake: Fake linux, 6.1.0, amd64, 2 processors, 4096 MiB memory

    Kernel
      ! the cgroups: as it was seen
        id: cgroups
        needed for: containers, pod-network
        way forward: mend the cgroups
      ✓ the overlay: as it was seen
        id: overlay
        needed for: containers, pod-network

    1 ok, 1 to look at, 0 missing, 0 unknown
    ");
}

#[test]
fn a_report_for_programs_has_findings_and_counts() {
    let report = report(Os::Windows, findings());
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["machine"]["system"]["os"], "windows");
    assert_eq!(json["findings"][3]["state"], "missing");
    assert_eq!(json["findings"][3]["area"], "network");
    insta::assert_snapshot!(json["counts"], @r#"{"missing":1,"ok":2,"unknown":1,"warning":1}"#);
    assert_eq!(
        report.names(),
        ["clock", "cgroups", "overlay", "forwarding", "driver"]
    );
}

#[test]
fn an_unknown_area_is_refused_with_the_known_ones() {
    let error = report(Os::Linux, findings())
        .limited_to(&["kernel".to_owned(), "netwrok".to_owned()])
        .unwrap_err();
    let failure = Failure::from_error(&error, Os::Linux);
    assert_eq!(failure.message, "there is no area `netwrok`");
    assert_eq!(failure.hint.as_deref(), Some("did you mean `network`?"));
    assert_eq!(failure.exit, Exit::Usage);
}

#[test]
fn only_a_strict_report_fails_and_only_for_what_is_wrong() {
    let all = report(Os::Linux, findings());
    assert_eq!(all.exit(false), Exit::Success);
    assert_eq!(all.exit(true), Exit::Failure);
    let unknown = vec![
        finding("a", Area::System, State::Ok),
        finding("b", Area::Ports, State::Unknown),
    ];
    assert_eq!(report(Os::Linux, unknown).exit(true), Exit::Success);
    let limited = report(Os::Linux, findings()).limited_to(&["system".to_owned()]);
    assert_eq!(limited.unwrap().exit(true), Exit::Success);
}

#[test]
fn a_machine_where_all_is_well_says_so() {
    let well = report(Os::Linux, vec![finding("a", Area::System, State::Ok)]);
    assert!(plain(&well, false, false).ends_with("\nAll is well: 1 ok\n"));
}
