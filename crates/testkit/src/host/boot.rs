//! How a host gets its disk, how it boots from it, how someone logs on to a Windows host, and how its
//! registry gets back to the disk. What is mounted while booting is seen by this host alone.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use fs_err as fs;
use nix::sys::signal::Signal;

use super::Host;
use super::census::{self, Process};
use crate::eventually;
use crate::init::{self, Init};
use crate::lab::Ground;
use crate::namespaces::Namespaces;
use crate::wine::{PREFIX, Wine};

/// How long a Windows host may take to boot.
const WINDOWS_BOOT: Duration = Duration::from_mins(2);

/// How long Wine may take to write its registry.
const WINDOWS_SAVE: Duration = Duration::from_mins(1);

/// Lays an empty disk over the machine's own. Arguments: host name, Wine folder or nothing, prefix.
/// What an installed Transom has on this machine is not there on a new host, nor are the machine's own
/// services: a supervisor that boots a host must find only what the test gave it.
const DISK: &str = r#"
base=/run/hosts/$1
mkdir -p "$base"/{root,upper,work,prefix-upper,prefix-work}
mount -t overlay "disk-$1" -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" "$base/root"
cd "$base/root"
rm -rf opt/transom etc/transom var/lib/transom var/log/transom etc/resolv.conf etc/machine-id etc/hosts \
  etc/systemd/system usr/local/lib/systemd/system usr/lib/systemd/system
echo "$1" > etc/hostname
: > etc/resolv.conf
tr -d - < /proc/sys/kernel/random/uuid > etc/machine-id
if [ -n "$2" ]; then
  mkdir -p ".$2" ".$3"
  mount -o bind,ro "$2" ".$2"
  mount -t overlay "prefix-$1" -o "lowerdir=$2/template,upperdir=$base/prefix-upper,workdir=$base/prefix-work" ".$3"
fi
"#;

/// Turns the disk into the root folder of a running host. Arguments: host name.
const BOOT: &str = r#"
echo "$1" > /proc/sys/kernel/hostname
cd "/run/hosts/$1/root"
mount -t tmpfs -o mode=0755 run run
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=0755 dev dev
for device in null zero full random urandom tty fuse kmsg; do
  [ ! -c /dev/$device ] || cp -a /dev/$device dev/
done
mkdir dev/pts dev/shm dev/net
[ ! -c /dev/net/tun ] || cp -a /dev/net/tun dev/net/
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mount -t proc proc proc
mount -t sysfs sysfs sys
[ ! -d /sys/fs/cgroup ] || mount --rbind /sys/fs/cgroup sys/fs/cgroup
pivot_root . mnt
umount -l /mnt
cat /proc/sys/kernel/random/uuid > /run/.boot-id
mount --bind /run/.boot-id /proc/sys/kernel/random/boot_id
"#;

/// Makes the disk of host `name` in the lab's storage.
pub(super) fn make_disk(ground: &Ground, name: &str, wine: Option<&Wine>) -> Result<()> {
    let folder = wine.map(|wine| {
        wine.folder()
            .to_str()
            .context("the Wine folder is no UTF-8")
    });
    let folder = folder.transpose()?.unwrap_or_default();
    // These separate the options of a mount.
    ensure!(
        !folder.contains([',', ':', '\\']),
        "the Wine folder `{folder}` has a comma, a colon or a backslash in its name"
    );
    init::run_script(&*ground.namespaces()?, DISK, &[name, folder, PREFIX])
}

/// Boots host `name` from its disk; returns its first process and its root folder.
pub(super) fn boot(ground: &Arc<Ground>, name: &str) -> Result<(Init, fs::File)> {
    let title = format!("lab:{}:{name}", ground.name);
    let init = Init::start(Some(&*ground.namespaces()?), &title, BOOT, &[name])?;
    let root = fs::File::open(format!("/proc/{}/root", init.process()))?;
    Ok((init, root))
}

/// Starts a program that stays: services of a Wine prefix end with its last ordinary process. Its
/// prompt shows that the prefix has booted.
pub(super) fn log_on(host: &Host) -> Result<()> {
    let session = host.spawn([r"C:\windows\system32\cmd.exe"])?;
    session
        .wait_for_output(">", WINDOWS_BOOT)
        .context("Windows did not boot")
}

/// Has Wine write the registry to the disk, as Windows does within seconds: Wine keeps it in memory
/// for half a minute, and does not write it when a program asks for that either. Nothing else of the
/// host moves any more, so no program notices that its system ends.
pub(super) fn write_registry(namespaces: &Namespaces) -> Result<()> {
    let (servers, others): (Vec<_>, Vec<_>) = census::members(namespaces)?
        .into_iter()
        .filter(|process| process.host_id != 1)
        .partition(is_wineserver);
    for process in others {
        census::signal(process.id, Signal::SIGSTOP)?;
    }
    for server in servers {
        census::signal(server.id, Signal::SIGTERM)?;
        // In case that the host is paused.
        census::signal(server.id, Signal::SIGCONT)?;
    }
    eventually("the registry to be written", WINDOWS_SAVE, || {
        let running = census::members(namespaces)?
            .into_iter()
            .find(|process| is_wineserver(process) && !process.ended);
        match running {
            Some(server) => bail!("`{server}` is running"),
            None => Ok(()),
        }
    })
}

fn is_wineserver(process: &Process) -> bool {
    process.name.starts_with("wineserver")
}
