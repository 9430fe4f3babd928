//! What the facts of a Linux machine mean for a cluster.

use super::super::{Area, Capability, CgroupMode, Finding, LinuxFacts, Purpose, Runtime, State};
use super::{finding, judge_ports, presence, yes_no};

/// The oldest kernel with all that the embedded runtime uses.
const OLDEST_KERNEL: (u32, u32) = (4, 18);
/// From here on every cgroup v2 controller we use is there.
const GOOD_KERNEL: (u32, u32) = (5, 8);
const CONTROLLERS: &[&str] = &["cpu", "cpuset", "memory", "pids"];
const ENOUGH_FILES: u64 = 65_536;
const ENOUGH_INSTANCES: u64 = 512;
const ENOUGH_WATCHES: u64 = 65_536;

/// Without these a node cannot start containers.
const NEEDED: &[Capability] = &[
    Capability {
        name: "CHOWN",
        bit: 0,
    },
    Capability {
        name: "DAC_OVERRIDE",
        bit: 1,
    },
    Capability {
        name: "KILL",
        bit: 5,
    },
    Capability {
        name: "SETGID",
        bit: 6,
    },
    Capability {
        name: "SETUID",
        bit: 7,
    },
    Capability {
        name: "NET_BIND_SERVICE",
        bit: 10,
    },
    Capability {
        name: "NET_ADMIN",
        bit: 12,
    },
    Capability {
        name: "NET_RAW",
        bit: 13,
    },
    Capability {
        name: "SYS_CHROOT",
        bit: 18,
    },
    Capability {
        name: "SYS_ADMIN",
        bit: 21,
    },
    Capability {
        name: "MKNOD",
        bit: 27,
    },
];
/// Without these some requests of pods are cut down.
const USEFUL: &[Capability] = &[
    Capability {
        name: "SYS_PTRACE",
        bit: 19,
    },
    Capability {
        name: "SYS_RESOURCE",
        bit: 24,
    },
];
/// Kinds of links, what they are for, and how much it means that one is missing.
const LINKS: &[(&str, Purpose, State)] = &[
    ("bridge", Purpose::PodNetwork, State::Missing),
    ("veth", Purpose::PodNetwork, State::Missing),
    ("vxlan", Purpose::Overlay, State::Warning),
    ("geneve", Purpose::Overlay, State::Warning),
    ("dummy", Purpose::ServiceNetwork, State::Warning),
];

/// What the facts mean, in the order in which a person would ask.
pub fn judge_linux(facts: &LinuxFacts) -> Vec<Finding> {
    let mut findings = vec![kernel(facts), namespaces(facts), overlay(facts)];
    findings.extend(cgroups(facts));
    findings.extend(capabilities(facts));
    findings.extend(network(facts));
    findings.extend(security(facts));
    findings.extend(limits(facts));
    findings.extend(surroundings(facts));
    findings.extend(runtimes(&facts.runtimes));
    findings.extend(judge_ports(&facts.ports));
    findings
}

fn kernel(facts: &LinuxFacts) -> Finding {
    let state = match release_of(&facts.kernel) {
        None => State::Unknown,
        Some(release) if release < OLDEST_KERNEL => State::Missing,
        Some(release) if release < GOOD_KERNEL => State::Warning,
        Some(_) => State::Ok,
    };
    finding("kernel", Area::Kernel, "kernel", state, &facts.kernel)
        .needed_for(&[Purpose::Containers])
        .otherwise("use a kernel from 5.8 on; containers need 4.18 at least")
}

fn release_of(kernel: &str) -> Option<(u32, u32)> {
    let mut numbers = kernel.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn namespaces(facts: &LinuxFacts) -> Finding {
    let missing = &facts.missing_namespaces;
    let (state, detail) = if missing.is_empty() {
        (State::Ok, "all kinds".to_owned())
    } else {
        (State::Missing, format!("without {}", missing.join(", ")))
    };
    finding("namespaces", Area::Kernel, "namespaces", state, detail)
        .needed_for(&[Purpose::Containers])
        .otherwise("use a kernel that is built with these namespaces")
}

fn overlay(facts: &LinuxFacts) -> Finding {
    let seen = facts.overlay_file_system;
    finding(
        "overlayfs",
        Area::Kernel,
        "overlay file system",
        presence(seen, State::Missing),
        yes_no(seen),
    )
    .needed_for(&[Purpose::Containers])
    .otherwise("load the kernel module `overlay`")
}

fn cgroups(facts: &LinuxFacts) -> Vec<Finding> {
    let cgroups = &facts.cgroups;
    let (state, mode) = match cgroups.mode {
        CgroupMode::V2 => (State::Ok, "version 2"),
        CgroupMode::V1 => (State::Warning, "version 1"),
        CgroupMode::Hybrid => (State::Warning, "version 1, with version 2 beside it"),
        CgroupMode::None => (State::Missing, "none mounted"),
    };
    let missing: Vec<&str> = CONTROLLERS
        .iter()
        .copied()
        .filter(|name| !cgroups.controllers.iter().any(|there| there == name))
        .collect();
    let (controllers, detail) = if missing.is_empty() {
        (State::Ok, CONTROLLERS.join(", "))
    } else {
        (State::Missing, format!("without {}", missing.join(", ")))
    };
    vec![
        finding("cgroup-version", Area::Resources, "control groups", state, mode)
            .needed_for(&[Purpose::Containers, Purpose::Limits])
            .otherwise("boot with `systemd.unified_cgroup_hierarchy=1` for version 2; version 1 works, without pressure figures"),
        finding("cgroup-controllers", Area::Resources, "control group controllers", controllers, detail)
            .needed_for(&[Purpose::Limits])
            .otherwise("enable these controllers on the kernel's command line, for example `cgroup_enable=memory`"),
        finding(
            "cgroup-writable",
            Area::Resources,
            "control groups can be made",
            presence(cgroups.writable, State::Missing),
            yes_no(cgroups.writable),
        )
        .needed_for(&[Purpose::Containers, Purpose::Limits])
        .otherwise("run as root, and in a container with a writable /sys/fs/cgroup"),
    ]
}

fn capabilities(facts: &LinuxFacts) -> Vec<Finding> {
    let judge = |id: &str, what: &str, wanted: &[Capability], absent: State| {
        let Some(have) = facts.capabilities else {
            return finding(
                id,
                Area::Security,
                what,
                State::Unknown,
                "could not be seen",
            );
        };
        let missing: Vec<&str> = wanted
            .iter()
            .filter(|capability| have & (1 << capability.bit) == 0)
            .map(|capability| capability.name)
            .collect();
        if missing.is_empty() {
            finding(id, Area::Security, what, State::Ok, "all")
        } else {
            finding(
                id,
                Area::Security,
                what,
                absent,
                format!("without {}", missing.join(", ")),
            )
        }
    };
    vec![
        judge("capabilities", "capabilities of this process", NEEDED, State::Missing)
            .needed_for(&[Purpose::Containers, Purpose::PodNetwork])
            .otherwise("run as root, or grant these capabilities"),
        judge("capabilities-useful", "further capabilities", USEFUL, State::Warning)
            .needed_for(&[Purpose::Limits])
            .otherwise("grant them for negative out-of-memory scores, raised limits and looking into other users' processes; without them such requests are cut down and reported"),
    ]
}

fn network(facts: &LinuxFacts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = LINKS
        .iter()
        .map(|(kind, purpose, absent)| {
            let seen = facts
                .link_kinds
                .iter()
                .find(|(known, _)| known == kind)
                .and_then(|(_, seen)| *seen);
            finding(
                &format!("link-{kind}"),
                Area::Network,
                &format!("links of kind {kind}"),
                presence(seen, *absent),
                yes_no(seen),
            )
            .needed_for(&[*purpose])
            .otherwise(&format!("load the kernel module `{kind}`"))
        })
        .collect();
    findings.push(nftables(facts));
    findings.push(
        finding(
            "bridge-netfilter",
            Area::Network,
            "bridged traffic passes the packet filter",
            presence(facts.bridge_netfilter, State::Warning),
            yes_no(facts.bridge_netfilter),
        )
        .needed_for(&[Purpose::ServiceNetwork])
        .otherwise("load the kernel module `br_netfilter`, for services reached from a pod of the same host"),
    );
    findings.push(
        finding(
            "ip-forward",
            Area::Network,
            "IPv4 forwarding",
            presence(facts.forwards_ipv4, State::Warning),
            yes_no(facts.forwards_ipv4),
        )
        .needed_for(&[Purpose::PodNetwork])
        .otherwise("nothing to do: the agent switches it on; to do it now: `sysctl -w net.ipv4.ip_forward=1`"),
    );
    findings
}

fn nftables(facts: &LinuxFacts) -> Finding {
    let (state, detail) = match (facts.nftables, &facts.nft_program) {
        (Some(false), _) => (State::Missing, "the kernel has none".to_owned()),
        (_, None) => (
            State::Missing,
            "the program `nft` is not installed".to_owned(),
        ),
        (None, Some(program)) => (
            State::Unknown,
            format!("{program}, the kernel's part could not be seen"),
        ),
        (Some(true), Some(program)) => (State::Ok, program.to_string()),
    };
    finding(
        "nftables",
        Area::Network,
        "packet filter nftables",
        state,
        detail,
    )
    .needed_for(&[Purpose::ServiceNetwork])
    .otherwise("install the package `nftables`, on a kernel with `nf_tables`")
}

fn security(facts: &LinuxFacts) -> Vec<Finding> {
    vec![
        finding(
            "seccomp",
            Area::Security,
            "system call filters (seccomp)",
            presence(facts.seccomp, State::Warning),
            yes_no(facts.seccomp),
        )
        .needed_for(&[Purpose::Containers])
        .otherwise("use a kernel with seccomp; without it the profiles of pods are refused"),
        finding(
            "apparmor",
            Area::Security,
            "AppArmor",
            presence(facts.apparmor, State::Warning),
            yes_no(facts.apparmor),
        )
        .needed_for(&[Purpose::Containers])
        .otherwise("boot with `apparmor=1` if pods ask for AppArmor profiles; others need nothing"),
    ]
}

fn limits(facts: &LinuxFacts) -> Vec<Finding> {
    let judge = |id: &str, what: &str, seen: Option<u64>, enough: u64, purpose, way: &str| {
        let (state, detail) = match seen {
            None => (State::Unknown, "could not be seen".to_owned()),
            Some(seen) if seen < enough => {
                (State::Warning, format!("{seen}, {enough} are advised"))
            }
            Some(seen) => (State::Ok, seen.to_string()),
        };
        finding(id, Area::Resources, what, state, detail)
            .needed_for(&[purpose])
            .otherwise(way)
    };
    vec![
        judge(
            "open-files",
            "files that a process may open",
            facts.open_files,
            ENOUGH_FILES,
            Purpose::Server,
            "raise the hard limit `nofile`; the server derives its limits from what there is",
        ),
        judge(
            "inotify-instances",
            "file watchers per user",
            facts.inotify_instances,
            ENOUGH_INSTANCES,
            Purpose::Node,
            "set `fs.inotify.max_user_instances=512` or more with sysctl",
        ),
        judge(
            "inotify-watches",
            "watched files per user",
            facts.inotify_watches,
            ENOUGH_WATCHES,
            Purpose::Node,
            "set `fs.inotify.max_user_watches=65536` or more with sysctl",
        ),
    ]
}

fn surroundings(facts: &LinuxFacts) -> Vec<Finding> {
    let (systemd, services) = if facts.systemd {
        (State::Ok, "systemd runs")
    } else {
        (
            State::Ok,
            "systemd does not run: Transom's own supervisor takes its place",
        )
    };
    let (swap, amount) = match facts.swap_total {
        None => (State::Unknown, "could not be seen".to_owned()),
        Some(0) => (State::Ok, "none".to_owned()),
        Some(bytes) => (State::Warning, format!("{} MiB", bytes >> 20)),
    };
    vec![
        finding(
            "systemd",
            Area::System,
            "service manager",
            systemd,
            services,
        )
        .needed_for(&[Purpose::Services]),
        finding("swap", Area::Resources, "swap", swap, amount)
            .needed_for(&[Purpose::Limits])
            .otherwise("switch it off with `swapoff -a` if memory limits of pods must be exact"),
        finding(
            "clock",
            Area::System,
            "clock is kept right",
            match facts.clock_synchronised {
                Some(true) => State::Ok,
                Some(false) => State::Warning,
                None => State::Unknown,
            },
            yes_no(facts.clock_synchronised),
        )
        .needed_for(&[Purpose::Server, Purpose::Node])
        .otherwise("run chrony or systemd-timesyncd: certificates and leases depend on the clock"),
    ]
}

/// Runtimes are an offer, never a need: there is an embedded one.
fn runtimes(found: &[Runtime]) -> Vec<Finding> {
    if found.is_empty() {
        return vec![finding(
            "runtimes",
            Area::Runtimes,
            "container runtimes",
            State::Ok,
            "none found: none is needed",
        )];
    }
    found
        .iter()
        .map(|runtime| {
            let detail = match (&runtime.socket, &runtime.program) {
                (Some(socket), _) => format!("runs, at {socket}"),
                (None, Some(program)) => format!("installed, at {program}"),
                (None, None) => "traces only".to_owned(),
            };
            let id = format!("runtime-{}", runtime.name);
            finding(&id, Area::Runtimes, &runtime.name, State::Ok, detail)
        })
        .collect()
}
