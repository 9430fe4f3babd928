//! One API server in a folder of its own. Invariant: when the value goes, also in a test that failed,
//! the process and the folder are gone; a test that fails shows what the server said.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::net::TcpSocket;

/// The longest that anything here may take, even on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// The folder of a server, and the server if it runs.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    child: Option<Child>,
    /// What it printed on its standard error, over all its starts.
    said: Arc<Mutex<String>>,
    /// Where it listens; kept over a restart, so that clients find it again.
    address: String,
    /// Has the port, too, and never listens: nobody else is given it while the server is down.
    _port: TcpSocket,
    store: &'static str,
    /// What it is started with besides.
    flags: &'static [&'static str],
}

impl Server {
    /// A server that answers, with a store on disk.
    pub(crate) fn start() -> Self {
        Self::start_with("local")
    }

    /// A folder without a server.
    pub(crate) fn absent() -> Self {
        let port = TcpSocket::new_v4().unwrap();
        port.set_reuseaddr(true).unwrap();
        port.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            child: None,
            said: Arc::default(),
            address: port.local_addr().unwrap().to_string(),
            _port: port,
            store: "local",
            // What is applied stays as it is: pods that come by themselves have tests of their own.
            flags: &["--disable", "scheduler", "--disable", "workloads"],
        }
    }

    pub(crate) fn start_with(store: &'static str) -> Self {
        let mut server = Self::absent();
        server.store = store;
        server.begin()
    }

    /// A server that does everything, as these flags say.
    pub(crate) fn start_whole(flags: &'static [&'static str]) -> Self {
        let mut server = Self::absent();
        server.flags = flags;
        server.begin()
    }

    /// The same with a file in its folder that the flags name.
    pub(crate) fn start_with_file(name: &str, text: &str, flags: &'static [&'static str]) -> Self {
        let mut server = Self::absent();
        server.flags = flags;
        server.write(name, text);
        server.begin()
    }

    fn begin(mut self) -> Self {
        let server = &mut self;
        for entry in fs_err::read_dir(examples()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension() == Some(OsStr::new("yaml")) {
                fs_err::copy(&path, server.path(path.file_name().unwrap())).unwrap();
            }
        }
        server.again();
        // Made by controllers a moment after the start; without the account there are no pods.
        // One by one: kubectl gives up at once when several objects of a wait are missing.
        for made in ["serviceaccount/default", "configmap/kube-root-ca.crt"] {
            server.ok(&format!("kubectl wait --for=create {made} --timeout=50s"));
        }
        self
    }

    /// Starts it again where it was, and waits until it answers.
    pub(crate) fn again(&mut self) {
        assert!(self.child.is_none(), "the server runs");
        let mut child = self
            .transom()
            .args(["server", "--data-dir", "data", "--store", self.store])
            .args(["--listen", &self.address])
            .args(self.flags)
            // Shown only if the test fails.
            .env("TRANSOM_LOG_LEVEL", "warn,transom_controllers=debug")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        self.child = Some(child);
        let (sender, news) = channel();
        let said = Arc::clone(&self.said);
        std::thread::spawn(move || {
            // Read to the end also when nobody listens: the server must not block on what it says.
            for line in lines.map_while(Result::ok) {
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                said.push_str(&line);
                said.push('\n');
                drop(said);
                let _ = sender.send(line);
            }
        });
        let end = Instant::now() + LIMIT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = news.recv_timeout(left).expect("the server gets ready");
            if let Some(address) = line.strip_prefix("listening on https://") {
                address.clone_into(&mut self.address);
            }
            if line.contains("kubeconfig of the administrator") {
                return;
            }
        }
    }

    /// A path in the folder of this test.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Writes a file into the folder of this test.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs_err::write(self.path(name), text).unwrap();
    }

    /// A program that works in this folder and, if it is kubectl, with this server.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TRANSOM_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("KUBECONFIG", self.path("data/admin.kubeconfig"))
            .env("KUBECACHEDIR", self.path("cache"))
            .env("TRANSOM_ROOT", self.folder.path())
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn transom(&self) -> Command {
        self.program(env!("CARGO_BIN_EXE_transom"))
    }

    /// Runs a line of shell with a bound on its time; both streams in one, as on a terminal.
    pub(crate) fn shell(&self, line: &str) -> (String, i32) {
        let bin = Path::new(env!("CARGO_BIN_EXE_transom")).parent().unwrap();
        let output = self
            .program("timeout")
            .args(["--kill-after=5", &LIMIT.as_secs().to_string(), "sh", "-c"])
            .arg(format!("exec 2>&1\nPATH='{}':$PATH\n{line}", bin.display()))
            .output()
            .unwrap();
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            output.status.code().unwrap_or(-1),
        )
    }

    /// What a line of shell prints; it must succeed.
    #[track_caller]
    pub(crate) fn ok(&self, line: &str) -> String {
        let (text, code) = self.shell(line);
        assert_eq!(code, 0, "`{line}` said:\n{text}");
        text
    }

    /// Asks for a document with a client certificate, or without any credentials.
    pub(crate) fn fetch(&self, path: &str, credentials: &[&str]) -> Output {
        self.program("curl")
            .args(["--silent", "--insecure", "--max-time", "30"])
            .args(["--write-out", "\n%{http_code}"])
            .args(credentials)
            .arg(format!("https://{}{path}", self.address))
            .output()
            .unwrap()
    }

    /// Asks it to stop, and says how it ended.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM)
    }

    /// Ends it without a warning.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
    }

    fn signal(&mut self, signal: Signal) -> ExitStatus {
        let mut child = self.child.take().expect("the server runs");
        let id = i32::try_from(child.id()).unwrap();
        kill(Pid::from_raw(id), signal).unwrap();
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            if Instant::now() > end {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the server did not end within {LIMIT:?} of {signal}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    #[expect(
        clippy::print_stderr,
        reason = "what a server said helps whoever reads why a test failed"
    )]
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already; there is nobody to tell.
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            eprintln!("the server said:\n{said}");
        }
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A program that runs beside the test; ended with it.
pub(crate) struct Beside {
    child: Child,
    lines: Receiver<String>,
}

impl Beside {
    /// Starts `command` and reads what it prints.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let reader = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in reader.map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// Reads until a line has `text` in it; panics with what came instead.
    #[track_caller]
    pub(crate) fn until(&self, text: &str) -> String {
        let end = Instant::now() + LIMIT;
        let mut seen = String::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no `{text}` in:\n{seen}");
            };
            if line.contains(text) {
                return line;
            }
            seen.push_str(&line);
            seen.push('\n');
        }
    }

    /// Everything it still prints until it ends by itself.
    pub(crate) fn rest(&self) -> Vec<String> {
        let end = Instant::now() + LIMIT;
        let mut lines = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => return lines,
                Err(RecvTimeoutError::Timeout) => panic!("still running after {LIMIT:?}"),
            }
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
