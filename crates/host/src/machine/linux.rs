//! Facts of a Linux machine, from /proc, /etc and the kernel's clocks. No program is started.

use std::io;
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use transom_model::Os;

use super::{
    Counters, Disk, Interface, Load, Machine, MachineError, Memory, Processors, RouteEntry,
    Surroundings, System, counters, facts, network, proc_text,
};

/// File systems that hold no files of people.
const PSEUDO: &[&str] = &[
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "securityfs",
    "sysfs",
    "tracefs",
    "rpc_pipefs",
    "selinuxfs",
];
/// File systems on other machines.
const REMOTE: &[&str] = &[
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "ceph",
    "9p",
    "afs",
    "glusterfs",
    "fuse.sshfs",
];

/// This machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinuxMachine;

impl Machine for LinuxMachine {
    fn os(&self) -> Os {
        Os::Linux
    }

    fn system(&self) -> Result<System, MachineError> {
        let names = rustix::system::uname();
        let kernel = names.release().to_string_lossy().into_owned();
        let release = ["/etc/os-release", "/usr/lib/os-release"]
            .iter()
            .find_map(|path| fs_err::read_to_string(path).ok())
            .map(|text| proc_text::os_release(&text))
            .unwrap_or_default();
        Ok(System {
            os: Os::Linux,
            pretty_name: release
                .get("PRETTY_NAME")
                .or_else(|| release.get("NAME"))
                .cloned()
                .unwrap_or_else(|| format!("Linux {kernel}")),
            kernel,
            arch: names.machine().to_string_lossy().parse().ok(),
            host_name: names.nodename().to_string_lossy().into_owned(),
            windows_version: None,
            edition: None,
            installation: None,
        })
    }

    fn memory(&self) -> Result<Memory, MachineError> {
        parsed("/proc/meminfo", proc_text::memory)
    }

    fn processors(&self) -> Result<Processors, MachineError> {
        let logical = parsed("/proc/stat", |text| {
            Some(proc_text::processor_count(text)).filter(|count| *count > 0)
        })?;
        let allowed = std::thread::available_parallelism()
            .map_err(MachineError::read("the processors of this process"))?;
        Ok(Processors {
            logical,
            allowed: allowed.get(),
        })
    }

    fn load(&self) -> Result<Option<Load>, MachineError> {
        parsed("/proc/loadavg", proc_text::load).map(Some)
    }

    fn counters(&self) -> Counters {
        counters::read()
    }

    fn disks(&self) -> Result<Vec<Disk>, MachineError> {
        let text = read("/proc/self/mountinfo")?;
        Ok(proc_text::mounts(&text)
            .into_iter()
            .filter(|mount| !PSEUDO.contains(&mount.file_system.as_str()))
            .map(disk)
            .collect())
    }

    fn interfaces(&self) -> Result<Vec<Interface>, MachineError> {
        network::interfaces()
    }

    fn routes(&self) -> Result<Vec<RouteEntry>, MachineError> {
        network::routes()
    }

    fn boot_id(&self) -> Result<String, MachineError> {
        parsed("/proc/sys/kernel/random/boot_id", |text| {
            Some(text.trim().to_owned()).filter(|id| !id.is_empty())
        })
    }

    fn uptime(&self) -> Result<Duration, MachineError> {
        let time = clock_gettime(ClockId::Boottime);
        Ok(Duration::new(
            u64::try_from(time.tv_sec).unwrap_or(0),
            u32::try_from(time.tv_nsec).unwrap_or(0),
        ))
    }

    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn time_zone(&self) -> Result<Option<String>, MachineError> {
        if let Ok(target) = fs_err::read_link("/etc/localtime") {
            let target = target.to_string_lossy().into_owned();
            if let Some((_, name)) = target.split_once("zoneinfo/") {
                return Ok(Some(name.to_owned()));
            }
        }
        match fs_err::read_to_string("/etc/timezone") {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|name| !name.is_empty())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(MachineError::Read {
                what: "the time zone".to_owned(),
                source,
            }),
        }
    }

    fn surroundings(&self) -> Result<Surroundings, MachineError> {
        let firmware = ["sys_vendor", "product_name"]
            .iter()
            .filter_map(|name| fs_err::read_to_string(format!("/sys/class/dmi/id/{name}")).ok())
            .map(|text| text.trim().to_owned())
            .collect::<Vec<_>>()
            .join(" ");
        let under_hypervisor = fs_err::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
            text.lines()
                .filter(|line| line.starts_with("flags"))
                .any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
        });
        Ok(Surroundings {
            hypervisor: facts::hypervisor_of(&firmware)
                .or_else(|| under_hypervisor.then(|| "unknown".to_owned())),
            container: container(),
            wine: None,
        })
    }
}

fn disk(mount: proc_text::Mount) -> Disk {
    let remote = REMOTE.contains(&mount.file_system.as_str());
    // A mount point that this user may not enter still is a disk, of unknown size.
    let sizes = (!remote)
        .then(|| rustix::fs::statvfs(&mount.path).ok())
        .flatten();
    Disk {
        size: sizes
            .as_ref()
            .map(|sizes| sizes.f_blocks.saturating_mul(sizes.f_frsize)),
        free: sizes.map(|sizes| sizes.f_bavail.saturating_mul(sizes.f_frsize)),
        mount_point: mount.path.into(),
        file_system: mount.file_system,
        read_only: mount.read_only,
        remote,
    }
}

/// The kind of container around us, by the traces that container tools leave.
fn container() -> Option<String> {
    if let Ok(name) = fs_err::read_to_string("/run/systemd/container") {
        return Some(name.trim().to_owned());
    }
    [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")]
        .iter()
        .find(|(trace, _)| std::path::Path::new(trace).exists())
        .map(|(_, name)| (*name).to_owned())
}

fn read(path: &str) -> Result<String, MachineError> {
    fs_err::read_to_string(path).map_err(MachineError::read(format!("`{path}`")))
}

fn parsed<T>(path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, MachineError> {
    let text = read(path)?;
    parse(&text).ok_or_else(|| MachineError::Unclear {
        what: format!("`{path}`"),
        text: text.chars().take(200).collect(),
    })
}
