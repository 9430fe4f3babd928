//! The helpers of a shim, which use libcontainer and end: one runs a container, one runs a program in it.
//!
//! What becomes of it is written to the report, a pipe that the program's start closes: `pid N` first, then
//! why it could not be started, if so.

#![expect(
    unsafe_code,
    reason = "a descriptor that was inherited is known by its number only"
)]

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};

use camino::Utf8PathBuf;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::super::executor::{LastSteps, capability};
use super::super::launch::Launch;
use super::super::records::{CONTAINERS, STATES};
use super::super::seccomp::Filter;
use crate::Seccomp;

/// Runs the container whose folder is prepared, below the working directory.
pub(super) fn run(report: &str, container: &str, console: Option<&str>) -> Result<(), String> {
    let report = Report::take(report)?;
    report.tell(start(&report, container, console))
}

/// Runs the program of `process`, a file, in a container that runs.
pub(super) fn exec(
    report: &str,
    container: &str,
    process: &str,
    console: Option<&str>,
) -> Result<(), String> {
    let report = Report::take(report)?;
    report.tell(join(&report, container, process, console))
}

struct Report(File);

impl Report {
    fn take(number: &str) -> Result<Self, String> {
        let number = number
            .parse()
            .map_err(|_| format!("{number:?} is no descriptor"))?;
        // SAFETY: the shim left this descriptor open for us, and nobody else here knows of it.
        Ok(Self(unsafe { File::from_raw_fd(number) }))
    }

    fn started(&self, pid: i32) -> Result<(), String> {
        (&self.0)
            .write_all(format!("pid {pid}\n").as_bytes())
            .map_err(|error| error.to_string())
    }

    fn tell(&self, result: Result<(), String>) -> Result<(), String> {
        if let Err(error) = &result {
            (&self.0)
                .write_all(error.as_bytes())
                .map_err(|error| error.to_string())?;
        }
        result
    }
}

fn last_steps(launch: &Launch, report: &Report) -> Result<LastSteps, String> {
    let capabilities = launch
        .capabilities
        .iter()
        .filter_map(|name| capability(name))
        .collect();
    let filter = match &launch.seccomp {
        Seccomp::Unconfined => None,
        Seccomp::RuntimeDefault => Some(Filter::default_for(&capabilities)?),
        Seccomp::Localhost(path) => {
            let text = fs_err::read(path).map_err(|error| error.to_string())?;
            Some(
                Filter::from_profile(&text)
                    .map_err(|error| format!("seccomp profile {path}: {error}"))?,
            )
        }
    };
    Ok(LastSteps {
        capabilities,
        filter,
        report: report.0.as_raw_fd(),
    })
}

fn start(report: &Report, container: &str, console: Option<&str>) -> Result<(), String> {
    let folder = current_folder()?.join(CONTAINERS).join(container);
    let launch = Launch::read(&folder)?;
    let steps = last_steps(&launch, report)?;
    // The container's own mounts begin here: they are nobody else's, and go with its last process.
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(|error| format!("no namespace for mounts: {error}"))?;
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_SLAVE,
        None::<&str>,
    )
    .map_err(|error| format!("mounts cannot be made private: {error}"))?;
    launch.mount_root(&folder)?;
    let mut created = builder(container)?
        .with_executor(steps)
        .with_console_socket(console)
        .as_init(folder.as_std_path())
        .with_systemd(false)
        .with_detach(true)
        .build()
        .map_err(|error| describe(&error))?;
    let pid = created
        .pid()
        .ok_or_else(|| "the container has no process".to_owned())?;
    report.started(pid.as_raw())?;
    created.start().map_err(|error| describe(&error))
}

fn join(
    report: &Report,
    container: &str,
    process: &str,
    console: Option<&str>,
) -> Result<(), String> {
    let folder = current_folder()?.join(CONTAINERS).join(container);
    let launch = Launch::read(&folder)?;
    let steps = last_steps(&launch, report)?;
    let pid = builder(container)?
        .with_executor(steps)
        .with_console_socket(console)
        .as_tenant()
        .with_detach(true)
        .with_process(Some(process))
        .build()
        .map_err(|error| describe(&error))?;
    report.started(pid.as_raw())
}

fn builder(container: &str) -> Result<ContainerBuilder, String> {
    let states = current_folder()?.join(STATES);
    ContainerBuilder::new(container.to_owned(), SyscallType::default())
        .with_root_path(states.as_std_path())
        .map_err(|error| describe(&error))
}

fn current_folder() -> Result<Utf8PathBuf, String> {
    let folder = std::env::current_dir().map_err(|error| error.to_string())?;
    Utf8PathBuf::from_path_buf(folder)
        .map_err(|_| "the folder of the pod is not Unicode".to_owned())
}

/// The whole chain of an error: libcontainer tells the cause last.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
