//! Walks on imaginary machines of both systems: the machine loses power before every step, in both ways
//! a file system may do that, and once more before every step of the recovery.

use transom_host::files::fake::FakeFiles;
use transom_host::files::fault::{Place, Plan, arm_thread};
use transom_model::os::Os;
use transom_package::node::NoServices;

use super::scenario::{Scenario, Snapshot};
use crate::machine::Machine;

type Crash = fn(&FakeFiles);

const CRASHES: [(&str, Crash); 2] = [
    ("losing names", FakeFiles::crash),
    ("keeping names", FakeFiles::crash_keeping_names),
];

fn machine(os: Os) -> Machine {
    match os {
        Os::Linux => Machine::linux(),
        Os::Windows => Machine::windows(),
    }
}

fn fake(machine: &Machine) -> &FakeFiles {
    machine.fake.as_ref().expect("an imaginary machine")
}

/// A node where the operation begins, and how it is before and after.
struct Walk {
    scenario: Scenario,
    prepared: Machine,
    old: Snapshot,
    new: Snapshot,
}

impl Walk {
    fn new(os: Os, scenario: Scenario) -> Self {
        let prepared = machine(os);
        scenario.prepare(&prepared);
        let old = Snapshot::of(&prepared);
        let machine = prepared.duplicate();
        scenario.act(&machine).expect("nothing is in its way");
        let new = Snapshot::of(&machine);
        assert_ne!(old, new, "{scenario:?} does something");
        Self {
            scenario,
            prepared,
            old,
            new,
        }
    }

    /// Stops the operation at a point. `None`: it has fewer.
    fn stopped(&self, point: u64, crash: Crash) -> Option<Machine> {
        let machine = self.prepared.duplicate();
        let halt = arm_thread(Plan::Halt(Place::Nth(point)));
        let done = self.scenario.act(&machine);
        drop(halt);
        if done.is_ok() {
            return None;
        }
        crash(fake(&machine));
        Some(machine)
    }

    #[track_caller]
    fn judge(&self, machine: &Machine, at: &str) {
        self.scenario.judge(machine, &self.old, &self.new, at);
    }
}

/// Loses power at each point of each operation.
fn walk_all(os: Os) {
    for scenario in Scenario::ALL {
        let walk = Walk::new(os, scenario);
        for (kind, crash) in CRASHES {
            let mut points = 0;
            while let Some(machine) = walk.stopped(points + 1, crash) {
                points += 1;
                machine.recover();
                let at = format!("on {os}, {kind}, at point {points}");
                walk.judge(&machine, &at);
                assert!(machine.recover().is_clean(), "{scenario:?} {at}");
            }
            super::say(&format!("{os} {scenario:?}, {kind}: {points} points"));
            assert!(points >= 5, "{scenario:?} has {points} points");
        }
    }
}

#[test]
fn an_operation_on_linux_that_loses_power_at_any_point_is_done_or_was_never_begun() {
    walk_all(Os::Linux);
}

#[test]
fn an_operation_on_windows_that_loses_power_at_any_point_is_done_or_was_never_begun() {
    walk_all(Os::Windows);
}

/// Every point of the recovery, for every third point of the operation: all pairs take minutes.
#[test]
fn a_recovery_that_loses_power_at_any_point_is_recovered_from() {
    let mut tried = 0;
    for scenario in [
        Scenario::Activation,
        Scenario::Trial,
        Scenario::Collection,
        Scenario::Uninstallation,
    ] {
        let walk = Walk::new(Os::Linux, scenario);
        for (point, (kind, crash)) in (1..).step_by(3).zip(CRASHES.into_iter().cycle()) {
            let Some(stopped) = walk.stopped(point, crash) else {
                break;
            };
            for again in 1.. {
                let machine = stopped.duplicate();
                let halt = arm_thread(Plan::Halt(Place::Nth(again)));
                let is_done = machine.node.begin(&NoServices).is_ok();
                drop(halt);
                if is_done {
                    break;
                }
                crash(fake(&machine));
                machine.recover();
                let at = format!("{kind}, at point {point} and then at {again}");
                walk.judge(&machine, &at);
                tried += 1;
            }
        }
    }
    super::say(&format!("{tried} pairs of points"));
    assert!(tried > 500, "{tried}");
}
