//! Services around a switch, and the way back when the new generation is not healthy.

use std::sync::Mutex;
use std::time::Duration;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use transom_model::package::PackageId;
use transom_package::node::services::fake::FakeServices;
use transom_package::node::{
    CheckResult, Checks, Gate, NoChecks, NoServices, NodeError, Outcome, Switching, Verdict,
};

use crate::machine::Machine;

/// Checks that fail a number of times before they pass.
#[derive(Debug)]
struct FailingChecks(Mutex<usize>);

impl Checks for FailingChecks {
    fn run(&self, packages: &[(PackageId, Utf8PathBuf)], _: Duration) -> Vec<CheckResult> {
        let mut left = self.0.lock().expect("not poisoned");
        let verdict = if *left == 0 {
            Verdict::Passed
        } else {
            *left -= 1;
            Verdict::Failed {
                how: "told to".to_owned(),
            }
        };
        let (package, _) = packages.first().expect("a package");
        vec![CheckResult {
            package: package.clone(),
            name: "probe".to_owned(),
            verdict,
            output: String::new(),
        }]
    }
}

fn gated<'a>(services: &'a FakeServices, checks: &'a dyn Checks) -> Switching<'a> {
    Switching {
        now: Timestamp::UNIX_EPOCH,
        services,
        gate: Some(Gate {
            checks,
            limit: Duration::from_millis(200),
            pause: Duration::from_millis(5),
        }),
        rebuild: false,
    }
}

/// A machine whose packages have services that depend on each other.
fn machine() -> Machine {
    let machine = Machine::linux();
    for version in ["1", "2"] {
        machine.package(
            &format!("a--{version}"),
            &[
                ("bin/a", version),
                ("dcos.target.wants/a.service", "[Unit]\nAfter=b.service\n"),
            ],
        );
    }
    machine.package("b--1", &[("dcos.target.wants/b.service", "[Unit]\n")]);
    machine
}

#[test]
fn services_stop_and_start_in_the_order_of_their_dependencies() {
    let machine = machine();
    let services = FakeServices::default();
    let switching = gated(&services, &NoChecks);
    machine
        .activate_with(&["a--1", "b--1"], &switching)
        .expect("activated");
    machine
        .activate_with(&["a--2", "b--1"], &switching)
        .expect("activated");
    assert_eq!(
        services.calls(),
        [
            "stop",
            "reload",
            "start b.service a.service",
            "stop a.service b.service",
            "reload",
            "start b.service a.service",
        ]
    );
    let pointer = machine.node.pointer().expect("read").expect("a pointer");
    assert!(!pointer.is_on_trial());
    machine.assert_sound();
}

#[test]
fn a_service_that_never_gets_healthy_brings_the_previous_generation_back() {
    let machine = machine();
    let services = FakeServices::default();
    let switching = gated(&services, &NoChecks);
    machine
        .activate_with(&["b--1"], &switching)
        .expect("activated");
    services.never_healthy("a.service");
    let report = machine
        .activate_with(&["a--2", "b--1"], &switching)
        .expect("a failure of the gate is an outcome");
    assert_eq!(
        report.outcome,
        Outcome::RolledBack {
            failed: 2,
            reasons: vec!["a.service is not healthy".to_owned()]
        }
    );
    assert_eq!(report.active, Some(1));
    assert_eq!(machine.active_ids(), ["b--1"]);
    assert_eq!(services.running(), ["b.service"]);
    let generations = machine.node.generations().expect("listed");
    let failure = generations[1].failure.as_ref().expect("kept and marked");
    assert_eq!(failure.reasons, ["a.service is not healthy"]);
    assert_eq!(machine.names("units"), ["b.service", "dcos.target.wants"]);
    machine.assert_sound();
}

#[test]
fn the_first_generation_that_fails_leaves_nothing_active() {
    let machine = machine();
    let services = FakeServices::default();
    services.refuse("start");
    let switching = gated(&services, &NoChecks);
    let report = machine
        .activate_with(&["b--1"], &switching)
        .expect("rolled back");
    assert_eq!(report.active, None);
    assert!(matches!(
        report.outcome,
        Outcome::RolledBack { failed: 1, .. }
    ));
    assert!(machine.node.active().expect("read").is_none());
    assert!(machine.names("units").is_empty());
    assert!(!machine.is_there("root/bin"));
    machine.assert_sound();
}

#[test]
fn checks_may_fail_for_a_while_but_not_longer_than_the_limit() {
    let machine = machine();
    let services = FakeServices::default();
    let checks = FailingChecks(Mutex::new(3));
    let report = machine
        .activate_with(&["b--1"], &gated(&services, &checks))
        .expect("activated");
    assert!(matches!(report.outcome, Outcome::Activated { .. }));
    let checks = FailingChecks(Mutex::new(usize::MAX));
    let report = machine
        .activate_with(&["a--1", "b--1"], &gated(&services, &checks))
        .expect("rolled back");
    let Outcome::RolledBack { reasons, .. } = report.outcome else {
        panic!("not rolled back")
    };
    assert_eq!(reasons, ["check `probe` of `a--1` failed: told to"]);
    assert_eq!(machine.active_ids(), ["b--1"]);
}

#[test]
fn services_that_do_not_stop_keep_everything_as_it_was() {
    let machine = machine();
    let services = FakeServices::default();
    let switching = gated(&services, &NoChecks);
    machine
        .activate_with(&["b--1"], &switching)
        .expect("activated");
    services.refuse("stop");
    let error = machine.activate_with(&["a--1", "b--1"], &switching);
    assert!(matches!(error, Err(NodeError::NotStopped { .. })));
    assert_eq!(machine.active_ids(), ["b--1"]);
    assert_eq!(machine.names("root/generations"), ["1"]);
    machine.assert_sound();
}

#[test]
fn without_a_gate_services_that_do_not_start_are_an_error_and_the_switch_stays() {
    let machine = machine();
    let services = FakeServices::default();
    services.refuse("start");
    let switching = Switching {
        gate: None,
        ..gated(&services, &NoChecks)
    };
    let error = machine.activate_with(&["b--1"], &switching);
    assert!(matches!(
        error,
        Err(NodeError::NotStarted { generation: 1, .. })
    ));
    assert_eq!(machine.active_ids(), ["b--1"]);
    machine.assert_sound();
}

#[test]
fn a_person_rolls_back_and_forth_between_generations_that_are_whole() {
    for machine in Machine::each() {
        machine.package("a--1", &[("bin/a", "1")]);
        machine.package("a--2", &[("bin/a", "2")]);
        machine.activate(&["a--1"]).expect("activated");
        machine.activate(&["a--2"]).expect("activated");
        let rollback = |to| {
            let (session, _) = machine.node.begin(&NoServices).expect("begun");
            session.rollback(to, &Machine::switching())
        };
        assert_eq!(rollback(None).expect("back").active, Some(1));
        assert_eq!(machine.content(&machine.active_path("bin/a")), "1");
        assert_eq!(rollback(None).expect("and forth").active, Some(2));
        assert_eq!(rollback(Some(1)).expect("by number").active, Some(1));
        assert!(matches!(
            rollback(Some(1)).expect("nothing to do").outcome,
            Outcome::Unchanged { generation: 1 }
        ));
        assert!(matches!(
            rollback(Some(7)),
            Err(NodeError::NoSuchGeneration { number: 7 })
        ));
        let broken = machine.path("root/generations/2/bin/a");
        machine.files.remove_file(&broken).expect("removed");
        assert!(matches!(
            rollback(Some(2)),
            Err(NodeError::IncompleteGeneration { number: 2, .. })
        ));
        machine.assert_sound();
    }
}
