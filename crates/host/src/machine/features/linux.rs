//! Looks at a Linux machine. What the kernel can do is found by asking the kernel: link kinds are
//! tried in a network namespace that vanishes with the thread that made it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::io::Errno;
use rustix::net::netlink::NETFILTER;
use rustix::process::{Resource, getrlimit};

use super::super::network::netlink;
use super::super::{Machine as _, Native};
use super::{CgroupFacts, CgroupMode, Finding, LinuxFacts, Runtime, judge_linux, probe_ports};

const LINK_KINDS: &[&str] = &["bridge", "veth", "vxlan", "geneve", "dummy"];
const NAMESPACES: &[&str] = &["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];
const PROGRAM_FOLDERS: &[&str] = &[
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/opt/transom/bin",
];
/// Name, program and sockets.
const RUNTIMES: &[(&str, &str, &[&str])] = &[
    (
        "containerd",
        "containerd",
        &["/run/containerd/containerd.sock"],
    ),
    (
        "docker",
        "dockerd",
        &["/run/docker.sock", "/var/run/docker.sock"],
    ),
    ("cri-o", "crio", &["/run/crio/crio.sock"]),
    ("runc", "runc", &[]),
    ("crun", "crun", &[]),
    ("youki", "youki", &[]),
];
/// Traces of programs that keep the clock right.
const CLOCK_KEEPERS: &[&str] = &[
    "/run/systemd/timesync/synchronized",
    "/run/chrony/chronyd.pid",
    "/run/chronyd.pid",
    "/run/ntpd.pid",
];

/// Looks at this machine and says what it means.
pub fn observe_and_judge() -> Vec<Finding> {
    judge_linux(&observe())
}

/// Looks at this machine.
pub fn observe() -> LinuxFacts {
    let status = fs_err::read_to_string("/proc/self/status").ok();
    LinuxFacts {
        kernel: Native
            .system()
            .map(|system| system.kernel)
            .unwrap_or_default(),
        cgroups: cgroups(),
        missing_namespaces: NAMESPACES
            .iter()
            .filter(|kind| !exists(&format!("/proc/self/ns/{kind}")))
            .map(ToString::to_string)
            .collect(),
        overlay_file_system: overlay(),
        link_kinds: link_kinds(),
        nftables: nftables(),
        nft_program: program("nft"),
        bridge_netfilter: Some(exists("/proc/sys/net/bridge/bridge-nf-call-iptables")),
        forwards_ipv4: proc_number("/proc/sys/net/ipv4/ip_forward").map(|value| value != 0),
        capabilities: status.as_deref().and_then(effective_capabilities),
        seccomp: status
            .as_deref()
            .map(|status| status.lines().any(|line| line.starts_with("Seccomp:"))),
        apparmor: Some(exists("/sys/kernel/security/apparmor")),
        open_files: Some(getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)),
        inotify_instances: proc_number("/proc/sys/fs/inotify/max_user_instances"),
        inotify_watches: proc_number("/proc/sys/fs/inotify/max_user_watches"),
        systemd: exists("/run/systemd/system"),
        runtimes: runtimes(),
        ports: probe_ports(),
        // None of these programs is also no proof that nothing keeps the clock, a hypervisor may.
        clock_synchronised: CLOCK_KEEPERS
            .iter()
            .any(|trace| exists(trace))
            .then_some(true),
        swap_total: Native.memory().map(|memory| memory.swap_total).ok(),
    }
}

fn proc_number(path: &str) -> Option<u64> {
    fs_err::read_to_string(path).ok()?.trim().parse().ok()
}

fn exists(path: &str) -> bool {
    Utf8Path::new(path).exists()
}

fn cgroups() -> CgroupFacts {
    const ROOT: &str = "/sys/fs/cgroup";
    if let Ok(text) = fs_err::read_to_string(format!("{ROOT}/cgroup.controllers")) {
        return CgroupFacts {
            mode: CgroupMode::V2,
            controllers: text.split_whitespace().map(ToOwned::to_owned).collect(),
            writable: Some(is_writable(ROOT)),
        };
    }
    let controllers: Vec<String> = fs_err::read_to_string("/proc/cgroups")
        .map(|text| mounted_controllers(&text))
        .unwrap_or_default()
        .into_iter()
        .filter(|name| exists(&format!("{ROOT}/{name}")))
        .collect();
    let mode = match (controllers.is_empty(), exists(&format!("{ROOT}/unified"))) {
        (true, _) => CgroupMode::None,
        (false, true) => CgroupMode::Hybrid,
        (false, false) => CgroupMode::V1,
    };
    CgroupFacts {
        mode,
        writable: (mode != CgroupMode::None).then(|| {
            controllers
                .iter()
                .all(|name| is_writable(&format!("{ROOT}/{name}")))
        }),
        controllers,
    }
}

/// Reads `/proc/cgroups`: names of controllers in a hierarchy of their own that are enabled.
fn mounted_controllers(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [name, hierarchy, _, enabled] = fields[..] else {
                return None;
            };
            (hierarchy != "0" && enabled == "1").then(|| name.to_owned())
        })
        .collect()
}

fn is_writable(path: &str) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

fn overlay() -> Option<bool> {
    let text = fs_err::read_to_string("/proc/filesystems").ok()?;
    let known = text
        .lines()
        .any(|line| line.split_whitespace().last() == Some("overlay"));
    // A module that is not loaded yet is no proof of absence, unless there are no modules.
    if known || !exists("/proc/modules") {
        return Some(known);
    }
    None
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn program(name: &str) -> Option<Utf8PathBuf> {
    PROGRAM_FOLDERS
        .iter()
        .map(|folder| Utf8Path::new(folder).join(name))
        .find(|path| rustix::fs::access(path.as_std_path(), rustix::fs::Access::EXEC_OK).is_ok())
}

fn runtimes() -> Vec<Runtime> {
    RUNTIMES
        .iter()
        .map(|(name, file, sockets)| Runtime {
            name: (*name).to_owned(),
            program: program(file),
            socket: sockets
                .iter()
                .find(|socket| exists(socket))
                .map(|socket| Utf8PathBuf::from(*socket)),
        })
        .filter(|runtime| runtime.program.is_some() || runtime.socket.is_some())
        .collect()
}

/// Asks for the generation of the rule set, which changes nothing.
fn nftables() -> Option<bool> {
    const GET_GENERATION: u16 = (10 << 8) | 16;
    match netlink::ask(Some(NETFILTER), GET_GENERATION, 0, &[0; 4]) {
        Ok(()) => Some(true),
        Err(error) if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => None,
        Err(error) if error.kind() == io::ErrorKind::TimedOut => None,
        Err(_) => Some(false),
    }
}

/// Tries each kind in a namespace of its own. Needs the right to make one; without it all is unknown.
fn link_kinds() -> Vec<(String, Option<bool>)> {
    let tried = std::thread::spawn(|| {
        // Only this thread moves to the new namespace, which vanishes when the thread ends.
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).ok()?;
        Some(
            LINK_KINDS
                .iter()
                .map(|kind| can_make_link(kind))
                .collect::<Vec<_>>(),
        )
    })
    .join()
    .ok()
    .flatten();
    let tried = tried.unwrap_or_else(|| vec![None; LINK_KINDS.len()]);
    LINK_KINDS
        .iter()
        .map(ToString::to_string)
        .zip(tried)
        .collect()
}

/// Only a kernel without the kind says "not supported"; others may still miss details we left out.
fn can_make_link(kind: &str) -> Option<bool> {
    const NEW_LINK: u16 = 16;
    const CREATE_EXCLUSIVELY: u16 = 0x600;
    match netlink::ask(None, NEW_LINK, CREATE_EXCLUSIVELY, &new_link(kind)) {
        Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => Some(false),
        Err(error) if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => None,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        Ok(()) | Err(_) => Some(true),
    }
}

/// The body of a request for a link: an empty header and the kind, two attributes deep.
fn new_link(kind: &str) -> Vec<u8> {
    const HEADER: usize = 16;
    const LINK_INFO: u16 = 18;
    const INFO_KIND: u16 = 1;
    let mut name = kind.as_bytes().to_vec();
    name.push(0);
    let mut body = vec![0; HEADER];
    body.extend(attribute(LINK_INFO, &attribute(INFO_KIND, &name)));
    body
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = Vec::new();
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_outside_a_hierarchy_do_not_count() {
        let text = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n\
                    cpu\t1\t2\t1\nmemory\t4\t15\t0\nnet_cls\t0\t1\t1\npids\t8\t2\t1\nodd\n";
        assert_eq!(mounted_controllers(text), ["cpu", "pids"]);
    }

    #[test]
    fn capabilities_are_read_in_hexadecimal() {
        assert_eq!(
            effective_capabilities("Name:\tx\nCapEff:\t000001fffeffffff\n"),
            Some(0x1ff_feff_ffff)
        );
        assert_eq!(effective_capabilities("CapEff:\tmany\n"), None);
    }

    #[test]
    fn a_kind_that_no_kernel_has_is_told_from_one_that_all_have() {
        let told = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).ok()?;
            Some((can_make_link("no-such-kind"), can_make_link("bridge")))
        })
        .join()
        .unwrap();
        // Without the right to make a namespace there is nothing to tell.
        if let Some(told) = told {
            assert_eq!(told.0, Some(false));
            assert!(told.1.is_some());
        }
    }
}
