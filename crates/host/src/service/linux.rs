//! Services as systemd units, and running as one. Only units with our mark are touched; `systemctl`
//! gets a bounded time for each answer.
#![expect(
    unsafe_code,
    reason = "signal handlers are installed through a raw call"
)]

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::notify::Notifier;
use super::registration::is_service_name;
use super::run::{Ran, RunError, ServiceMain, StopToken};
use super::unit_file::{is_ours, render_unit, unit_name};
use super::{Registration, ServiceError, ServiceManager, ServiceStatus, Start};

/// Exists exactly while systemd is the first process.
const SYSTEMD_RUNS: &str = "/run/systemd/system";
const UNIT_FOLDER: &str = "/etc/systemd/system";
/// For commands that only read or write files.
const QUICK: Duration = Duration::from_secs(30);
/// How long an uninstallation waits for the service to stop.
const STOP_BEFORE_UNINSTALL: Duration = Duration::from_mins(2);

/// Services as systemd units.
#[derive(Debug, Clone)]
pub struct Systemd {
    units: Utf8PathBuf,
    systemctl: Utf8PathBuf,
}

impl Systemd {
    /// The systemd of this machine.
    pub fn connect() -> Result<Self, ServiceError> {
        if !Utf8Path::new(SYSTEMD_RUNS).is_dir() {
            return Err(ServiceError::NoServiceManager);
        }
        Ok(Self::with_paths(UNIT_FOLDER.into(), "systemctl".into()))
    }

    /// A systemd whose units and command are elsewhere.
    pub fn with_paths(units: Utf8PathBuf, systemctl: Utf8PathBuf) -> Self {
        Self { units, systemctl }
    }

    fn unit_path(&self, name: &str) -> Utf8PathBuf {
        self.units.join(unit_name(name))
    }

    /// The text of a unit in our folder, or None.
    fn unit_text(&self, name: &str) -> Result<Option<String>, ServiceError> {
        match fs_err::read_to_string(self.unit_path(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ServiceError::failed("read", name)(source)),
        }
    }

    fn require_ours(&self, name: &str) -> Result<(), ServiceError> {
        match self.unit_text(name)? {
            Some(text) if is_ours(&text) => Ok(()),
            None if self.status(name)? == ServiceStatus::NotInstalled => {
                Err(ServiceError::NotInstalled {
                    name: name.to_owned(),
                })
            }
            // Someone else's, in this folder or in one of the system's.
            Some(_) | None => Err(ServiceError::Foreign {
                name: name.to_owned(),
            }),
        }
    }

    /// Runs `systemctl` and returns what it printed.
    fn systemctl(
        &self,
        what: &'static str,
        name: &str,
        arguments: &[&str],
        timeout: Duration,
    ) -> Result<String, ServiceError> {
        let failed = |source| ServiceError::failed(what, name)(source);
        let mut child = Command::new(&self.systemctl)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let end = Instant::now() + timeout;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if Instant::now() >= end {
                child.kill().map_err(failed)?;
                child.wait().map_err(failed)?;
                return Err(ServiceError::timeout(what, name, timeout));
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        if !status.success() {
            let mut message = String::new();
            if let Some(errors) = child.stderr.take() {
                errors
                    .take(4096)
                    .read_to_string(&mut message)
                    .map_err(failed)?;
            }
            return Err(ServiceError::Refused {
                what,
                name: name.to_owned(),
                message: message.trim().to_owned(),
            });
        }
        let mut output = String::new();
        if let Some(pipe) = child.stdout.take() {
            pipe.take(64 * 1024)
                .read_to_string(&mut output)
                .map_err(failed)?;
        }
        Ok(output)
    }
}

impl ServiceManager for Systemd {
    fn install(&self, registration: &Registration) -> Result<(), ServiceError> {
        registration.check()?;
        let name = &registration.name;
        if self.unit_text(name)?.is_some_and(|text| !is_ours(&text)) {
            return Err(ServiceError::Foreign { name: name.clone() });
        }
        write_whole(&self.unit_path(name), &render_unit(registration))
            .map_err(ServiceError::failed("install", name))?;
        self.systemctl("install", name, &["daemon-reload"], QUICK)?;
        let verb = match registration.start {
            Start::Auto | Start::DelayedAuto => "enable",
            Start::Manual => "disable",
        };
        self.systemctl("install", name, &[verb, &unit_name(name)], QUICK)?;
        Ok(())
    }

    fn start(&self, name: &str, timeout: Duration) -> Result<(), ServiceError> {
        self.require_ours(name)?;
        self.systemctl("start", name, &["start", &unit_name(name)], timeout)?;
        Ok(())
    }

    fn stop(&self, name: &str, timeout: Duration) -> Result<(), ServiceError> {
        self.require_ours(name)?;
        self.systemctl("stop", name, &["stop", &unit_name(name)], timeout)?;
        Ok(())
    }

    fn status(&self, name: &str) -> Result<ServiceStatus, ServiceError> {
        let properties = "LoadState,ActiveState,MainPID,ExecMainStatus";
        let text = self.systemctl(
            "query",
            name,
            &["show", "--property", properties, &unit_name(name)],
            QUICK,
        )?;
        status_of(&text).ok_or_else(|| ServiceError::Refused {
            what: "query",
            name: name.to_owned(),
            message: text,
        })
    }

    fn uninstall(&self, name: &str) -> Result<(), ServiceError> {
        match self.require_ours(name) {
            Err(ServiceError::NotInstalled { .. }) => return Ok(()),
            other => other?,
        }
        self.stop(name, STOP_BEFORE_UNINSTALL)?;
        self.systemctl("uninstall", name, &["disable", &unit_name(name)], QUICK)?;
        fs_err::remove_file(self.unit_path(name))
            .map_err(ServiceError::failed("uninstall", name))?;
        self.systemctl("uninstall", name, &["daemon-reload"], QUICK)?;
        Ok(())
    }

    fn list_ours(&self) -> Result<Vec<String>, ServiceError> {
        let failed = |source| ServiceError::failed("list", "*")(source);
        let mut names = Vec::new();
        for entry in fs_err::read_dir(&self.units).map_err(failed)? {
            let file = entry.map_err(failed)?.file_name();
            let Some(name) = file.to_str().and_then(|file| file.strip_suffix(".service")) else {
                continue;
            };
            if is_service_name(name) && self.unit_text(name)?.is_some_and(|text| is_ours(&text)) {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }
}

/// Reads the properties that `systemctl show` prints.
fn status_of(text: &str) -> Option<ServiceStatus> {
    let property = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    if property("LoadState")? == "not-found" {
        return Some(ServiceStatus::NotInstalled);
    }
    match property("ActiveState")? {
        "active" | "reloading" | "refreshing" => Some(ServiceStatus::Running {
            process: property("MainPID")
                .and_then(|id| id.parse().ok())
                .filter(|id| *id != 0),
        }),
        "activating" => Some(ServiceStatus::Starting),
        "deactivating" => Some(ServiceStatus::Stopping),
        "inactive" | "failed" | "maintenance" => Some(ServiceStatus::Stopped {
            exit_code: property("ExecMainStatus").and_then(|code| code.parse().ok()),
        }),
        _ => None,
    }
}

/// Puts a file in place in one step, so that systemd never reads half a unit.
fn write_whole(path: &Utf8Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;

    let draft = Utf8PathBuf::from(format!("{path}.transom-new"));
    let mut file = fs_err::File::create(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    drop(file);
    fs_err::rename(&draft, path)
}

/// Runs `main` until it returns; SIGTERM and SIGINT ask it to stop. Systemd, if it started us, is
/// told when the daemon is ready and when it stops. Once per process.
pub fn run_as_service(name: &str, main: ServiceMain) -> Result<Ran, RunError> {
    let notifier = Notifier::from_environment();
    let on_ready = notifier.clone();
    let (ready_name, stop_name) = (name.to_owned(), name.to_owned());
    let token = StopToken::with_ready(move || tell(&ready_name, &on_ready, "READY=1"));
    let fresh = Pipe::open().map_err(|source| RunError::Signals { source })?;
    if PIPE.set(fresh).is_err() {
        return Err(RunError::Twice);
    }
    let pipe = PIPE.get().ok_or(RunError::Twice)?;
    let handlers = Handlers::install().map_err(|source| RunError::Signals { source })?;
    let stop = token.clone();
    let thread = std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || wait_for_signals(pipe, &stop, &stop_name, &notifier))
        .map_err(|source| RunError::Signals { source })?;
    let code = main(token);
    drop(handlers);
    // With a full pipe the thread is awake, and the write is repeated until there is room.
    while rustix::io::write(&pipe.writer, &[DONE]) == Err(rustix::io::Errno::AGAIN) {
        std::thread::yield_now();
    }
    if thread.join().is_err() {
        tracing::error!("the thread that waits for signals panicked");
    }
    Ok(Ran::Finished(code))
}

fn tell(name: &str, notifier: &Notifier, message: &str) {
    if let Err(error) = notifier.send(message) {
        tracing::warn!(name, %error, message, "could not tell systemd");
    }
}

/// What goes through the pipe: a signal came, or the work is done.
const SIGNAL: u8 = 1;
const DONE: u8 = 0;

/// Passes signals on until the work is done.
fn wait_for_signals(pipe: &Pipe, stop: &StopToken, name: &str, notifier: &Notifier) {
    let mut byte = [0_u8; 1];
    loop {
        match rustix::io::read(&pipe.reader, &mut byte) {
            Ok(1) if byte[0] == SIGNAL => {
                if !stop.is_stopped() {
                    tell(name, notifier, "STOPPING=1");
                }
                stop.request_stop();
            }
            Ok(_) => return,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => {
                tracing::error!(%errno, "can no longer listen for signals");
                return;
            }
        }
    }
}

/// Open for the rest of the process, so that a handler can never write into a closed descriptor.
static PIPE: OnceLock<Pipe> = OnceLock::new();

struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    fn open() -> io::Result<Self> {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // A handler must never wait: with a full pipe the request to stop is in it already.
        rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::NONBLOCK)?;
        Ok(Self { reader, writer })
    }
}

/// The handlers that were there before ours; dropping this puts them back.
struct Handlers {
    earlier: Vec<(Signal, SigAction)>,
}

impl Handlers {
    fn install() -> io::Result<Self> {
        let mut handlers = Self {
            earlier: Vec::new(),
        };
        let action = SigAction::new(
            SigHandler::Handler(on_signal),
            SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            // SAFETY: the handler only looks into a cell and writes to a pipe, both allowed in a
            // signal handler.
            let earlier = unsafe { sigaction(signal, &action) }?;
            handlers.earlier.push((signal, earlier));
        }
        Ok(handlers)
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        for (signal, action) in self.earlier.drain(..) {
            // SAFETY: puts back the action that was there before ours.
            if let Err(error) = unsafe { sigaction(signal, &action) } {
                tracing::warn!(%error, %signal, "could not restore a signal handler");
            }
        }
    }
}

extern "C" fn on_signal(_: i32) {
    if let Some(pipe) = PIPE.get() {
        // A full pipe holds a request already; nothing else can be done in a handler.
        let _ = rustix::io::write(&pipe.writer, &[SIGNAL]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_that_systemd_tells_is_understood() {
        let status = |active: &str| {
            status_of(&format!(
                "LoadState=loaded\nActiveState={active}\nMainPID=42\nExecMainStatus=3\n"
            ))
        };
        assert_eq!(
            status("active"),
            Some(ServiceStatus::Running { process: Some(42) })
        );
        assert_eq!(status("activating"), Some(ServiceStatus::Starting));
        assert_eq!(status("deactivating"), Some(ServiceStatus::Stopping));
        assert_eq!(
            status("failed"),
            Some(ServiceStatus::Stopped { exit_code: Some(3) })
        );
        assert_eq!(status("odd"), None);
        assert_eq!(
            status_of("LoadState=not-found\nActiveState=inactive\n"),
            Some(ServiceStatus::NotInstalled)
        );
        assert_eq!(status_of(""), None);
    }
}
