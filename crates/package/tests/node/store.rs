//! Packages on the node, collecting what nobody needs, and uninstalling.

use std::collections::BTreeSet;

use transom_host::files::FileError;
use transom_model::os::Os;
use transom_package::node::{
    Added, Collection, NoServices, NodeError, Removed, Session, Uninstalled,
};

use crate::machine::{Machine, id, ids};

fn session(machine: &Machine) -> Session<'_> {
    machine.node.begin(&NoServices).expect("begun").0
}

#[test]
fn a_package_is_unpacked_out_of_sight_and_added_once() {
    for machine in Machine::each() {
        let session = session(&machine);
        let add = |content: &'static [u8]| {
            session.add(&id("a--1"), |staging| {
                staging.make_dir("bin".into(), 0o755)?;
                for (name, bytes) in [("pkginfo.json", content), ("bin/a", b"a")] {
                    let mut file = staging.create_file(name.into(), 0o644)?;
                    file.write_all(bytes)?;
                    file.finish()?;
                }
                Ok(())
            })
        };
        let error = add(b"not JSON").expect_err("not a package");
        assert!(matches!(error, NodeError::NotAPackage { .. }), "{error:?}");
        assert_eq!(machine.node.packages().expect("listed"), []);
        assert_eq!(add(b"{}").expect("added"), Added::Now);
        assert_eq!(add(b"not JSON").expect("there already"), Added::Already);
        assert_eq!(machine.node.packages().expect("listed"), ids(&["a--1"]));
        assert!(machine.node.contains(&id("a--1")).expect("looked"));
        assert!(machine.node.package_info(&id("a--1")).is_ok());
    }
}

#[test]
fn a_package_that_cannot_be_unpacked_leaves_nothing() {
    for machine in Machine::each() {
        let error = session(&machine).add(&id("a--1"), |staging| {
            staging.make_dir("bin".into(), 0o755)?;
            Err("the archive is damaged".into())
        });
        assert!(matches!(error, Err(NodeError::Unpack { .. })));
        assert!(machine.names("root/packages").is_empty());
    }
}

#[test]
fn a_package_in_use_by_a_generation_is_not_removed() {
    for machine in Machine::each() {
        for package in ["a--1", "b--1", "c--1"] {
            machine.package(package, &[]);
        }
        machine.activate(&["a--1"]).expect("activated");
        machine.activate(&["b--1"]).expect("activated");
        let session = session(&machine);
        assert!(matches!(
            session.remove(&id("b--1")),
            Err(NodeError::PackageActive { .. })
        ));
        assert!(matches!(
            session.remove(&id("a--1")),
            Err(NodeError::PackageKept { generation: 1, .. })
        ));
        assert_eq!(session.remove(&id("c--1")).expect("removed"), Removed::Now);
        let again = session.remove(&id("c--1")).expect("absent is fine");
        assert_eq!(again, Removed::Absent);
        assert_eq!(machine.names("root/packages"), ["a--1", "b--1"]);
    }
}

fn collection(keep: usize) -> Collection {
    Collection {
        keep,
        packages: true,
        spare: BTreeSet::new(),
    }
}

/// Six generations; the sixth is active, the fifth before it.
fn with_generations(machine: &Machine) {
    for number in 1..=6 {
        let package = format!("a--{number}");
        machine.package(&package, &[("bin/a", &package)]);
        machine.activate(&[&package]).expect("activated");
    }
}

#[test]
fn old_generations_and_their_packages_go_and_what_is_needed_stays() {
    for machine in Machine::each() {
        with_generations(&machine);
        machine.package("new--1", &[]);
        machine.package("unused--1", &[]);
        let session = session(&machine);
        session.pin(2).expect("pinned");
        session
            .rollback(Some(1), &Machine::switching())
            .expect("back");
        let spare = BTreeSet::from([id("new--1")]);
        let wanted = Collection {
            spare,
            ..collection(1)
        };
        let planned = session.node().plan_collection(&wanted).expect("planned");
        assert_eq!(machine.names("root/packages").len(), 8);
        let collected = session.collect(&wanted).expect("collected");
        assert_eq!(collected, planned);
        // The active one, the pinned one, and the last active one which is the newest too.
        assert_eq!(collected.generations, [3, 4, 5]);
        assert_eq!(
            machine.names("root/packages"),
            ["a--1", "a--2", "a--6", "new--1"]
        );
        assert_eq!(
            machine.names("root/generations"),
            ["1", "2", "2.pinned", "6"]
        );
        session.unpin(2).expect("unpinned");
        let collected = session.collect(&collection(1)).expect("collected");
        assert_eq!(collected.generations, [2]);
        machine.assert_sound();
    }
}

#[test]
fn numbers_of_collected_generations_are_not_used_again() {
    let machine = Machine::linux();
    with_generations(&machine);
    {
        let session = session(&machine);
        session
            .rollback(Some(1), &Machine::switching())
            .expect("back");
        session
            .rollback(Some(2), &Machine::switching())
            .expect("on");
        let collected = session.collect(&collection(0)).expect("collected");
        assert_eq!(collected.generations, [3, 4, 5, 6]);
    }
    machine.package("b--1", &[]);
    let report = machine.activate(&["b--1"]).expect("activated");
    assert_eq!(report.active, Some(7));
}

#[test]
fn what_somebody_has_open_is_left_whole_and_its_holder_named() {
    for machine in [Machine::linux(), Machine::windows()] {
        with_generations(&machine);
        let held = match machine.os() {
            Os::Linux => "root/packages/a--1/bin/a",
            Os::Windows => "root/generations/1/bin/a",
        };
        let fake = machine.fake.as_ref().expect("an imaginary machine");
        fake.hold(&machine.path(held), 77, "scanner");
        let collected = session(&machine)
            .collect(&collection(1))
            .expect("collected");
        let in_use: Vec<&str> = collected
            .in_use
            .iter()
            .map(|kept| kept.what.as_str())
            .collect();
        // The same file has two names on Windows, so nobody may take either.
        let expected = match machine.os() {
            Os::Linux => vec!["a--1"],
            Os::Windows => vec!["generation 1"],
        };
        assert_eq!(in_use, expected);
        assert!(collected.in_use[0].why.contains("scanner"));
        assert!(machine.is_there("root/packages/a--1/bin/a"));
        machine.assert_sound();
        fake.let_go(&machine.path(held));
        let collected = session(&machine)
            .collect(&collection(1))
            .expect("collected");
        assert!(collected.in_use.is_empty());
        assert!(!machine.is_there("root/packages/a--1"));
    }
}

#[test]
fn a_full_disk_is_refused_with_what_is_free_and_what_is_needed() {
    let machine = Machine::linux();
    let fake = machine.fake.as_ref().expect("an imaginary machine");
    fake.fill_up_to(1000);
    machine.node.ensure_space(1000).expect("just enough");
    let error = machine.node.ensure_space(1001).expect_err("too little");
    let text = error.to_string();
    assert!(
        text.contains("1000 bytes left, and 1001 are needed"),
        "{text}"
    );
}

#[test]
fn a_disk_that_is_full_while_activating_changes_nothing() {
    for machine in [Machine::linux(), Machine::windows()] {
        machine.package("a--1", &[("bin/a", "a")]);
        machine.package("b--1", &[("bin/b", "b")]);
        machine.activate(&["a--1"]).expect("activated");
        let fake = machine.fake.as_ref().expect("an imaginary machine");
        fake.fill_up_to(100);
        let error = machine.activate(&["b--1"]).expect_err("full");
        let is_full = matches!(
            error,
            NodeError::Files {
                source: FileError::DiskFull { .. }
            }
        );
        assert!(is_full, "{error:?}");
        assert_eq!(machine.active_ids(), ["a--1"]);
        machine.assert_sound();
    }
}

#[test]
fn an_uninstallation_takes_ours_and_leaves_what_is_not() {
    for machine in Machine::each() {
        machine.package(
            "a--1",
            &[
                ("dcos.target.wants/a.service", "a"),
                ("pkginfo.json", r#"{"state_directory": true}"#),
            ],
        );
        machine.activate(&["a--1"]).expect("activated");
        machine.write("units/other.service", "of the administrator");
        machine.write("root/notes", "of the administrator");
        let session = || session(&machine);
        session().write_target().expect("written");
        assert!(machine.is_there("units/dcos.target"));
        let report = session().uninstall(&NoServices).expect("gone");
        assert_eq!(report.left, [machine.path("root/notes")]);
        assert_eq!(machine.names("root"), ["notes"]);
        assert_eq!(machine.names("units"), ["other.service"]);
        assert!(machine.is_there("state/a"));
        let error = session().uninstall(&NoServices);
        assert!(matches!(error, Err(NodeError::NotANode { .. })));
        machine.write("units/dcos.target", "of somebody else");
        machine.package("a--1", &[]);
        session().uninstall(&NoServices).expect("gone");
        assert!(machine.is_there("units/dcos.target"));
    }
}

#[test]
fn an_uninstallation_with_nothing_foreign_takes_the_root_too() {
    for machine in Machine::each() {
        machine.package("a--1", &[("bin/a", "a")]);
        machine.activate(&["a--1"]).expect("activated");
        let report = session(&machine).uninstall(&NoServices).expect("gone");
        assert_eq!(report, Uninstalled::default());
        assert!(!machine.is_there("root"));
    }
}

#[test]
fn pkgpanda_s_own_root_is_recognised_and_left_alone() {
    for machine in Machine::each() {
        machine.write("root/active/a", "a folder of the original");
        let error = machine.activate(&[]).expect_err("not ours");
        assert!(matches!(error, NodeError::ForeignRoot { .. }), "{error:?}");
        assert!(machine.is_there("root/active/a"));
    }
}

#[test]
fn a_damaged_pointer_is_reported_and_nothing_is_guessed() {
    for machine in Machine::each() {
        machine.package("a--1", &[]);
        machine.activate(&["a--1"]).expect("activated");
        for text in [
            "",
            "{",
            r#"{"format": 9, "active": 1, "previous": null, "highest": 1}"#,
        ] {
            machine.write("root/active", text);
            let error = machine.activate(&[]).expect_err("damaged");
            assert!(matches!(error, NodeError::Damaged { .. }), "{error:?}");
        }
        assert!(
            machine
                .files
                .metadata(&machine.path("root/generations/1"))
                .is_ok()
        );
    }
}
