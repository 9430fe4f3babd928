//! Doing work inside of the namespaces of another process. Only a short-lived thread ever enters,
//! so the test's own threads never leave the machine's namespaces.

use std::thread;

use anyhow::{Context as _, Result, anyhow};
use fs_err::File;
use nix::sched::{CloneFlags, setns, unshare};

/// The namespaces of a lab or a host, held open by this process alone.
#[derive(Debug)]
pub(crate) struct Namespaces {
    mount: File,
    network: File,
    names: File,
    messages: File,
    processes: File,
}

/// Which namespaces a piece of work has to be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything: what runs there is a process of that host.
    Everything,
    /// Only the network: programs, files and process ids are still the machine's.
    Network,
    /// Only mounts: what is mounted there lasts as long as the namespace.
    Mounts,
}

impl Namespaces {
    /// Opens the namespaces of process `id`, and the process namespace that its children are in.
    pub(crate) fn of(id: u32) -> Result<Self> {
        let open = |kind: &str| File::open(format!("/proc/{id}/ns/{kind}"));
        let opened: std::io::Result<Self> = (|| {
            Ok(Self {
                mount: open("mnt")?,
                network: open("net")?,
                names: open("uts")?,
                messages: open("ipc")?,
                processes: open("pid_for_children")?,
            })
        })();
        opened.with_context(|| format!("could not open the namespaces of process {id}"))
    }

    /// Runs `work` in a thread of its own that has entered the namespaces.
    pub(crate) fn enter<T: Send>(
        &self,
        scope: Scope,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        thread::scope(|threads| {
            let thread = threads.spawn(|| {
                self.move_this_thread(scope)
                    .context("could not enter the namespaces")?;
                work()
            });
            thread
                .join()
                .map_err(|_| anyhow!("the thread inside of the namespaces panicked"))?
        })
    }

    /// The identity of the process namespace, as `/proc/<pid>/ns/pid` shows it.
    pub(crate) fn process_namespace(&self) -> Result<u64> {
        use std::os::unix::fs::MetadataExt as _;
        Ok(self.processes.metadata()?.ino())
    }

    fn move_this_thread(&self, scope: Scope) -> nix::Result<()> {
        if matches!(scope, Scope::Network | Scope::Everything) {
            setns(self.network.file(), CloneFlags::CLONE_NEWNET)?;
        }
        if scope == Scope::Everything {
            setns(self.names.file(), CloneFlags::CLONE_NEWUTS)?;
            setns(self.messages.file(), CloneFlags::CLONE_NEWIPC)?;
            setns(self.processes.file(), CloneFlags::CLONE_NEWPID)?;
        }
        if matches!(scope, Scope::Mounts | Scope::Everything) {
            // Threads share their root and current folder, and the kernel lets only a thread with
            // its own change the mount namespace.
            unshare(CloneFlags::CLONE_FS)?;
            setns(self.mount.file(), CloneFlags::CLONE_NEWNS)?;
        }
        Ok(())
    }
}
