//! What a machine promises to tell, on this machine and on the fake.
#![expect(clippy::unwrap_used, reason = "what tests share panics as tests do")]

use std::time::{Duration, SystemTime};

use transom_host::machine::fake::FakeMachine;
use transom_host::machine::{Machine, Native, OS};
use transom_model::Os;

fn facts_are_told_and_make_sense(machine: &dyn Machine) {
    let system = machine.system().unwrap();
    assert_eq!(system.os, machine.os());
    assert!(!system.host_name.is_empty());
    assert!(!system.pretty_name.is_empty());
    assert!(!system.kernel.is_empty());
    assert_eq!(system.windows_version.is_some(), system.os == Os::Windows);

    let memory = machine.memory().unwrap();
    assert!(memory.total >= 1 << 20, "{memory:?}");
    assert!(memory.available <= memory.total, "{memory:?}");
    assert!(memory.swap_free <= memory.swap_total, "{memory:?}");

    let processors = machine.processors().unwrap();
    assert!(processors.allowed >= 1);
    assert!(processors.allowed <= processors.logical);

    for disk in machine.disks().unwrap() {
        if let (Some(size), Some(free)) = (disk.size, disk.free) {
            assert!(free <= size, "{disk:?}");
        }
    }
    machine.surroundings().unwrap();
    machine.time_zone().unwrap();
    machine.load().unwrap();
}

fn clocks_and_boot_stay_true(machine: &dyn Machine) {
    let boot = machine.boot_id().unwrap();
    assert!(!boot.is_empty());
    let first = machine.uptime().unwrap();
    assert!(machine.uptime().unwrap() >= first);
    assert!(machine.now() > SystemTime::UNIX_EPOCH + Duration::from_hours(416_666));
    assert_eq!(machine.boot_id().unwrap(), boot);
}

fn routes_go_through_interfaces_that_exist(machine: &dyn Machine) {
    let mut interfaces = machine.interfaces().unwrap();
    let routes = machine.routes().unwrap();
    // Other tests make and remove interfaces meanwhile.
    interfaces.extend(machine.interfaces().unwrap());
    for route in routes {
        assert_eq!(route.destination, route.destination.trunc(), "{route:?}");
        if let Some(index) = route.interface_index {
            assert!(
                interfaces.iter().any(|interface| interface.index == index),
                "{route:?} in {interfaces:#?}"
            );
        }
    }
    if let Some(route) = machine.default_route().unwrap() {
        assert_eq!(route.destination.prefix_len(), 0);
    }
}

#[test]
fn this_machine_keeps_the_promises_of_a_machine() {
    facts_are_told_and_make_sense(&Native);
    clocks_and_boot_stay_true(&Native);
    routes_go_through_interfaces_that_exist(&Native);
    assert_eq!(Native.os(), OS);
}

#[test]
fn fakes_of_both_systems_keep_the_promises_of_a_machine() {
    for os in Os::ALL {
        let machine = FakeMachine::new(os);
        facts_are_told_and_make_sense(&machine);
        clocks_and_boot_stay_true(&machine);
        routes_go_through_interfaces_that_exist(&machine);
    }
}

#[test]
fn this_machine_has_a_loopback_interface_and_a_disk() {
    let interfaces = Native.interfaces().unwrap();
    let loopback = interfaces
        .iter()
        .find(|interface| interface.loopback)
        .unwrap_or_else(|| panic!("no loopback in {interfaces:#?}"));
    assert!(
        loopback
            .addresses
            .iter()
            .all(|entry| entry.address.is_loopback()),
        "{loopback:?}"
    );
    assert!(
        Native
            .disks()
            .unwrap()
            .iter()
            .any(|disk| disk.size > Some(0))
    );
}

#[test]
fn only_a_reboot_changes_the_boot_of_a_fake() {
    let machine = FakeMachine::new(Os::Linux);
    let boot = machine.boot_id().unwrap();
    machine.advance(Duration::from_hours(1));
    assert_eq!(machine.boot_id().unwrap(), boot);
    machine.reboot();
    assert_ne!(machine.boot_id().unwrap(), boot);
    assert_eq!(machine.uptime().unwrap(), Duration::ZERO);
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;

    /// What the kernel lists, and what is told between two looks at the same list: other tests make and remove
    /// interfaces and their routes.
    fn at_one_moment<L: PartialEq, T>(list: impl Fn() -> L, tell: impl Fn() -> T) -> (L, T) {
        loop {
            let listed = list();
            let told = tell();
            if list() == listed {
                return (listed, told);
            }
        }
    }

    #[test]
    fn interfaces_have_the_names_that_the_kernel_lists() {
        let list = || {
            let text = fs_err::read_to_string("/proc/net/dev").unwrap();
            let name = |line: &str| Some(line.split_once(':')?.0.trim().to_owned());
            text.lines().filter_map(name).collect::<Vec<_>>()
        };
        let (mut listed, interfaces) = at_one_moment(list, || Native.interfaces().unwrap());
        let mut told: Vec<&str> = interfaces
            .iter()
            .map(|interface| interface.name.as_str())
            .collect();
        listed.sort_unstable();
        told.sort_unstable();
        assert_eq!(told, listed);
    }

    #[test]
    fn there_are_as_many_ipv4_routes_as_the_kernel_lists() {
        let list = || {
            let text = fs_err::read_to_string("/proc/net/route").unwrap();
            text.lines().skip(1).count()
        };
        let (listed, told) = at_one_moment(list, || Native.routes().unwrap());
        let told = told
            .iter()
            .filter(|route| route.destination.addr().is_ipv4())
            .count();
        assert_eq!(told, listed);
    }
}

#[cfg(windows)]
mod windows {
    use super::*;

    #[test]
    fn wine_is_told_from_windows() {
        let wine = Native.surroundings().unwrap().wine;
        let runs_under_wine = std::path::Path::new(r"C:\windows\system32\winecfg.exe").exists();
        assert_eq!(wine.is_some(), runs_under_wine, "{wine:?}");
    }

    #[test]
    fn the_boot_is_the_same_for_another_process() {
        const ASK: &str = "TRANSOM_TEST_PRINT_BOOT";
        let this = Native.boot_id().unwrap();
        if std::env::args().any(|argument| argument == ASK) {
            println!("boot={this}");
            return;
        }
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "windows::the_boot_is_the_same_for_another_process",
                ASK,
                "--nocapture",
            ])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(&format!("boot={this}")), "{text}");
    }
}
