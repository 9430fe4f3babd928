//! What is stopped in a crash walk, and what must be true afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use transom_host::files::{Files, Kind, path};
use transom_package::node::services::fake::FakeServices;
use transom_package::node::{
    Collection, Gate, NoChecks, NoServices, NodeError, Outcome, SwitchReport, Switching,
};

use crate::machine::{Machine, id, ids};

/// One operation, from a node that is prepared to a node that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// The first set of packages a node ever has.
    FirstActivation,
    Activation,
    Swap,
    /// Services and checks decide, and are content.
    Trial,
    /// Services decide, and are not content.
    FailedTrial,
    Rollback,
    Collection,
    /// What is left of a download when all of it has arrived.
    Addition,
    Removal,
    Uninstallation,
}

impl Scenario {
    pub(crate) const ALL: [Self; 10] = [
        Self::FirstActivation,
        Self::Activation,
        Self::Swap,
        Self::Trial,
        Self::FailedTrial,
        Self::Rollback,
        Self::Collection,
        Self::Addition,
        Self::Removal,
        Self::Uninstallation,
    ];

    pub(crate) fn named(name: &str) -> Self {
        let found = Self::ALL.iter().find(|each| format!("{each:?}") == name);
        *found.expect("a scenario")
    }

    /// Brings a fresh machine to where the operation begins.
    pub(crate) fn prepare(self, machine: &Machine) {
        for (package, user) in [("a--1", ""), ("a--2", ""), ("b--1", ""), ("c--1", "dcos_c")] {
            let (name, version) = package.split_once("--").expect("an id");
            let user = match user {
                "" => String::new(),
                user => format!(r#", "username": "{user}""#),
            };
            let info = format!(r#"{{"state_directory": true{user}}}"#);
            let unit = format!("dcos.target.wants/{name}.service");
            let (bin, etc) = (format!("bin/{name}"), format!("etc/{name}/conf"));
            let text = format!("{name} {version}");
            machine.package(
                package,
                &[
                    ("pkginfo.json", &info),
                    (&bin, &text),
                    (&etc, &text),
                    (&unit, &format!("[Unit]\nDescription={text}\n")),
                ],
            );
        }
        machine.write("incoming/pkginfo.json", "{}");
        machine.write("incoming/bin/d", "d 1");
        if self == Self::FirstActivation {
            return;
        }
        machine.activate(&["a--1", "b--1"]).expect("activated");
        match self {
            Self::Rollback => {
                machine.activate(&["a--2", "b--1"]).expect("activated");
            }
            Self::Collection => {
                for set in [["a--2", "b--1"], ["a--2", "c--1"], ["a--1", "c--1"]] {
                    machine.activate(&set).expect("activated");
                }
                machine.package("d--1", &[]);
                let (session, _) = machine.node.begin(&NoServices).expect("begun");
                session.pin(1).expect("pinned");
            }
            _ => {}
        }
    }

    pub(crate) fn act(self, machine: &Machine) -> Result<(), NodeError> {
        let services = FakeServices::default();
        let gate = Gate {
            checks: &NoChecks,
            limit: Duration::from_secs(5),
            pause: Duration::from_millis(1),
        };
        let gated = Switching {
            now: Timestamp::UNIX_EPOCH,
            services: &services,
            gate: Some(gate),
            rebuild: false,
        };
        let ungated = Machine::switching();
        match self {
            Self::FirstActivation => machine
                .activate(&["a--1", "c--1"])
                .map(|done| expect_activated(&done)),
            Self::Activation => machine
                .activate(&["a--2", "c--1"])
                .map(|done| expect_activated(&done)),
            Self::Trial => {
                let report = machine.activate_with(&["a--2", "c--1"], &gated)?;
                expect_activated(&report);
                Ok(())
            }
            Self::FailedTrial => {
                services.never_healthy("c.service");
                let report = machine.activate_with(&["a--2", "c--1"], &gated)?;
                assert!(matches!(report.outcome, Outcome::RolledBack { .. }));
                Ok(())
            }
            Self::Swap => {
                let (session, _) = machine.node.begin(&NoServices)?;
                let plan = machine.node.plan_swap(&id("a--2"))?;
                session
                    .execute(&plan, &ungated)
                    .map(|done| expect_activated(&done))
            }
            Self::Rollback => {
                let (session, _) = machine.node.begin(&NoServices)?;
                session
                    .rollback(None, &ungated)
                    .map(|done| expect_activated(&done))
            }
            Self::Collection => {
                let (session, _) = machine.node.begin(&NoServices)?;
                let collected = session.collect(&Collection {
                    keep: 1,
                    packages: true,
                    spare: BTreeSet::new(),
                })?;
                assert_eq!(collected.generations, [2]);
                assert_eq!(collected.packages, ids(&["d--1"]));
                Ok(())
            }
            Self::Addition => {
                let (session, _) = machine.node.begin(&NoServices)?;
                let incoming = machine.path("incoming");
                session.add_folder(&id("d--1"), &incoming).map(drop)
            }
            Self::Removal => {
                let (session, _) = machine.node.begin(&NoServices)?;
                session.remove(&id("c--1")).map(drop)
            }
            Self::Uninstallation => {
                let (session, _) = machine.node.begin(&NoServices)?;
                session.uninstall(&NoServices).map(drop)
            }
        }
    }

    /// Asserts that a node, recovered from a crash of this operation, is as before or as after it.
    pub(crate) fn judge(self, machine: &Machine, old: &Snapshot, new: &Snapshot, at: &str) {
        let deviations = machine.node.check().expect("checked");
        assert_eq!(deviations, [], "{self:?} {at}");
        let found = Snapshot::of(machine);
        if found == *old || found == *new {
            return;
        }
        match self {
            // The generation that did not prove itself is kept, and the rest is as before.
            Self::Trial | Self::FailedTrial => {
                let is_failed = found.has("root/generations/2.failed");
                assert!(is_failed, "{self:?} {at}: {:#?}", found.difference(old));
                let pointer = machine.node.pointer().expect("read").expect("a pointer");
                assert_eq!((pointer.active, pointer.highest), (Some(1), 2), "{at}");
                assert_eq!(
                    found.without("root/generations/2").without("root/active"),
                    old.without("root/active"),
                    "{self:?} {at}"
                );
            }
            // Many things go one after the other; each is there whole, or not at all.
            Self::Collection => {
                for folder in ["root/generations/2", "root/packages/d--1"] {
                    let part = found.below(folder);
                    assert!(
                        part.is_empty() || part == old.below(folder),
                        "{self:?} {at}: {folder} is there in part"
                    );
                }
                assert_eq!(
                    found
                        .without("root/generations/2")
                        .without("root/packages/d--1"),
                    new.without("nothing"),
                    "{self:?} {at}"
                );
            }
            _ => panic!(
                "{self:?} {at}: neither old nor new. To old: {:#?} To new: {:#?}",
                found.difference(old),
                found.difference(new)
            ),
        }
    }
}

fn expect_activated(report: &SwitchReport) {
    assert!(
        matches!(report.outcome, Outcome::Activated { .. }),
        "{report:?}"
    );
}

/// All files below a machine's folder, but for its lock and the state of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<String, String>);

impl Snapshot {
    pub(crate) fn of(machine: &Machine) -> Self {
        let mut found = BTreeMap::new();
        look(machine, &machine.base, "", &mut found);
        let mut snapshot = Self(found);
        for below in ["root/lock", "state"] {
            snapshot = snapshot.without(below);
        }
        // A folder with nothing in it is no debris.
        for folder in ["root", "root/generations"] {
            snapshot.0.remove(folder);
        }
        snapshot
    }

    fn is_at(path: &str, below: &str) -> bool {
        path.strip_prefix(below)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
    }

    fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    fn below(&self, folder: &str) -> BTreeMap<String, String> {
        let here = self.0.iter().filter(|(path, _)| Self::is_at(path, folder));
        here.map(|(path, what)| (path.clone(), what.clone()))
            .collect()
    }

    fn without(&self, below: &str) -> Self {
        let mut rest = self.clone();
        rest.0.retain(|path, _| !Self::is_at(path, below));
        rest
    }

    fn difference(&self, other: &Self) -> Vec<String> {
        let only = |here: &Self, there: &Self, sign: &str| -> Vec<String> {
            let different = here
                .0
                .iter()
                .filter(|(path, what)| there.0.get(*path) != Some(what));
            different
                .map(|(path, what)| format!("{sign} {path} ({what})"))
                .collect()
        };
        [only(self, other, "+"), only(other, self, "-")].concat()
    }
}

fn look(
    machine: &Machine,
    folder: &Utf8PathBuf,
    below: &str,
    found: &mut BTreeMap<String, String>,
) {
    let files: &dyn Files = machine.files.as_ref();
    for entry in files.names(folder).expect("listed") {
        let place = path::join(machine.os(), folder, &entry.name);
        let name = format!("{below}{}", entry.name);
        let what = match entry.kind {
            Kind::Dir => {
                look(machine, &place, &format!("{name}/"), found);
                "folder".to_owned()
            }
            Kind::Link => format!("-> {}", files.read_link(&place).expect("read")),
            Kind::File if name == "root/lock" => String::new(),
            Kind::File => {
                let bytes = files.read(&place, 1 << 20).expect("read");
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Kind::Other => "other".to_owned(),
        };
        found.insert(name, what);
    }
}
