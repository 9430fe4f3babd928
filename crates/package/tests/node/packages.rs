//! What packages may ask of a node: roles, accounts, folders for state, kernel settings, links.

use transom_host::account::{Accounts as _, NewAccount};
use transom_model::os::Os;
use transom_package::node::NodeError;

use crate::machine::{Machine, ids};

fn fault(machine: &Machine, packages: &[&str]) -> String {
    match machine.node.plan_activation(&ids(packages)) {
        Err(NodeError::Faults(faults)) => {
            let [only] = &faults[..] else {
                panic!("not one fault: {faults:#?}")
            };
            only.to_string()
        }
        other => panic!("no fault: {other:?}"),
    }
}

#[test]
fn files_of_the_node_s_role_join_the_others_and_those_of_other_roles_do_not() {
    for machine in Machine::each() {
        machine.write("conf/roles/master", "");
        machine.package(
            "a--1",
            &[
                ("bin/all", "a"),
                ("bin_master/m", "m"),
                ("bin_slave/s", "s"),
                ("dcos.target.wants_master/m.service", "m"),
                ("dcos.target.wants_slave/s.service", "s"),
            ],
        );
        machine.activate(&["a--1"]).expect("activated");
        assert_eq!(machine.names(&machine.active_path("bin")), ["all", "m"]);
        assert_eq!(
            machine.names(&machine.active_path("services")),
            ["m.service"]
        );
        machine.assert_sound();
        machine.write("conf/roles/slave", "");
        assert!(fault(&machine, &["a--1"]).contains("the roles master, slave"));
    }
}

#[test]
fn accounts_are_made_once_and_own_the_state_of_their_packages() {
    let machine = Machine::linux();
    machine.accounts.add_group("docker");
    let info = r#"{"username": "dcos_a", "group": "docker", "state_directory": true}"#;
    machine.package("a--1", &[("pkginfo.json", info)]);
    machine.package("b--1", &[("pkginfo.json", r#"{"state_directory": true}"#)]);
    let plan = machine
        .node
        .plan_activation(&ids(&["a--1", "b--1"]))
        .expect("fine");
    assert_eq!(plan.changes.users.added, ["dcos_a"]);
    assert_eq!(plan.changes.state_directories.added, ["a", "b"]);
    assert!(machine.accounts.names().is_empty(), "a plan does nothing");
    machine.activate(&["a--1", "b--1"]).expect("activated");
    assert_eq!(machine.accounts.names(), ["dcos_a"]);
    let owner = |name: &str| machine.accounts.owner(&machine.path(name));
    assert_eq!(owner("state/a").as_deref(), Some("dcos_a"));
    assert_eq!(owner("state/b"), None);
    assert!(machine.is_there("state/b"));
}

#[test]
fn an_account_that_cannot_be_had_is_a_fault() {
    let machine = Machine::linux();
    let package = |id: &str, info: &str| machine.package(id, &[("pkginfo.json", info)]);
    package("a--1", r#"{"username": "dcos_a", "group": "docker"}"#);
    package("b--1", r#"{"username": "dcos_a", "group": "podman"}"#);
    package("c--1", r#"{"username": "root"}"#);
    package("d--1", r#"{"username": "dcos_d"}"#);
    assert!(fault(&machine, &["a--1"]).contains("the group `docker`, which does not exist"));
    machine.accounts.add_group("docker");
    machine.accounts.add_group("podman");
    assert!(fault(&machine, &["a--1", "b--1"]).contains("in different groups"));
    assert!(fault(&machine, &["c--1"]).contains("invalid pkginfo.json"));
    let made = NewAccount {
        name: "dcos_a".to_owned(),
        group: Some("podman".to_owned()),
        home: "/".into(),
    };
    machine.accounts.create(&made).expect("made");
    assert!(fault(&machine, &["a--1"]).contains("in the group `docker`, and it is not"));
    machine.write("conf/manual_host_users", "");
    assert!(fault(&machine, &["d--1"]).contains("manual_host_users"));
    machine
        .node
        .plan_activation(&ids(&["b--1"]))
        .expect("it exists");
}

#[test]
fn a_windows_node_has_no_accounts_and_says_so() {
    let machine = Machine::windows();
    let info = r#"{"username": "dcos_a", "state_directory": true}"#;
    machine.package("a--1", &[("pkginfo.json", info)]);
    let report = machine.activate(&["a--1"]).expect("activated");
    assert!(
        report.remarks[0].contains("run as the system"),
        "{report:?}"
    );
    assert!(machine.accounts.names().is_empty());
    assert!(machine.is_there("state/a"));
}

#[test]
fn kernel_settings_reach_the_services_that_the_package_has() {
    for machine in Machine::each() {
        let info = r#"{"sysctl": {"s": {"vm.a": 1, "vm.b": "2"}, "other": {"vm.c": "3"}}}"#;
        machine.package(
            "a--1",
            &[("pkginfo.json", info), ("share/deep/s.service", "u")],
        );
        machine.activate(&["a--1"]).expect("activated");
        let text = machine.content(&machine.active_path("etc/dcos-service-configuration.json"));
        assert_eq!(
            text,
            "{\n  \"sysctl\":{\n    \"s\":{\n      \"vm.a\":1,\n      \"vm.b\":\"2\"\n    }\n  }\n}"
        );
    }
}

#[test]
fn a_folder_that_is_a_link_is_linked_and_not_entered() {
    let machines = Machine::each().into_iter();
    for machine in machines.filter(|machine| machine.os() == Os::Linux) {
        machine.package("a--1", &[("lib/real/x", "x"), ("lib64/y", "y")]);
        let package = "root/packages/a--1";
        for (target, link) in [("real", "lib/alias"), ("lib64", "include"), ("gone", "bin")] {
            let link = machine.path(&format!("{package}/{link}"));
            machine
                .files
                .link_dir(target.into(), &link)
                .expect("linked");
        }
        machine.package("b--1", &[("lib/alias/z", "would land in a--1")]);
        assert!(fault(&machine, &["a--1", "b--1"]).contains("`lib/alias` is in both"));
        machine.activate(&["a--1"]).expect("activated");
        let alias = machine.path(&machine.active_path("lib/alias"));
        let target = machine.files.read_link(&alias).expect("a link");
        assert_eq!(target, machine.path("root/packages/a--1/lib/alias"));
        assert_eq!(machine.content("root/lib/alias/x"), "x");
        assert_eq!(
            machine.names("root/include"),
            ["y"],
            "the first folder may be a link"
        );
        assert!(
            machine.names("root/bin").is_empty(),
            "and a link to nothing is nothing"
        );
        machine.assert_sound();
    }
}

#[test]
fn a_value_that_would_break_the_environment_file_is_refused() {
    for machine in Machine::each() {
        let info = r#"{"environment": {"A": "1\nPATH=/evil"}}"#;
        machine.package("a--1", &[("pkginfo.json", info)]);
        assert!(fault(&machine, &["a--1"]).contains("no environment file can hold"));
    }
}

#[test]
fn the_difference_between_two_generations_is_told() {
    let machine = Machine::linux();
    machine.package("a--1", &[("bin/a", "1"), ("bin/old", "1")]);
    let info = r#"{"environment": {"A": "1"}}"#;
    machine.package("a--2", &[("bin/a", "2"), ("pkginfo.json", info)]);
    machine.package("b--1", &[("dcos.target.wants/b.service", "b")]);
    machine.activate(&["a--1"]).expect("activated");
    machine.activate(&["a--2", "b--1"]).expect("activated");
    let changes = machine.node.diff(1, 2).expect("compared");
    let json = serde_json::to_value(&changes).expect("a value");
    assert_eq!(
        json,
        serde_json::json!({
            "packages": [
                {"name": "a", "before": "a--1", "after": "a--2"},
                {"name": "b", "before": null, "after": "b--1"},
            ],
            "files": {"added": [], "removed": ["bin/old"], "changed": ["bin/a"]},
            "units": {"added": ["b.service"], "removed": [], "changed": []},
            "environment": {"added": ["A"], "removed": [], "changed": []},
            "users": {"added": [], "removed": [], "changed": []},
            "state_directories": {"added": [], "removed": [], "changed": []},
            "roles": {"added": [], "removed": [], "changed": []},
        })
    );
    assert!(machine.node.diff(2, 2).expect("compared").is_empty());
    let swap = machine
        .node
        .plan_swap(&"a--1".parse().expect("an id"))
        .expect("planned");
    assert_eq!(swap.changes.packages.len(), 1);
    let absent = machine.node.plan_swap(&"c--1".parse().expect("an id"));
    assert!(matches!(absent, Err(NodeError::NameNotActive { .. })));
}
