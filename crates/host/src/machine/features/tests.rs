//! Judgements about machines that this one is not.

use transom_model::windows::WindowsVersion;

use super::*;
use crate::service::ServiceStatus;

/// A machine on which everything is as it should be.
fn good_linux() -> LinuxFacts {
    LinuxFacts {
        kernel: "6.12.9-amd64".to_owned(),
        cgroups: CgroupFacts {
            mode: CgroupMode::V2,
            controllers: ["cpuset", "cpu", "io", "memory", "pids"]
                .map(ToOwned::to_owned)
                .to_vec(),
            writable: Some(true),
        },
        missing_namespaces: Vec::new(),
        overlay_file_system: Some(true),
        link_kinds: ["bridge", "veth", "vxlan", "geneve", "dummy"]
            .map(|kind| (kind.to_owned(), Some(true)))
            .to_vec(),
        nftables: Some(true),
        nft_program: Some("/usr/sbin/nft".into()),
        bridge_netfilter: Some(true),
        forwards_ipv4: Some(true),
        capabilities: Some(u64::MAX),
        seccomp: Some(true),
        apparmor: Some(true),
        open_files: Some(1_048_576),
        inotify_instances: Some(8192),
        inotify_watches: Some(524_288),
        systemd: true,
        runtimes: Vec::new(),
        ports: vec![(6443, PortState::Free)],
        clock_synchronised: Some(true),
        swap_total: Some(0),
    }
}

fn good_windows() -> WindowsFacts {
    WindowsFacts {
        version: Some(WindowsVersion::new(10, 0, 20348, Some(2113))),
        installation: Some("Server Core".to_owned()),
        wine: None,
        elevated: Some(true),
        long_paths: Some(true),
        developer_mode: Some(false),
        services: ["hns", "vmcompute", "vmms", "containerd", "docker"]
            .map(|name| WindowsService {
                name: name.to_owned(),
                status: Some(ServiceStatus::Running { process: None }),
            })
            .to_vec(),
        libraries: vec![("vmcompute.dll".to_owned(), true)],
        powershell: Some(r"C:\Windows\System32\powershell.exe".into()),
        ports: vec![(10250, PortState::Free)],
    }
}

fn of<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
    findings
        .iter()
        .find(|finding| finding.id == id)
        .unwrap_or_else(|| panic!("no finding {id}"))
}

fn linux(change: impl FnOnce(&mut LinuxFacts)) -> Vec<Finding> {
    let mut facts = good_linux();
    change(&mut facts);
    judge_linux(&facts)
}

fn windows(change: impl FnOnce(&mut WindowsFacts)) -> Vec<Finding> {
    let mut facts = good_windows();
    change(&mut facts);
    judge_windows(&facts)
}

#[test]
fn good_machines_get_no_advice() {
    for finding in linux(|_| {}).into_iter().chain(windows(|_| {})) {
        assert_eq!(finding.state, State::Ok, "{finding:?}");
        assert_eq!(finding.way_forward, None, "{finding:?}");
    }
}

#[test]
fn whatever_is_wrong_has_a_way_forward_and_a_purpose() {
    let bad_linux = judge_linux(&LinuxFacts {
        kernel: "3.10.0".to_owned(),
        cgroups: CgroupFacts {
            mode: CgroupMode::None,
            controllers: Vec::new(),
            writable: Some(false),
        },
        missing_namespaces: vec!["user".to_owned()],
        overlay_file_system: Some(false),
        link_kinds: vec![("bridge".to_owned(), Some(false))],
        nftables: Some(false),
        capabilities: Some(0),
        seccomp: Some(false),
        apparmor: Some(false),
        forwards_ipv4: Some(false),
        bridge_netfilter: Some(false),
        open_files: Some(1024),
        inotify_instances: Some(128),
        inotify_watches: Some(8192),
        clock_synchronised: Some(false),
        swap_total: Some(1 << 30),
        ports: vec![(6443, PortState::Taken)],
        ..good_linux()
    });
    let bad_windows = judge_windows(&WindowsFacts {
        version: Some(WindowsVersion::of_build(10240)),
        installation: Some("Client".to_owned()),
        wine: Some("10.0".to_owned()),
        elevated: Some(false),
        long_paths: Some(false),
        services: good_windows()
            .services
            .into_iter()
            .map(|service| WindowsService {
                status: Some(ServiceStatus::NotInstalled),
                ..service
            })
            .collect(),
        libraries: vec![("vmcompute.dll".to_owned(), false)],
        powershell: None,
        ..good_windows()
    });
    assert!(
        bad_linux
            .iter()
            .filter(|finding| finding.state != State::Ok)
            .count()
            > 15
    );
    assert!(
        bad_windows
            .iter()
            .filter(|finding| finding.state != State::Ok)
            .count()
            > 8
    );
    for finding in bad_linux.iter().chain(&bad_windows) {
        if matches!(finding.state, State::Missing | State::Warning) {
            assert!(finding.way_forward.is_some(), "{finding:?}");
            assert!(!finding.needed_for.is_empty(), "{finding:?}");
        }
    }
}

#[test]
fn version_1_control_groups_without_one_capability_are_only_a_warning() {
    let findings = linux(|facts| {
        facts.cgroups.mode = CgroupMode::Hybrid;
        facts.capabilities = Some(!(1 << 24));
    });
    assert_eq!(of(&findings, "cgroup-version").state, State::Warning);
    assert_eq!(of(&findings, "cgroup-controllers").state, State::Ok);
    assert_eq!(of(&findings, "capabilities").state, State::Ok);
    let useful = of(&findings, "capabilities-useful");
    assert_eq!(
        (useful.state, useful.detail.as_str()),
        (State::Warning, "without SYS_RESOURCE")
    );
}

#[test]
fn missing_capabilities_and_controllers_are_named() {
    let findings = linux(|facts| {
        facts.capabilities = Some(!(1 << 12) & !(1 << 21));
        facts.cgroups.controllers.retain(|name| name != "memory");
    });
    assert_eq!(
        of(&findings, "capabilities").detail,
        "without NET_ADMIN, SYS_ADMIN"
    );
    assert_eq!(of(&findings, "cgroup-controllers").detail, "without memory");
}

#[test]
fn what_could_not_be_seen_is_unknown_and_not_missing() {
    let findings = linux(|facts| {
        facts.capabilities = None;
        facts.nftables = None;
        facts.link_kinds.clear();
        facts.kernel = "odd".to_owned();
        facts.ports = vec![(6443, PortState::Unknown("not permitted".to_owned()))];
    });
    for id in [
        "capabilities",
        "nftables",
        "link-veth",
        "kernel",
        "port-6443",
    ] {
        assert_eq!(of(&findings, id).state, State::Unknown, "{id}");
    }
    let findings = windows(|facts| {
        facts.version = None;
        facts.services[0].status = None;
    });
    for id in ["windows-build", "service-hns"] {
        assert_eq!(of(&findings, id).state, State::Unknown, "{id}");
    }
}

#[test]
fn nftables_needs_the_kernel_and_the_program() {
    let findings = linux(|facts| facts.nft_program = None);
    assert_eq!(
        of(&findings, "nftables").detail,
        "the program `nft` is not installed"
    );
    let findings = linux(|facts| facts.nftables = Some(false));
    assert_eq!(of(&findings, "nftables").detail, "the kernel has none");
}

#[test]
fn kernels_are_compared_by_number_and_not_by_text() {
    let state = |kernel: &str| of(&linux(|facts| facts.kernel = kernel.to_owned()), "kernel").state;
    assert_eq!(state("4.9.0"), State::Missing);
    assert_eq!(state("4.18.0-553.el8"), State::Warning);
    assert_eq!(state("5.10.0"), State::Ok);
    assert_eq!(state("10.0"), State::Ok);
}

#[test]
fn windows_builds_are_judged_as_nodes() {
    let state = |build: u32, installation: &str| {
        let findings = windows(|facts| {
            facts.version = Some(WindowsVersion::of_build(build));
            facts.installation = Some(installation.to_owned());
        });
        of(&findings, "windows-build").state
    };
    assert_eq!(state(26100, "Server"), State::Ok);
    assert_eq!(state(26100, "Client"), State::Warning);
    assert_eq!(state(17763, "Server Core"), State::Warning);
    assert_eq!(state(10240, "Client"), State::Missing);
}

#[test]
fn a_port_that_is_taken_is_seen() {
    let holder = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = holder.local_addr().unwrap().port();
    assert_eq!(probe_port(port), PortState::Taken);
    drop(holder);
    assert_eq!(probe_port(port), PortState::Free);
    let findings = linux(|facts| facts.ports = vec![(10250, PortState::Taken)]);
    let port = of(&findings, "port-10250");
    assert_eq!(port.state, State::Warning);
    assert_eq!(port.needed_for, [Purpose::Node]);
}

#[test]
fn this_machine_can_be_looked_at_twice_with_the_same_answer() {
    let look = || -> Vec<(String, State)> {
        observe_and_judge()
            .into_iter()
            // Ports belong to whoever runs at the moment.
            .filter(|finding| finding.area != Area::Ports)
            .map(|finding| (finding.id, finding.state))
            .collect()
    };
    let first = look();
    assert!(first.len() > 8);
    assert_eq!(look(), first);
    let mut ids: Vec<&String> = first.iter().map(|(id, _)| id).collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "every finding has an id of its own");
}
