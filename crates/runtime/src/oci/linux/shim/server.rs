//! The loop of a shim: whatever is ready is done, then it waits again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;

use camino::Utf8Path;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::protocol::{Call, Channel, Reply, Request, VERSION};
use super::super::records::{self, PodRecord, SOCKET};
use super::client::{Client, Role};
use super::container::{Container, exit_code};
use super::launching::Launching;
use super::program::Program;
use super::{complain, namespaces, rest};
use crate::logs::Stream;

const MOST_CLIENTS: usize = 256;
/// While somebody is behind, or before a rest, time has to pass.
const TICK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Who can become ready.
#[derive(Clone, Debug)]
enum Source {
    Signals,
    Listener,
    Client(u64),
    Report(u64),
    Console(u64),
    Output(String),
    Errors(String),
    Input(String),
}

pub(super) struct Shim {
    listener: UnixListener,
    signals: SignalFd,
    pub(super) program: Program,
    pub(super) arguments: Vec<String>,
    pub(super) clients: BTreeMap<u64, Client>,
    pub(super) containers: BTreeMap<String, Container>,
    pub(super) launching: BTreeMap<u64, Launching>,
    /// Ends of processes that nobody knows yet: their helper has not told of them.
    pub(super) strays: BTreeMap<i32, i32>,
    first_process: Option<i32>,
    next: u64,
    pub(super) closing: bool,
    /// Nothing happened for a while.
    is_at_rest: bool,
}

/// Serves a pod until it is told to end. The first line of standard output says that it is ready.
pub(super) fn run(folder: &str) -> Result<(), String> {
    wait_for_group().map_err(|error| error.to_string())?;
    let told = prepare(folder);
    let mut output = io::stdout();
    let line = match &told {
        Ok(shim) => format!("ready {}\n", shim.first_process.unwrap_or(0)),
        Err(error) => format!("{error}\n"),
    };
    output
        .write_all(line.as_bytes())
        .and_then(|()| output.flush())
        .map_err(|error| error.to_string())?;
    let mut shim = told?;
    let null = File::options()
        .write(true)
        .open("/dev/null")
        .map_err(|error| error.to_string())?;
    rustix::stdio::dup2_stdout(&null).map_err(|error| error.to_string())?;
    drop(null);
    // What is being started when the end is asked for is waited for, and killed when it comes.
    while !shim.closing
        || !shim.launching.is_empty()
        || shim.containers.values().any(Container::is_running)
    {
        shim.turn()?;
    }
    if let Some(pid) = shim.first_process {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    drop(fs_err::remove_file(SOCKET));
    Ok(())
}

/// The agent closes our standard input when we are in the control group of shims: a process that we started before would
/// not be in it.
fn wait_for_group() -> io::Result<()> {
    io::copy(&mut io::stdin(), &mut io::sink())?;
    let null = fs_err::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(())
}

fn prepare(folder: &str) -> Result<Shim, String> {
    let failed = |error: nix::Error| error.to_string();
    nix::unistd::chdir(folder).map_err(failed)?;
    nix::unistd::setsid().map_err(failed)?;
    nix::sys::prctl::set_child_subreaper(true).map_err(failed)?;
    let record: PodRecord = records::read(Utf8Path::new("pod.json"))
        .map_err(|error| error.to_string())?
        .ok_or_else(|| format!("there is no pod in {folder}"))?;
    let mut signals = SigSet::empty();
    for signal in [
        Signal::SIGCHLD,
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGPIPE,
    ] {
        signals.add(signal);
    }
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), None).map_err(failed)?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        .map_err(failed)?;
    namespaces::enter(&record.spec)?;
    drop(fs_err::remove_file(SOCKET));
    let listener = UnixListener::bind(SOCKET).map_err(|error| format!("no socket: {error}"))?;
    listener
        .set_nonblocking(true)
        .map_err(|error| error.to_string())?;
    let mut shim = Shim {
        listener,
        signals,
        program: Program::own(),
        arguments: own_arguments(),
        clients: BTreeMap::new(),
        containers: BTreeMap::new(),
        launching: BTreeMap::new(),
        strays: BTreeMap::new(),
        first_process: None,
        next: 0,
        closing: false,
        is_at_rest: false,
    };
    if record.spec.share_processes && !record.spec.host_pid {
        shim.first_process = Some(shim.hold_processes()?);
    }
    Ok(shim)
}

/// The arguments that lead a re-executed binary to where we are: all before `pod`.
fn own_arguments() -> Vec<String> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.truncate(arguments.len().saturating_sub(2));
    arguments
}

impl Shim {
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Waits for something to happen, and does all that can be done.
    fn turn(&mut self) -> Result<(), String> {
        let someone_is_behind = self.clients.values().any(Client::has_pending);
        let timeout = (someone_is_behind || !self.is_at_rest).then_some(&TICK);
        let mut sources = self.sources();
        sources.retain(|(source, _)| self.descriptor(source).is_some());
        let mut descriptors: Vec<PollFd<'_>> = sources
            .iter()
            .filter_map(|(source, flags)| {
                let descriptor = self.descriptor(source)?;
                Some(PollFd::from_borrowed_fd(descriptor, *flags))
            })
            .collect();
        let woken = match poll(&mut descriptors, timeout) {
            Ok(count) => count > 0,
            Err(rustix::io::Errno::INTR) => false,
            Err(error) => return Err(format!("cannot wait: {error}")),
        };
        let ready: Vec<(Source, PollFlags)> = sources
            .into_iter()
            .zip(&descriptors)
            .map(|((source, _), descriptor)| (source, descriptor.revents()))
            .filter(|(_, events)| !events.is_empty())
            .collect();
        drop(descriptors);
        if !woken && !self.is_at_rest && !someone_is_behind {
            rest::give_back_pages();
        }
        self.is_at_rest = !woken && !someone_is_behind;
        for (source, events) in ready {
            self.serve(&source, events);
        }
        let stalled: Vec<u64> = self
            .clients
            .iter()
            .filter(|(_, client)| client.is_stalled())
            .map(|(number, _)| *number)
            .collect();
        for number in stalled {
            if let Some(client) = self.clients.remove(&number) {
                self.hang_up(&client);
            }
        }
        self.clients
            .retain(|_, client| !client.closing || client.has_pending());
        if self.launching.is_empty() {
            self.strays.clear();
        }
        Ok(())
    }

    fn sources(&self) -> Vec<(Source, PollFlags)> {
        let mut sources = vec![(Source::Signals, PollFlags::IN)];
        if self.clients.len() < MOST_CLIENTS {
            sources.push((Source::Listener, PollFlags::IN));
        }
        for (number, client) in &self.clients {
            let mut flags = PollFlags::empty();
            if self.may_speak(client) {
                flags |= PollFlags::IN;
            }
            if client.has_pending() {
                flags |= PollFlags::OUT;
            }
            sources.push((Source::Client(*number), flags));
        }
        for (number, launching) in &self.launching {
            sources.push((Source::Report(*number), PollFlags::IN));
            if launching.console.is_some() && launching.terminal.is_none() {
                sources.push((Source::Console(*number), PollFlags::IN));
            }
        }
        for (id, container) in &self.containers {
            let is_held_up = self
                .clients
                .values()
                .any(|client| client.is_full() && is_attached(client, id));
            if container.output.is_some() && !is_held_up {
                sources.push((Source::Output(id.clone()), PollFlags::IN));
            }
            if container.errors.is_some() && !is_held_up {
                sources.push((Source::Errors(id.clone()), PollFlags::IN));
            }
            if container.has_input_pending() {
                sources.push((Source::Input(id.clone()), PollFlags::OUT));
            }
        }
        sources
    }

    /// A client that sends input faster than the program takes it has to wait.
    fn may_speak(&self, client: &Client) -> bool {
        match &client.role {
            Role::Attached {
                container,
                input: true,
                ..
            } => {
                let container = self.containers.get(container);
                container
                    .is_none_or(|container| container.input.is_none() || container.takes_input())
            }
            _ => true,
        }
    }

    fn descriptor(&self, source: &Source) -> Option<BorrowedFd<'_>> {
        let container = |id: &String| self.containers.get(id);
        match source {
            Source::Signals => Some(self.signals.as_fd()),
            Source::Listener => Some(self.listener.as_fd()),
            Source::Client(number) => self.clients.get(number).map(Client::descriptor),
            Source::Report(number) => self
                .launching
                .get(number)
                .map(|launching| launching.report.as_fd()),
            Source::Console(number) => self
                .launching
                .get(number)?
                .console
                .as_ref()
                .map(|(_, listener)| listener.as_fd()),
            Source::Output(id) => container(id)?.output.as_ref().map(AsFd::as_fd),
            Source::Errors(id) => container(id)?.errors.as_ref().map(AsFd::as_fd),
            Source::Input(id) => container(id)?.input.as_ref().map(AsFd::as_fd),
        }
    }

    fn serve(&mut self, source: &Source, events: PollFlags) {
        match source {
            Source::Signals => self.reap(),
            Source::Listener => self.accept(),
            Source::Client(number) => self.serve_client(*number, events),
            Source::Report(number) => self.read_report(*number),
            Source::Console(number) => self.take_terminal(*number),
            Source::Output(id) => self.forward(id, Stream::Stdout),
            Source::Errors(id) => self.forward(id, Stream::Stderr),
            Source::Input(id) => {
                if let Some(container) = self.containers.get_mut(id) {
                    container.flush_input();
                }
            }
        }
    }

    fn accept(&mut self) {
        match self
            .listener
            .accept()
            .and_then(|(stream, _)| Client::new(stream))
        {
            Ok(client) => {
                let number = self.number();
                self.clients.insert(number, client);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => complain(&format!("nobody can connect: {error}")),
        }
    }

    fn serve_client(&mut self, number: u64, events: PollFlags) {
        let Some(client) = self.clients.get_mut(&number) else {
            return;
        };
        let mut alive = true;
        if events.contains(PollFlags::OUT) {
            alive = client.flush().is_ok();
        }
        if alive && events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            alive = client.receive().unwrap_or(false);
        }
        while let Some(client) = self.clients.get_mut(&number) {
            match client.next_frame() {
                Ok(Some((channel, content))) => alive &= self.take(number, channel, &content),
                Ok(None) => break,
                Err(_) => {
                    alive = false;
                    break;
                }
            }
        }
        if !alive && let Some(client) = self.clients.remove(&number) {
            self.hang_up(&client);
        }
    }

    fn hang_up(&mut self, client: &Client) {
        match &client.role {
            Role::Executing { pid } => {
                let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
            }
            Role::Attached {
                container,
                input: true,
                ..
            } => {
                if let Some(container) = self
                    .containers
                    .get_mut(container)
                    .filter(|container| container.start.stdin_once)
                {
                    container.end_input();
                }
            }
            _ => {}
        }
    }

    /// Does what a frame asks for. `false`: this client cannot be understood.
    fn take(&mut self, number: u64, channel: Channel, content: &[u8]) -> bool {
        let Some(client) = self.clients.get_mut(&number) else {
            return false;
        };
        match (&client.role, channel) {
            (Role::Asking, Channel::Control) => {}
            (
                Role::Attached {
                    container,
                    input: true,
                    ..
                },
                Channel::Input,
            ) => {
                if let Some(container) = self.containers.get_mut(container) {
                    if content.is_empty() {
                        if container.start.stdin_once {
                            container.end_input();
                        }
                    } else {
                        container.push_input(content);
                    }
                }
                return true;
            }
            _ => return false,
        }
        let request: Request = match serde_json::from_slice(content) {
            Ok(request) => request,
            Err(error) => {
                return self.reply(
                    number,
                    &failed(format!("the shim does not understand: {error}")),
                );
            }
        };
        if request.version > VERSION {
            return self.reply(
                number,
                &failed(format!(
                    "the shim speaks version {VERSION}, not {}",
                    request.version
                )),
            );
        }
        match self.call(number, request.call) {
            Ok(Some(reply)) => self.reply(number, &reply),
            Ok(None) => true,
            Err(message) => self.reply(number, &failed(message)),
        }
    }

    pub(super) fn reply(&mut self, number: u64, reply: &Reply) -> bool {
        self.clients
            .get_mut(&number)
            .is_some_and(|client| client.reply(reply).is_ok())
    }

    fn call(&mut self, number: u64, call: Call) -> Result<Option<Reply>, String> {
        match call {
            Call::Start(start) => self.start(number, start).map(|()| None),
            Call::Signal {
                container,
                signal,
                all,
            } => {
                self.container(&container)?.signal(signal, all)?;
                Ok(Some(Reply::Done))
            }
            Call::Exec {
                container,
                terminal,
                process,
            } => self
                .exec(number, &container, terminal, &process)
                .map(|()| None),
            Call::Attach {
                container,
                input,
                output,
                errors,
            } => {
                self.container(&container)?;
                self.set_role(
                    number,
                    Role::Attached {
                        container,
                        input,
                        output,
                        errors,
                    },
                );
                Ok(Some(Reply::Done))
            }
            Call::Resize {
                container,
                columns,
                rows,
            } => {
                self.container(&container)?
                    .resize(columns, rows)
                    .map_err(|error| error.to_string())?;
                Ok(Some(Reply::Done))
            }
            Call::ReopenLog { container } => {
                self.container(&container)?
                    .reopen_log()
                    .map_err(|error| error.to_string())?;
                Ok(Some(Reply::Done))
            }
            Call::Watch if self.is_starting() => {
                self.set_role(number, Role::WatchingSoon);
                Ok(None)
            }
            Call::Watch => {
                self.set_role(number, Role::Watching);
                Ok(Some(Reply::Done))
            }
            Call::Shutdown => {
                self.closing = true;
                for container in self.containers.values() {
                    container.signal(Signal::SIGKILL as i32, true)?;
                }
                Ok(Some(Reply::Done))
            }
        }
    }

    /// A container that runs.
    pub(super) fn container(&mut self, id: &str) -> Result<&mut Container, String> {
        self.containers
            .get_mut(id)
            .filter(|container| container.is_running())
            .ok_or_else(|| format!("the container {id} does not run"))
    }

    pub(super) fn set_role(&mut self, number: u64, role: Role) {
        if let Some(client) = self.clients.get_mut(&number) {
            client.role = role;
        }
    }

    fn reap(&mut self) {
        while let Ok(Some(_)) = self.signals.read_signal() {}
        loop {
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) | Err(_) => break,
                Ok(status) => {
                    if let Some((pid, code)) = exit_code(status) {
                        self.process_ended(pid, code);
                    }
                }
            }
        }
    }

    pub(super) fn process_ended(&mut self, pid: i32, code: i32) {
        let container = self
            .containers
            .iter()
            .find(|(_, container)| container.pid == Some(pid));
        if let Some(id) = container.map(|(id, _)| id.clone()) {
            self.container_ended(&id, code);
            return;
        }
        let client = self
            .clients
            .values_mut()
            .find(|client| client.role == Role::Executing { pid });
        if let Some(client) = client {
            client.role = Role::Asking;
            client.closing = true;
            // If he does not hear it, he has hung up.
            drop(client.reply(&Reply::Ended { exit_code: code }));
        } else if !self.launching.is_empty() {
            self.strays.insert(pid, code);
        }
    }

    fn container_ended(&mut self, id: &str, code: i32) {
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        let (ended, last) = container.ended(code);
        for (stream, bytes) in last {
            self.send_to_attached(id, stream, &bytes);
        }
        for client in self.clients.values_mut() {
            let reply = match &client.role {
                Role::Watching => Reply::ContainerEnded {
                    container: id.to_owned(),
                    ended: ended.clone(),
                },
                Role::Attached { container, .. } if container == id => {
                    client.closing = true;
                    Reply::Ended { exit_code: code }
                }
                _ => continue,
            };
            client.closing |= client.reply(&reply).is_err();
        }
    }

    fn forward(&mut self, id: &str, stream: Stream) {
        let bytes = self
            .containers
            .get_mut(id)
            .and_then(|container| container.read(stream));
        if let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) {
            self.send_to_attached(id, stream, &bytes);
        }
    }

    fn send_to_attached(&mut self, id: &str, stream: Stream, bytes: &[u8]) {
        for client in self.clients.values_mut() {
            let Role::Attached {
                container,
                output,
                errors,
                ..
            } = &client.role
            else {
                continue;
            };
            let (wanted, channel) = match stream {
                Stream::Stdout => (*output, Channel::Output),
                Stream::Stderr => (*errors, Channel::Errors),
            };
            if container == id && wanted {
                client.closing |= client.send_stream(channel, bytes).is_err();
            }
        }
    }
}

pub(super) fn failed(message: String) -> Reply {
    Reply::Failed { message }
}

fn is_attached(client: &Client, id: &str) -> bool {
    matches!(&client.role, Role::Attached { container, .. } if container == id)
}
