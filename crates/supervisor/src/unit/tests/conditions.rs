//! Conditions over a machine made of values.

use std::collections::BTreeMap;

use transom_model::os::Os;

use crate::unit::condition::{
    Condition, ConditionFacts, ConditionKind, ConditionOutcome, evaluate,
};
use crate::unit::name::glob_matches;

#[derive(Default)]
struct FakeMachine {
    paths: Vec<&'static str>,
    environment: BTreeMap<&'static str, &'static str>,
    kernel: Option<&'static str>,
}

impl ConditionFacts for FakeMachine {
    fn path_exists(&self, path: &str) -> bool {
        self.paths.contains(&path)
    }
    fn glob_exists(&self, pattern: &str) -> bool {
        self.paths.iter().any(|path| glob_matches(pattern, path))
    }
    fn is_directory(&self, path: &str) -> bool {
        self.path_exists(path) && path.contains(".d")
    }
    fn is_symbolic_link(&self, _: &str) -> bool {
        false
    }
    fn is_mount_point(&self, _: &str) -> Option<bool> {
        None
    }
    fn is_writable_place(&self, _: &str) -> Option<bool> {
        Some(true)
    }
    fn directory_not_empty(&self, path: &str) -> bool {
        self.is_directory(path)
    }
    fn file_not_empty(&self, path: &str) -> bool {
        self.path_exists(path)
    }
    fn file_is_executable(&self, path: &str) -> bool {
        self.path_exists(path)
    }
    fn environment(&self, name: &str) -> Option<String> {
        self.environment.get(name).map(ToString::to_string)
    }
    fn host_name(&self) -> Option<String> {
        Some("Node-1".to_owned())
    }
    fn machine_id(&self) -> Option<String> {
        None
    }
    fn user(&self) -> Option<(String, String)> {
        Some(("root".to_owned(), "0".to_owned()))
    }
    fn is_system_user(&self) -> bool {
        true
    }
    fn is_in_group(&self, group: &str) -> Option<bool> {
        Some(group == "adm")
    }
    fn kernel_release(&self) -> Option<String> {
        self.kernel.map(str::to_owned)
    }
    fn kernel_command_line(&self) -> Option<String> {
        Some("quiet root=/dev/sda".to_owned())
    }
    fn architecture(&self) -> Option<String> {
        Some("x86-64".to_owned())
    }
    fn virtualization(&self) -> Option<(String, String)> {
        Some(("vm".to_owned(), "kvm".to_owned()))
    }
    fn has_capability(&self, _: &str) -> Option<bool> {
        None
    }
    fn memory_bytes(&self) -> Option<u64> {
        Some(4 << 30)
    }
    fn cpus(&self) -> Option<u64> {
        Some(4)
    }
    fn os_release(&self, field: &str) -> Option<String> {
        match field {
            "ID" => Some("debian".to_owned()),
            "VERSION_ID" => Some("12".to_owned()),
            _ => None,
        }
    }
    fn is_first_boot(&self) -> Option<bool> {
        Some(false)
    }
}

fn machine() -> FakeMachine {
    FakeMachine {
        paths: vec!["/etc/x", "/etc/x.d"],
        environment: BTreeMap::from([("MODE", "fast")]),
        kernel: Some("6.1.0-13-amd64"),
    }
}

fn condition(name: &str, value: &str) -> Condition {
    Condition::parse(ConditionKind::from_name(name).unwrap(), value, Os::Linux).unwrap()
}

#[test]
fn each_kind_of_condition_asks_the_machine() {
    for (name, value, expected) in [
        ("PathExists", "/etc/x", true),
        ("PathExists", "!/etc/x", false),
        ("PathExists", "! /absent", true),
        ("PathExistsGlob", "/etc/*.d", true),
        ("PathIsDirectory", "/etc/x", false),
        ("DirectoryNotEmpty", "/etc/x.d", true),
        ("FileIsExecutable", "/absent", false),
        ("Environment", "MODE", true),
        ("Environment", "MODE=slow", false),
        ("Host", "node-*", true),
        ("User", "0", true),
        ("User", "@system", true),
        ("Group", "wheel", false),
        ("KernelVersion", ">=5.10", true),
        ("KernelVersion", ">=6.1.0-12 <6.10", true),
        ("KernelVersion", "<6.1", false),
        ("KernelVersion", "6.*", true),
        ("KernelCommandLine", "root", true),
        ("KernelCommandLine", "root=/dev/sdb", false),
        ("Architecture", "arm64", false),
        ("Virtualization", "yes", true),
        ("Virtualization", "container", false),
        ("Memory", ">=4G", true),
        ("Memory", "8G", false),
        ("CPUs", "<4", false),
        ("OSRelease", "ID=debian VERSION_ID>=12", true),
        ("OSRelease", "ID=fedora", false),
        ("FirstBoot", "no", true),
    ] {
        assert_eq!(
            condition(name, value).is_met(&machine()),
            expected,
            "{name}={value}"
        );
    }
}

#[test]
fn what_cannot_be_decided_is_not_met_negated_or_not() {
    for value in ["selinux", "!selinux"] {
        assert!(!condition("Security", value).is_met(&machine()));
    }
    for value in ["/etc", "!/etc"] {
        assert!(!condition("PathIsMountPoint", value).is_met(&machine()));
    }
}

#[test]
fn all_plain_conditions_and_one_trigger_must_be_met() {
    let yes = condition("PathExists", "/etc/x");
    let no = condition("PathExists", "/absent");
    let trigger_yes = condition("PathExists", "|/etc/x");
    let trigger_no = condition("PathExists", "|!/etc/x");
    let check = |list: &[&Condition]| {
        let list: Vec<Condition> = list.iter().map(|one| (*one).clone()).collect();
        evaluate(&list, &machine())
    };
    assert_eq!(check(&[]), ConditionOutcome::Met);
    assert_eq!(
        check(&[&yes, &trigger_no, &trigger_yes]),
        ConditionOutcome::Met
    );
    assert_eq!(check(&[&yes, &no]), ConditionOutcome::NotMet(no.clone()));
    assert_eq!(
        check(&[&yes, &trigger_no]),
        ConditionOutcome::NotMet(trigger_no.clone())
    );
    assert_eq!(
        check(&[&no, &trigger_yes]),
        ConditionOutcome::NotMet(no.clone())
    );
    assert_eq!(
        trigger_no.describe("Condition"),
        "ConditionPathExists=|!/etc/x"
    );
}

#[test]
fn conditions_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("PathExists", "relative"),
        ("PathExists", "!"),
        ("Memory", ">=lots"),
        ("CPUs", "many"),
        ("FirstBoot", "perhaps"),
        ("OSRelease", "debian"),
    ] {
        let kind = ConditionKind::from_name(name).unwrap();
        assert!(
            Condition::parse(kind, value, Os::Linux).is_err(),
            "{name}={value}"
        );
    }
}
