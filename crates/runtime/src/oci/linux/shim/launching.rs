//! Starting programs: a helper is at work, then it has reported, then its program runs or does not.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::io::FdFlags;

use super::super::descriptors;
use super::super::protocol::{Reply, Start};
use super::super::records::CONTAINERS;
use super::client::Role;
use super::complain;
use super::container::{Container, input_pipe, output_pipe};
use super::server::{Shim, failed};

const LONGEST_REPORT: usize = 16 * 1024;

/// A helper at work.
pub(super) struct Launching {
    pub(super) container: String,
    client: u64,
    pub(super) is_exec: bool,
    pub(super) report: File,
    text: Vec<u8>,
    pub(super) console: Option<(Utf8PathBuf, UnixListener)>,
    pub(super) terminal: Option<OwnedFd>,
    process: Option<Utf8PathBuf>,
}

impl Shim {
    /// A helper of the same binary, with a pipe that it reports to.
    pub(super) fn helper(
        &self,
        words: &[&str],
        insert_report: usize,
        streams: [Stdio; 3],
    ) -> io::Result<File> {
        let (reader, writer) = io::pipe()?;
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.insert(insert_report, writer.as_raw_fd().to_string());
        // One thread: nobody else starts a program while this descriptor is inheritable.
        rustix::io::fcntl_setfd(&writer, FdFlags::empty())?;
        let [input, output, errors] = streams;
        Command::new(self.program.path())
            .args(&self.arguments)
            .args(words)
            .env_clear()
            .stdin(input)
            .stdout(output)
            .stderr(errors)
            .spawn()?;
        drop(writer);
        Ok(File::from(OwnedFd::from(reader)))
    }

    pub(super) fn hold_processes(&self) -> Result<i32, String> {
        let mut report = self
            .helper(
                &["first-process"],
                1,
                [Stdio::null(), Stdio::null(), Stdio::inherit()],
            )
            .map_err(|error| error.to_string())?;
        let mut text = String::new();
        (&mut report)
            .take(LONGEST_REPORT as u64)
            .read_to_string(&mut text)
            .map_err(|error| error.to_string())?;
        text.trim()
            .strip_prefix("pid ")
            .and_then(|pid| pid.parse().ok())
            .ok_or_else(|| format!("the first process of the pod did not start: {text}"))
    }

    pub(super) fn start(&mut self, number: u64, start: Start) -> Result<(), String> {
        let id = start.container.clone();
        if self.closing {
            return Err("the pod is being stopped".to_owned());
        }
        // One that ended may have been removed, and made again.
        let is_launching = self
            .launching
            .values()
            .any(|launching| launching.container == id && !launching.is_exec);
        if is_launching || self.containers.get(&id).is_some_and(Container::is_running) {
            return Err(format!("the container {id} was started already"));
        }
        let failed = |error: io::Error| error.to_string();
        let mut container =
            Container::new(start).map_err(|error| format!("its log cannot be opened: {error}"))?;
        let mut words = vec!["run", id.as_str()];
        let console = container
            .start
            .terminal
            .then(|| console(&id, 0))
            .transpose()
            .map_err(failed)?;
        let streams = if let Some((path, _)) = &console {
            words.push(path.as_str());
            [Stdio::null(), Stdio::null(), Stdio::null()]
        } else {
            let input = if container.start.stdin {
                let (theirs, ours) = input_pipe().map_err(failed)?;
                container.input = Some(ours);
                Stdio::from(theirs)
            } else {
                Stdio::null()
            };
            let (output, their_output) = output_pipe().map_err(failed)?;
            let (errors, their_errors) = output_pipe().map_err(failed)?;
            (container.output, container.errors) = (Some(output), Some(errors));
            [input, their_output.into(), their_errors.into()]
        };
        container.remember_memory_events();
        let report = self.helper(&words, 1, streams).map_err(failed)?;
        self.containers.insert(id.clone(), container);
        self.launch(number, id, report, console, None);
        Ok(())
    }

    pub(super) fn exec(
        &mut self,
        number: u64,
        id: &str,
        terminal: bool,
        process: &str,
    ) -> Result<(), String> {
        if self.closing {
            return Err("the pod is being stopped".to_owned());
        }
        self.container(id)?;
        let failed = |error: io::Error| error.to_string();
        let unique = self.number();
        let file = Utf8Path::new(CONTAINERS)
            .join(id)
            .join(format!("exec-{unique}.json"));
        write_secret(&file, process.as_bytes()).map_err(failed)?;
        let descriptors = self
            .clients
            .get_mut(&number)
            .map(|client| std::mem::take(&mut client.descriptors));
        let mut words = vec!["exec", id, file.as_str()];
        let console = terminal
            .then(|| console(id, unique))
            .transpose()
            .map_err(failed)?;
        let streams = if let Some((path, _)) = &console {
            words.push(path.as_str());
            [Stdio::null(), Stdio::null(), Stdio::null()]
        } else {
            let streams: [OwnedFd; 3] = descriptors
                .unwrap_or_default()
                .try_into()
                .map_err(|_| "a program needs three streams".to_owned())?;
            streams.map(Stdio::from)
        };
        let report = self.helper(&words, 1, streams).map_err(failed)?;
        self.launch(number, id.to_owned(), report, console, Some(file));
        Ok(())
    }

    fn launch(
        &mut self,
        client: u64,
        container: String,
        report: File,
        console: Option<(Utf8PathBuf, UnixListener)>,
        process: Option<Utf8PathBuf>,
    ) {
        self.set_role(client, Role::Waiting);
        let number = self.number();
        self.launching.insert(
            number,
            Launching {
                container,
                client,
                is_exec: process.is_some(),
                report,
                text: Vec::new(),
                console,
                terminal: None,
                process,
            },
        );
    }

    /// Receives the terminal that a helper made for a program.
    pub(super) fn take_terminal(&mut self, number: u64) {
        let Some(launching) = self.launching.get_mut(&number) else {
            return;
        };
        let Some((_, listener)) = &launching.console else {
            return;
        };
        let mut found = Vec::new();
        let received = listener.accept().and_then(|(stream, _): (UnixStream, _)| {
            descriptors::receive(&stream, &mut [0; 256], &mut found)
        });
        match (received, found.pop()) {
            (Ok(_), Some(terminal)) => launching.terminal = Some(terminal),
            (Ok(_), None) => complain("a helper sent no terminal"),
            (Err(error), _) => {
                complain(&format!("the terminal of a program did not come: {error}"));
            }
        }
    }

    pub(super) fn read_report(&mut self, number: u64) {
        let Some(launching) = self.launching.get_mut(&number) else {
            return;
        };
        let mut chunk = [0; 4096];
        match launching.report.read(&mut chunk) {
            Ok(count) if count > 0 && launching.text.len() < LONGEST_REPORT => {
                launching.text.extend_from_slice(&chunk[..count]);
            }
            _ => {
                if launching.console.is_some() && launching.terminal.is_none() {
                    self.take_terminal(number);
                }
                if let Some(launching) = self.launching.remove(&number) {
                    self.launched(launching);
                }
            }
        }
    }

    /// A helper is done: the program runs, or it could not be started.
    fn launched(&mut self, launching: Launching) {
        let leftovers = [
            launching.process.as_ref(),
            launching.console.as_ref().map(|(path, _)| path),
        ];
        for leftover in leftovers.into_iter().flatten() {
            drop(fs_err::remove_file(leftover));
        }
        let text = String::from_utf8_lossy(&launching.text).into_owned();
        let (first, rest) = text.split_once('\n').unwrap_or(("", &text));
        let pid = first
            .strip_prefix("pid ")
            .and_then(|pid| pid.parse::<i32>().ok());
        let outcome = match pid {
            Some(pid) if rest.is_empty() => Ok(pid),
            _ if rest.is_empty() => Err("the helper ended without a word".to_owned()),
            _ => Err(rest.to_owned()),
        };
        if launching.is_exec {
            self.exec_launched(launching.client, outcome, launching.terminal.as_ref());
        } else {
            self.container_launched(
                &launching.container,
                launching.client,
                outcome,
                launching.terminal,
            );
            self.greet_watchers();
        }
    }

    /// Whether a container is being started.
    pub(super) fn is_starting(&self) -> bool {
        self.launching.values().any(|launching| !launching.is_exec)
    }

    /// Who came while a container was being started hears of it once it is written down: he would take it for
    /// one that was never started, and start another.
    fn greet_watchers(&mut self) {
        if self.is_starting() {
            return;
        }
        for client in self.clients.values_mut() {
            if client.role == Role::WatchingSoon {
                client.role = Role::Watching;
                client.closing |= client.reply(&Reply::Done).is_err();
            }
        }
    }

    fn container_launched(
        &mut self,
        id: &str,
        client: u64,
        outcome: Result<i32, String>,
        terminal: Option<OwnedFd>,
    ) {
        let closing = self.closing;
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        let reply = match outcome {
            Ok(pid) => {
                let taken = terminal.map_or(Ok(()), |terminal| container.take_terminal(terminal));
                if let Err(error) = taken
                    .map_err(|error| error.to_string())
                    .and_then(|()| container.began(pid))
                {
                    complain(&format!("the start of {id} cannot be recorded: {error}"));
                }
                if closing && let Err(error) = container.signal(Signal::SIGKILL as i32, true) {
                    complain(&format!("{id} came too late and cannot be killed: {error}"));
                }
                Reply::Started { pid }
            }
            Err(message) => {
                container.kill_rest();
                self.containers.remove(id);
                failed(message)
            }
        };
        self.set_role(client, Role::Asking);
        self.reply(client, &reply);
        if let Reply::Started { pid } = reply
            && let Some(code) = self.strays.remove(&pid)
        {
            self.process_ended(pid, code);
        }
    }

    fn exec_launched(
        &mut self,
        number: u64,
        outcome: Result<i32, String>,
        terminal: Option<&OwnedFd>,
    ) {
        let client = self.clients.get_mut(&number);
        // He hung up while his program was being started, or the pod ends.
        if let (Ok(pid), true) = (&outcome, client.is_none() || self.closing) {
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        let Some(client) = client else {
            return;
        };
        match outcome {
            Ok(pid) => {
                client.role = Role::Executing { pid };
                let started = Reply::Started { pid };
                let told = match terminal {
                    Some(terminal) => client.reply_with(&started, terminal),
                    None => client.reply(&started),
                };
                client.closing |= told.is_err();
                if let Some(code) = self.strays.remove(&pid) {
                    self.process_ended(pid, code);
                }
            }
            Err(message) => {
                client.role = Role::Asking;
                client.closing = client.reply(&failed(message)).is_err();
            }
        }
    }
}

/// Where a helper sends the terminal of a program to.
fn console(container: &str, unique: u64) -> io::Result<(Utf8PathBuf, UnixListener)> {
    let path = Utf8Path::new(CONTAINERS)
        .join(container)
        .join(format!("console-{unique}"));
    let listener = UnixListener::bind(&path)?;
    listener.set_nonblocking(true)?;
    let folder = Utf8PathBuf::try_from(std::env::current_dir()?).map_err(io::Error::other)?;
    Ok((folder.join(path), listener))
}

/// A file that only root reads: it holds the environment of a program.
fn write_secret(path: &Utf8Path, content: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)
}
