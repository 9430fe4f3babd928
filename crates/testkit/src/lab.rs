//! The lab: a switch with hosts on it, held by one keeper process. When the keeper ends, all of its
//! hosts' processes, mounts, links and disks end; and it ends at the latest with the test process.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};
use fs_err as fs;

use crate::host::{Host, census};
use crate::init::{self, Init};
use crate::namespaces::Namespaces;
use crate::network::{self, Subnet};
use crate::wine::Wine;

/// The longest name that Windows takes for a computer.
const LONGEST_NAME: usize = 15;

/// Makes the lab's own storage and its switch. Arguments: commands for `ip`.
const SCRIPT: &str = r#"
mount -t proc proc /proc
mount -t tmpfs -o size=8g,mode=0755 lab /run
mkdir /run/hosts /run/logs
ip -batch - <<< "$1"
echo 1 > /proc/sys/net/ipv4/ip_forward
"#;

/// Hosts on a switch of their own. Dropping it ends them all; when a test panics, it first prints
/// what they said.
///
/// ```no_run
/// # fn main() -> anyhow::Result<()> {
/// use std::time::Duration;
/// use transom_testkit::{Lab, windows_transom_program};
///
/// let lab = Lab::new("example")?;
/// let alpha = lab.linux_host("alpha")?;
/// let beta = lab.windows_host("beta")?;
/// beta.put_file(&windows_transom_program()?, r"C:\Transom\transom.exe")?;
/// let server = beta.spawn([r"C:\Transom\transom.exe", "service", "run"])?;
/// beta.wait_for_tcp(8080, Duration::from_secs(10))?;
/// assert_eq!(alpha.http_get("http://beta:8080/")?.status, 200);
/// server.kill()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Lab {
    ground: Arc<Ground>,
    hosts: Mutex<Vec<Host>>,
}

/// What the hosts of a lab stand on.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) name: String,
    pub(crate) subnet: Subnet,
    keeper: Mutex<Option<Init>>,
    /// The lab's storage in memory, seen only from the keeper's mounts and through this handle.
    storage: fs::File,
    logs: AtomicU32,
}

impl Lab {
    /// Makes a lab without hosts. `name` is for process lists and messages.
    pub fn new(name: &str) -> Result<Self> {
        init::check_machine()?;
        let subnet = Subnet::pick()?;
        let commands = network::switch_commands(subnet);
        let keeper = Init::start(None, &format!("lab:{name}"), SCRIPT, &[&commands])?;
        let storage = fs::File::open(format!("/proc/{}/root/run", keeper.process()))?;
        let ground = Ground {
            name: name.to_owned(),
            subnet,
            keeper: Mutex::new(Some(keeper)),
            storage,
            logs: AtomicU32::new(0),
        };
        Ok(Self {
            ground: Arc::new(ground),
            hosts: Mutex::default(),
        })
    }

    /// Adds a Linux host and starts it.
    pub fn linux_host(&self, name: &str) -> Result<Host> {
        self.add(name, None)
    }

    /// Adds a Windows host and starts it; it has booted when this returns.
    pub fn windows_host(&self, name: &str) -> Result<Host> {
        self.add(name, Some(Wine::find()?))
    }

    /// What every process of the lab said last, and the state of each host.
    pub fn logs(&self) -> String {
        let mut text = format!("lab `{}`\n", self.ground.name);
        for host in lock(&self.hosts).iter() {
            let _ = writeln!(text, "{}", host.report());
        }
        text
    }

    fn add(&self, name: &str, wine: Option<Wine>) -> Result<Host> {
        check_name(name)?;
        let host = {
            let mut hosts = lock(&self.hosts);
            ensure!(
                !hosts.iter().any(|host| host.name() == name),
                "there is a host `{name}`"
            );
            let address = self.ground.subnet.host(hosts.len())?;
            let host = Host::new(Arc::clone(&self.ground), name, address, wine)
                .with_context(|| format!("could not make the disk of host `{name}`"))?;
            hosts.push(host.clone());
            let known: Vec<(&str, Ipv4Addr)> = hosts
                .iter()
                .map(|host| (host.name(), host.address()))
                .collect();
            for host in hosts.iter() {
                host.write("/etc/hosts", render_hosts(&known))?;
            }
            host
        };
        host.start()
            .with_context(|| format!("could not start host `{name}`"))?;
        Ok(host)
    }

    /// Ends every process of the lab and returns when all of them are gone.
    fn close(&self) -> Result<()> {
        let Some(keeper) = lock(&self.ground.keeper).take() else {
            return Ok(());
        };
        let hosts = lock(&self.hosts);
        let namespaces = Arc::clone(&keeper.namespaces);
        keeper.destroy(|| hosts.iter().for_each(Host::reap))?;
        hosts.iter().for_each(Host::forget);
        let left = census::members(&namespaces)?;
        ensure!(left.is_empty(), "these processes are left: {left:?}");
        Ok(())
    }
}

impl Drop for Lab {
    #[expect(
        clippy::print_stderr,
        reason = "a failing test shows what its hosts said"
    )]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.logs());
        }
        match self.close() {
            Ok(()) => {}
            Err(error) if thread::panicking() => eprintln!("could not end the lab: {error:#}"),
            Err(error) => panic!("could not end lab `{}`: {error:#}", self.ground.name),
        }
    }
}

impl Ground {
    /// The namespaces of the keeper: its network is the switch, its mounts hold the disks.
    pub(crate) fn namespaces(&self) -> Result<Arc<Namespaces>> {
        match lock(&self.keeper).as_ref() {
            Some(keeper) => Ok(Arc::clone(&keeper.namespaces)),
            None => bail!("lab `{}` has ended", self.name),
        }
    }

    /// Where this process finds `below`, a path of the lab's storage.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        handle_path(&self.storage).join(below)
    }

    /// Makes the two files for the output of a program.
    pub(crate) fn new_logs(&self, host: &str, program: &str) -> Result<[fs::File; 2]> {
        let number = self.logs.fetch_add(1, Ordering::Relaxed);
        let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
        let make = |stream: &str| {
            let path = self.path(&format!("logs/{host}-{number}-{name}.{stream}"));
            fs::OpenOptions::new()
                .create_new(true)
                .read(true)
                .append(true)
                .open(path)
        };
        Ok([make("stdout")?, make("stderr")?])
    }
}

/// The path through which any process of the machine reaches an open folder of this one.
pub(crate) fn handle_path(folder: &fs::File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    PathBuf::from(format!(
        "/proc/{}/fd/{}",
        std::process::id(),
        folder.as_raw_fd()
    ))
}

/// Locks, also after a panic elsewhere: a failing test must still be able to clean up.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_name(name: &str) -> Result<()> {
    let allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let inner = |letter: char| allowed(letter) || letter == '-';
    ensure!(
        name.starts_with(allowed) && name.ends_with(allowed) && name.chars().all(inner),
        "`{name}` is no host name: use a-z, 0-9 and hyphens between them"
    );
    ensure!(
        name.len() <= LONGEST_NAME,
        "`{name}` is too long: Windows host names have at most {LONGEST_NAME} characters"
    );
    Ok(())
}

fn render_hosts(hosts: &[(&str, Ipv4Addr)]) -> String {
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for (name, address) in hosts {
        let _ = writeln!(text, "{address} {name}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_those_that_both_systems_take() {
        for name in ["a", "alpha", "node-1", "0", "fifteen-letters"] {
            check_name(name).unwrap();
        }
        for name in [
            "",
            "Alpha",
            "-a",
            "a-",
            "a.b",
            "a b",
            "../x",
            "ä",
            "sixteen-letters-",
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("sixteen-letter-s").is_err());
    }
}
