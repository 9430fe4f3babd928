//! A machine for one test: a root folder, a supervisor, and services that run `testkit-echo`.
//! Invariant: when a machine goes, also in a test that failed, no process of it is left; a test that
//! passed leaves none behind even without help.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::processes;

/// The longest that anything here may take, even under Wine on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until `look` finds something, and says what was missing when it never does.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    // Most looks start a process, so they become rarer: what is waited for needs the machine, too.
    let mut pause = PAUSE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {LIMIT:?} for {what}");
        std::thread::sleep(pause);
        pause = (pause * 3 / 2).min(Duration::from_millis(200));
    }
}

/// Waits until `look` says yes.
pub(crate) fn wait_until(what: &str, mut look: impl FnMut() -> bool) {
    wait_for(what, || look().then_some(()));
}

/// What a call left behind.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            code,
            stdout,
            stderr,
        } = self;
        write!(f, "exit {code}\n--- stdout\n{stdout}--- stderr\n{stderr}")
    }
}

impl Outcome {
    /// Asserts the exit code and hands the outcome on.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self}");
        self
    }

    /// Asserts that `text` is in what was printed, on either stream.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        let found = self.stdout.contains(text) || self.stderr.contains(text);
        assert!(found, "no `{text}` in: {self}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in: {self}"))
    }
}

pub(crate) struct Machine {
    folder: Option<tempfile::TempDir>,
    root: PathBuf,
    program: PathBuf,
    daemon: Option<Child>,
}

impl Machine {
    /// A machine that is off.
    pub(crate) fn off() -> Self {
        Self::off_in("machine")
    }

    /// A machine that is off, in a folder with this name.
    pub(crate) fn off_in(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(name);
        let program = root.join("bin").join(processes::program_name("echo"));
        fs_err::create_dir_all(root.join("bin")).unwrap();
        let built = Path::new(env!("CARGO_BIN_EXE_transom"))
            .with_file_name(processes::program_name("testkit-echo"));
        assert!(
            built.exists(),
            "there is no {}: run `cargo xtask test`, or `cargo build -p transom-testkit --bin testkit-echo`",
            built.display()
        );
        // A copy below the root: whoever runs it belongs to this machine.
        fs_err::copy(&built, &program).unwrap();
        Self {
            folder: Some(folder),
            root,
            program,
            daemon: None,
        }
    }

    /// A machine with these units and a supervisor that answers.
    pub(crate) fn with(units: &[(&str, &str)]) -> Self {
        let mut machine = Self::off();
        for (name, text) in units {
            machine.unit(name, text);
        }
        machine.boot();
        machine
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path of ours below the root: the one for Linux, with Windows' own top folder there.
    pub(crate) fn place(&self, path: &str) -> PathBuf {
        let path = if cfg!(windows) {
            path.replace("run/transom", "run")
                .replace("log/transom", "log")
        } else {
            path.to_owned()
        };
        let top = if cfg!(windows) {
            self.root.join("Transom")
        } else {
            self.root.clone()
        };
        path.split('/').fold(top, |folder, part| folder.join(part))
    }

    /// The text with `{echo}` as the quoted workload program and `{root}` as the root folder.
    pub(crate) fn filled(&self, text: &str) -> String {
        text.replace("{echo}", &format!("\"{}\"", self.program.display()))
            .replace("{root}", &self.root.display().to_string())
            .replace("{/}", std::path::MAIN_SEPARATOR_STR)
    }

    /// Writes a unit file, or a drop-in when `name` has a folder.
    pub(crate) fn unit(&self, name: &str, text: &str) -> PathBuf {
        let path = self.place(&format!("etc/systemd/system/{name}"));
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, self.filled(text)).unwrap();
        path
    }

    /// Starts the supervisor and waits until it answers.
    pub(crate) fn boot(&mut self) {
        self.spawn_daemon();
        wait_until("the supervisor to answer", || {
            let ended = self.daemon.as_mut().unwrap().try_wait().unwrap();
            assert!(
                ended.is_none(),
                "the supervisor ended: {ended:?}\n{}",
                self.daemon_log()
            );
            self.service(["list-timers"]).code == 0
        });
    }

    pub(crate) fn spawn_daemon(&mut self) {
        assert!(self.daemon.is_none(), "the machine is on");
        let log = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.root.join("daemon.log"))
            .unwrap();
        let daemon = self
            .command(Path::new(env!("CARGO_BIN_EXE_transom")))
            .args(["service", "daemon"])
            .stdout(Stdio::null())
            .stderr(log.into_parts().0)
            .spawn()
            .unwrap();
        self.daemon = Some(daemon);
    }

    pub(crate) fn daemon_log(&self) -> String {
        fs_err::read_to_string(self.root.join("daemon.log")).unwrap_or_default()
    }

    /// Kills the supervisor, and nothing else, without a warning.
    pub(crate) fn kill_daemon(&mut self) {
        let mut daemon = self.daemon.take().expect("the machine is on");
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// Waits for the end of the supervisor that was told to end.
    pub(crate) fn wait_for_daemon(&mut self) -> ExitStatus {
        let mut daemon = self.daemon.take().expect("the machine is on");
        let status = wait_within(&mut daemon);
        status.unwrap_or_else(|| panic!("the supervisor did not end\n{}", self.daemon_log()))
    }

    /// `program`, rooted here, with no variable of the machine that runs the tests.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let upper = name.to_string_lossy().to_uppercase();
            if upper.starts_with("TRANSOM_") || upper == "NOTIFY_SOCKET" {
                command.env_remove(name);
            }
        }
        command
            .env("TRANSOM_ROOT", &self.root)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs `transom service` with these words.
    pub(crate) fn service<const N: usize>(&self, words: [&str; N]) -> Outcome {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_transom")));
        finish(command.arg("service").args(words))
    }

    /// Runs `transom service`, which must succeed, and returns what it printed.
    #[track_caller]
    pub(crate) fn ok<const N: usize>(&self, words: [&str; N]) -> String {
        let outcome = self.service(words);
        assert_eq!(
            outcome.code,
            0,
            "{words:?}: {outcome}\n{}",
            self.daemon_log()
        );
        outcome.stdout
    }

    /// A property of a unit, as `show` prints it.
    #[track_caller]
    pub(crate) fn property(&self, unit: &str, name: &str) -> String {
        self.ok(["show", "-p", name, "--value", unit])
            .trim()
            .to_owned()
    }

    /// The main process of a unit that runs.
    #[track_caller]
    pub(crate) fn pid(&self, unit: &str) -> u32 {
        let pid = self.property(unit, "MainPID").parse().unwrap();
        assert!(pid != 0, "{unit} has no main process:\n{}", self.log(unit));
        pid
    }

    pub(crate) fn wait_for_state(&self, unit: &str, state: &str) {
        wait_until(&format!("{unit} to be {state}"), || {
            self.property(unit, "ActiveState") == state
        });
    }

    /// Everything in the log file of a unit.
    pub(crate) fn log(&self, unit: &str) -> String {
        let unit = if unit.contains('.') {
            unit.to_owned()
        } else {
            format!("{unit}.service")
        };
        let path = self.place(&format!("var/log/transom/units/{unit}.log"));
        fs_err::read(path).map_or_else(
            |_| String::new(),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    /// Waits until a line with `text` is in the log, and returns the part of the line after it.
    #[track_caller]
    pub(crate) fn wait_for_log(&self, unit: &str, text: &str) -> String {
        wait_for(&format!("`{text}` in the log of {unit}"), || {
            let log = self.log(unit);
            let (_, rest) = log.split_once(text)?;
            rest.split_once('\n')
                .map(|(rest, _)| rest.trim().to_owned())
        })
    }

    /// The time of the first entry whose text is exactly `text`.
    #[track_caller]
    pub(crate) fn time_of(&self, unit: &str, text: &str) -> jiff::Timestamp {
        let entries = self.ok(["logs", "-o", "json", unit]);
        for line in entries.lines() {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            if entry["text"] == text {
                return entry["time"].as_str().unwrap().parse().unwrap();
            }
        }
        panic!("no entry `{text}` in:\n{entries}");
    }

    /// The process that holds the only service that runs.
    pub(crate) fn only_keeper(&self) -> u32 {
        match self.keepers().as_slice() {
            [keeper] => *keeper,
            others => panic!("expected one keeper, there are {others:?}"),
        }
    }

    fn keepers(&self) -> Vec<u32> {
        let mut pids = Vec::new();
        for folder in self.keeper_folders() {
            let record = fs_err::read(folder.join("record.json")).unwrap_or_default();
            let record: serde_json::Value = serde_json::from_slice(&record).unwrap_or_default();
            pids.extend(
                record["keeper"]["pid"]
                    .as_u64()
                    .and_then(|pid| u32::try_from(pid).ok()),
            );
        }
        pids
    }

    pub(crate) fn keeper_folders(&self) -> Vec<PathBuf> {
        fs_err::read_dir(self.place("run/transom/supervisor/keepers"))
            .map(|entries| {
                entries
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .collect()
            })
            .unwrap_or_default()
    }

    /// Waits until no service of this machine has a process or a keeper's folder.
    pub(crate) fn wait_until_empty(&self) {
        wait_until("the keepers' folders to go", || {
            self.keeper_folders().is_empty()
        });
        wait_until("the services' processes to end", || {
            !processes::any_runs(&self.program)
        });
    }

    /// Turns the machine off as its owner would: everything ends.
    fn turn_off(&mut self) {
        if self.daemon.is_none() {
            return;
        }
        self.service(["shutdown"]).exits(0);
        self.wait_for_daemon();
        self.wait_until_empty();
    }

    /// Ends whatever is left, by force.
    fn clean_up(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            // It may have ended already; then there is nothing to kill.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        for keeper in self.keepers() {
            processes::kill(keeper);
        }
        processes::kill_below(&self.root);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let outcome = if std::thread::panicking() {
            eprintln!("--- what the supervisor said\n{}", self.daemon_log());
            Ok(())
        } else {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.turn_off()))
        };
        self.clean_up();
        if let Some(folder) = self.folder.take() {
            // On Windows the files of a process that is just ending cannot be removed yet.
            let deadline = Instant::now() + LIMIT;
            while fs_err::remove_dir_all(folder.path()).is_err() && Instant::now() < deadline {
                std::thread::sleep(PAUSE);
            }
        }
        if let Err(problem) = outcome {
            std::panic::resume_unwind(problem);
        }
    }
}

/// Runs `command` to its end, within the limit.
pub(crate) fn finish(command: &mut Command) -> Outcome {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Both are read at the same time, or a full pipe would hold the child for ever.
    let stdout = read_aside(child.stdout.take().unwrap());
    let stderr = read_aside(child.stderr.take().unwrap());
    let status = wait_within(&mut child);
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    let Some(status) = status else {
        panic!("{command:?} did not end within {LIMIT:?}: {stdout}{stderr}");
    };
    Outcome {
        code: status.code().unwrap_or(-1),
        stdout,
        stderr,
    }
}

/// The status of `child`, which is killed if it takes too long.
pub(crate) fn wait_within(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

fn read_aside(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    })
}
