//! From packages to an active generation, on every kind of machine.

use transom_model::os::Os;
use transom_package::node::{ActivationFault, NodeError, Outcome};

use crate::machine::{Machine, id, ids};

fn faults(error: NodeError) -> Vec<String> {
    match error {
        NodeError::Faults(faults) => faults.iter().map(ToString::to_string).collect(),
        other => panic!("not faults: {other:?}"),
    }
}

#[test]
fn packages_become_a_generation_and_the_pointer_names_it() {
    for machine in Machine::each() {
        machine.package(
            "a--1",
            &[
                ("bin/tool", "tool of a"),
                ("etc/deep/er/a.conf", "conf of a"),
                ("dcos.target.wants/a.service", "[Unit]\n"),
                ("pkginfo.json", r#"{"environment": {"B": "2", "A": "1"}}"#),
                ("buildinfo.full.json", r#"{"name": "a"}"#),
            ],
        );
        machine.package("b--1", &[("bin/other", "b"), ("etc/deep/b.conf", "b")]);
        let report = machine.activate(&["b--1", "a--1"]).expect("activated");
        assert_eq!(
            report.outcome,
            Outcome::Activated {
                generation: 1,
                before: None
            }
        );
        assert_eq!(machine.active_ids(), ["a--1", "b--1"]);
        let read = |below: &str| machine.content(&machine.active_path(below));
        assert_eq!(read("bin/tool"), "tool of a");
        assert_eq!(read("etc/deep/er/a.conf"), "conf of a");
        assert_eq!(read("etc/deep/b.conf"), "b");
        assert_eq!(read("services/a.service"), "[Unit]\n");
        assert_eq!(read("dcos.target.wants/a.service"), "[Unit]\n");
        assert!(read("environment").contains("# package: a--1\nA=1\nB=2\n\n# package: b--1\n\n"));
        assert_eq!(
            read("active.buildinfo.full.json"),
            "{\n  \"a\":{\n    \"name\":\"a\"\n  },\n  \"b\":null\n}"
        );
        assert_eq!(machine.content("units/a.service"), "[Unit]\n");
        assert_eq!(
            machine.content("units/dcos.target.wants/a.service"),
            "[Unit]\n"
        );
        if machine.os() == Os::Linux {
            assert_eq!(machine.content("root/bin/tool"), "tool of a");
            assert_eq!(machine.content("root/current/bin/tool"), "tool of a");
        }
        machine.assert_sound();
    }
}

#[test]
fn the_given_ids_become_the_whole_set_and_what_went_leaves_no_unit() {
    for machine in Machine::each() {
        machine.package("a--1", &[("dcos.target.wants/a.service", "a")]);
        machine.package("b--1", &[("dcos.target.wants/b.service", "b")]);
        machine.activate(&["a--1", "b--1"]).expect("activated");
        machine.activate(&["b--1"]).expect("activated");
        assert_eq!(machine.active_ids(), ["b--1"]);
        assert_eq!(machine.names("units"), ["b.service", "dcos.target.wants"]);
        assert_eq!(machine.names("units/dcos.target.wants"), ["b.service"]);
        machine.assert_sound();
        machine.activate(&[]).expect("nothing is a set too");
        assert_eq!(machine.names("units"), ["dcos.target.wants"]);
        machine.assert_sound();
    }
}

#[test]
fn the_same_set_again_changes_nothing_and_says_so() {
    for machine in Machine::each() {
        machine.package("a--1", &[("bin/a", "a")]);
        machine.activate(&["a--1"]).expect("activated");
        let plan = machine.node.plan_activation(&ids(&["a--1"])).expect("fine");
        assert!(plan.is_unchanged());
        assert!(plan.changes.is_empty());
        let report = machine.activate(&["a--1"]).expect("activated");
        assert_eq!(report.outcome, Outcome::Unchanged { generation: 1 });
        assert_eq!(machine.names("root/generations"), ["1"]);
    }
}

#[test]
fn a_plan_executed_twice_equals_once_and_one_that_is_outdated_is_refused() {
    let machine = Machine::linux();
    machine.package("a--1", &[("bin/a", "a")]);
    machine.package("b--1", &[("bin/b", "b")]);
    let plan = machine.node.plan_activation(&ids(&["a--1"])).expect("fine");
    let other = machine.node.plan_activation(&ids(&["b--1"])).expect("fine");
    let (session, _) = machine
        .node
        .begin(&transom_package::node::NoServices)
        .expect("begun");
    let first = session.execute(&plan, &Machine::switching()).expect("done");
    let second = session.execute(&plan, &Machine::switching()).expect("done");
    assert_eq!(first.active, second.active);
    assert_eq!(second.outcome, Outcome::Unchanged { generation: 1 });
    let error = session.execute(&other, &Machine::switching());
    assert!(matches!(
        error,
        Err(NodeError::OutdatedPlan {
            planned: None,
            found: Some(1)
        })
    ));
}

#[test]
fn all_faults_of_a_set_are_reported_at_once_and_nothing_is_made() {
    for machine in Machine::each() {
        let unit = ("dcos.target.wants/dcos-setup.service", "u");
        machine.package(
            "a--1",
            &[
                ("bin/x", "a"),
                unit,
                (
                    "pkginfo.json",
                    r#"{"requires": ["z"], "environment": {"PATH": "1", "E": "1"},
                        "group": "docker"}"#,
                ),
            ],
        );
        machine.package(
            "b--1",
            &[
                ("bin/x", "b"),
                ("etc/dcos-service-configuration.json", "{}"),
                (
                    "pkginfo.json",
                    r#"{"environment": {"E": "2"}, "sysctl": {"s": {"k": "2"}}}"#,
                ),
                ("lib/s.service", "found wherever it is"),
            ],
        );
        machine.package("c--1", &[("pkginfo.json", "{")]);
        machine.package("d--1", &[("pkginfo.json", r#"{"requires": ["a--1"]}"#)]);
        machine.write("root/packages/e--1/readme", "no pkginfo.json");
        machine.package("b--2", &[]);
        let settings = r#"{"sysctl": {"s": {"k": "1"}}}"#;
        machine.package("g--1", &[("pkginfo.json", settings)]);
        let all = [
            "a--1", "b--1", "c--1", "d--1", "e--1", "b--2", "f--1", "g--1",
        ];
        let found = faults(machine.activate(&all).expect_err("faults"));
        for part in [
            "package `f--1` is not on this node",
            "package `e--1` has no readable pkginfo.json",
            "package `c--1` has an invalid pkginfo.json",
            "package `d--1` has an invalid pkginfo.json",
            "`b--1` and `b--2` are two packages with the same name",
            "package `a--1` requires `z`",
            "package `a--1` sets the variable `PATH`",
            "the variable `E` is set by both `a--1` and `b--1`",
            "`b--1` and `g--1` set the kernel setting `k`",
            "package `g--1` has kernel settings, but no unit file",
            "package `a--1` names the group `docker` without a username",
            "package `a--1` has the unit `dcos-setup.service`",
            "`bin/x` is in both `a--1` and `b--1`",
            "package `b--1` has `etc/dcos-service-configuration.json`",
        ] {
            let count = found.iter().filter(|fault| fault.contains(part)).count();
            assert_eq!(count, 1, "{part}: {found:#?}");
        }
        assert_eq!(found.len(), 14, "{found:#?}");
        assert_eq!(machine.names("root"), ["lock", "packages"]);
        assert!(!machine.is_there("units"));
        assert!(!machine.is_there("state"));
    }
}

#[test]
fn folders_merge_and_nothing_else_does() {
    let cases = [
        ("lib/x/y", "lib/x/z", true),
        ("lib/x", "lib/x", false),
        ("lib/x", "lib/x/y", false),
        ("lib/x/y", "lib/x", false),
        ("lib/x", "lib_master/x", false),
    ];
    for machine in Machine::each() {
        machine.write("conf/roles/master", "");
        for (number, (first, second, is_fine)) in cases.into_iter().enumerate() {
            let packages = [format!("a--{number}"), format!("b--{number}")];
            machine.package(&packages[0], &[(first, "1")]);
            machine.package(&packages[1], &[(second, "2")]);
            let set = ids(&[&packages[0], &packages[1]]);
            let plan = machine.node.plan_activation(&set);
            assert_eq!(plan.is_ok(), is_fine, "{first} and {second}");
        }
    }
}

#[test]
fn a_windows_node_refuses_what_its_files_cannot_be() {
    let machine = Machine::windows();
    machine.package("a--1", &[("bin/Tool.exe", "a"), ("lib/aux.txt", "device")]);
    machine.package("b--1", &[("bin/tool.EXE", "b"), ("etc/name.", "dot")]);
    let found = faults(machine.activate(&["a--1", "b--1"]).expect_err("faults"));
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].contains("keeps for devices"), "{found:#?}");
    assert!(found[1].contains("the same file on Windows"), "{found:#?}");
    assert!(found[2].contains("ends in a dot"), "{found:#?}");
    // The same names are fine elsewhere.
    let machine = Machine::linux();
    machine.package("a--1", &[("bin/Tool.exe", "a"), ("lib/aux.txt", "device")]);
    machine.package("b--1", &[("bin/tool.EXE", "b"), ("etc/name.", "dot")]);
    machine.activate(&["a--1", "b--1"]).expect("fine on Linux");
}

#[test]
fn units_for_windows_name_the_generation_and_need_no_link() {
    let machine = Machine::windows();
    if let Some(fake) = &machine.fake {
        fake.pretend_folder_links();
    }
    let unit = "[Service]\r\nExecStart=C:\\Test\\root\\bin\\a.exe -c C:/test/root/etc/a\r\n";
    machine.package("a--1", &[("dcos.target.wants/a.service", unit)]);
    let report = machine.activate(&["a--1"]).expect("activated");
    assert_eq!(report.remarks.len(), 1, "no junction: {:?}", report.remarks);
    let expected = "[Service]\r\nExecStart=C:\\Test\\root\\generations\\1\\bin\\a.exe -c \
                    C:\\Test\\root\\generations\\1/etc/a\r\n";
    assert_eq!(machine.content("units/a.service"), expected);
    let environment = machine.content(&machine.active_path("environment.ps1"));
    assert!(environment.contains(r"C:\Test\root\generations\1\bin;"));
    machine.assert_sound();
}

#[test]
fn a_unit_file_that_is_not_ours_is_never_replaced_or_removed() {
    for machine in Machine::each() {
        machine.write("units/a.service", "of the administrator");
        machine.package("a--1", &[("dcos.target.wants/a.service", "of the package")]);
        let error = machine.activate(&["a--1"]).expect_err("it is in the way");
        let NodeError::Faults(found) = error else {
            panic!("not faults")
        };
        assert!(
            matches!(&found[..], [ActivationFault::ForeignUnit { id: of, .. }] if *of == id("a--1"))
        );
        machine.package("b--1", &[("dcos.target.wants/b.service", "b")]);
        machine.activate(&["b--1"]).expect("activated");
        machine.activate(&[]).expect("activated");
        machine.write("units/b.service", "of the administrator now");
        machine.recover();
        let (session, _) = machine
            .node
            .begin(&transom_package::node::NoServices)
            .expect("begun");
        let back = session.rollback(None, &Machine::switching());
        assert!(matches!(back, Err(NodeError::IncompleteGeneration { .. })));
        assert_eq!(machine.content("units/a.service"), "of the administrator");
        assert_eq!(
            machine.content("units/b.service"),
            "of the administrator now"
        );
    }
}

#[test]
fn derived_links_and_units_are_repaired_from_the_pointer() {
    for machine in Machine::each() {
        machine.package(
            "a--1",
            &[("bin/a", "a"), ("dcos.target.wants/a.service", "a")],
        );
        machine.activate(&["a--1"]).expect("activated");
        machine.write("units/a.service", "changed by hand");
        let wanted = machine.path("units/dcos.target.wants/a.service");
        machine.files.remove_file(&wanted).expect("removed");
        if machine.os() == Os::Linux {
            let current = machine.path("root/current");
            let elsewhere = "generations/7".into();
            machine
                .files
                .replace_link(elsewhere, &current)
                .expect("bent");
            machine
                .files
                .remove_file(&machine.path("root/bin"))
                .expect("removed");
        }
        let found = machine.node.check().expect("checked");
        let recovery = machine.recover();
        let expected = if machine.os() == Os::Linux { 4 } else { 2 };
        assert_eq!(found.len(), expected, "{found:#?}");
        assert_eq!(recovery.repaired, found);
        assert_eq!(machine.content("units/a.service"), "a");
        machine.assert_sound();
        assert!(machine.recover().is_clean());
    }
}

#[test]
fn two_commands_never_interleave_and_the_second_names_the_first() {
    for machine in Machine::each() {
        let held = machine.node.begin(&transom_package::node::NoServices);
        let (_session, _) = held.expect("begun");
        let error = machine.activate(&[]).expect_err("somebody works on it");
        let NodeError::Busy { source } = error else {
            panic!("not busy")
        };
        let ours = format!("process {}", std::process::id());
        assert!(source.to_string().contains(&ours), "{source}");
    }
}
