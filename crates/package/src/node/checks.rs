//! The checks of packages: every program in `check/` of an active package. Each has a limit of time
//! and of output, and whatever it started ends with it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{PipeReader, Read};
use std::sync::mpsc;
use std::time::Duration;

use camino::Utf8PathBuf;
use serde::Serialize;
use transom_host::files::{FileError, Files, Kind, path};
use transom_host::process::{Exit, Output, Process, Processes, Spawn};
use transom_model::os::Os;
use transom_model::package::PackageId;

use super::NodeError;
use crate::fault::sentence;

const FOLDER: &str = "check";
/// What is kept of a check's output.
const LONGEST_OUTPUT: usize = 64 * 1024;
const LONGEST_KILL: Duration = Duration::from_secs(5);
/// Behind the end of a program its output is there at once; a descendant that holds the pipe is dead.
const LONGEST_DRAIN: Duration = Duration::from_secs(5);

/// One file in the `check` folder of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckFile {
    pub package: PackageId,
    pub name: String,
    pub path: Utf8PathBuf,
    /// What is not is left out, with a warning.
    pub is_executable: bool,
}

/// What came of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    pub package: PackageId,
    pub name: String,
    pub verdict: Verdict,
    /// What it printed, both streams, cut off when too long.
    pub output: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Verdict {
    Passed,
    Failed {
        how: String,
    },
    TimedOut,
    /// A file that cannot be run.
    Skipped,
}

impl CheckResult {
    pub fn is_failure(&self) -> bool {
        matches!(self.verdict, Verdict::Failed { .. } | Verdict::TimedOut)
    }
}

impl std::fmt::Display for CheckResult {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { package, name, .. } = self;
        match &self.verdict {
            Verdict::Passed => write!(out, "check `{name}` of `{package}` passed"),
            Verdict::Failed { how } => write!(out, "check `{name}` of `{package}` failed: {how}"),
            Verdict::TimedOut => write!(out, "check `{name}` of `{package}` took too long"),
            Verdict::Skipped => write!(out, "`{name}` of `{package}` cannot be run"),
        }
    }
}

/// Runs the checks of packages.
pub trait Checks: Debug + Send + Sync {
    /// Runs all checks of these packages, which are given with their folders, within `limit` in all.
    fn run(&self, packages: &[(PackageId, Utf8PathBuf)], limit: Duration) -> Vec<CheckResult>;
}

/// No checks at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoChecks;

impl Checks for NoChecks {
    fn run(&self, _: &[(PackageId, Utf8PathBuf)], _: Duration) -> Vec<CheckResult> {
        Vec::new()
    }
}

/// The checks of packages, package by package and sorted by name.
pub fn list_checks(
    files: &dyn Files,
    packages: &[(PackageId, Utf8PathBuf)],
) -> Result<Vec<CheckFile>, NodeError> {
    let mut found = Vec::new();
    for (package, folder) in packages {
        let entries = match files.list(&path::join(files.os(), folder, FOLDER)) {
            Ok(entries) => entries,
            Err(FileError::NotFound { .. } | FileError::WrongKind { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            let is_executable = match (files.os(), entry.metadata.kind) {
                (_, Kind::Dir | Kind::Other) => continue,
                (Os::Linux, Kind::Link) => true,
                (Os::Linux, Kind::File) => entry.metadata.mode.unwrap_or(0) & 0o111 != 0,
                (Os::Windows, _) => windows_program(&entry.name).is_some(),
            };
            found.push(CheckFile {
                package: package.clone(),
                name: entry.name,
                path: entry.path,
                is_executable,
            });
        }
    }
    Ok(found)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowsProgram {
    Executable,
    Batch,
    PowerShell,
}

fn windows_program(name: &str) -> Option<WindowsProgram> {
    let (_, suffix) = name.rsplit_once('.')?;
    match suffix.to_ascii_lowercase().as_str() {
        "exe" => Some(WindowsProgram::Executable),
        "cmd" | "bat" => Some(WindowsProgram::Batch),
        "ps1" => Some(WindowsProgram::PowerShell),
        _ => None,
    }
}

/// Runs checks as processes of this machine.
#[derive(Debug)]
pub struct CheckRunner<'a> {
    pub files: &'a dyn Files,
    pub processes: &'a dyn Processes,
    /// The whole environment of a check.
    pub environment: BTreeMap<String, String>,
    /// How long one check may take.
    pub limit: Duration,
    /// Where Windows itself is.
    pub system_root: Utf8PathBuf,
}

impl Checks for CheckRunner<'_> {
    fn run(&self, packages: &[(PackageId, Utf8PathBuf)], limit: Duration) -> Vec<CheckResult> {
        let started = std::time::Instant::now();
        let mut results = Vec::new();
        for package in packages {
            let checks = match list_checks(self.files, std::slice::from_ref(package)) {
                Ok(checks) => checks,
                Err(error) => {
                    results.push(CheckResult {
                        package: package.0.clone(),
                        name: FOLDER.to_owned(),
                        verdict: Verdict::Failed {
                            how: sentence(&error),
                        },
                        output: String::new(),
                    });
                    continue;
                }
            };
            for check in checks {
                let left = limit.saturating_sub(started.elapsed()).min(self.limit);
                results.push(self.run_one(check, left));
            }
        }
        results
    }
}

impl CheckRunner<'_> {
    fn run_one(&self, check: CheckFile, limit: Duration) -> CheckResult {
        let (verdict, output) = if !check.is_executable {
            (Verdict::Skipped, String::new())
        } else if limit.is_zero() {
            (Verdict::TimedOut, String::new())
        } else {
            match self.processes.spawn(&self.spec(&check)) {
                Ok(process) => watch(process.as_ref(), limit),
                Err(error) => {
                    let how = sentence(&error);
                    (Verdict::Failed { how }, String::new())
                }
            }
        };
        CheckResult {
            package: check.package,
            name: check.name,
            verdict,
            output,
        }
    }

    fn spec(&self, check: &CheckFile) -> Spawn {
        let in_system = |below: &str| path::join(Os::Windows, &self.system_root, below);
        let path = check.path.to_string();
        let program = match self.files.os() {
            Os::Linux => None,
            Os::Windows => windows_program(&check.name),
        };
        let (program, args) = match program {
            None | Some(WindowsProgram::Executable) => (check.path.clone(), Vec::new()),
            Some(WindowsProgram::Batch) => (
                in_system("System32/cmd.exe"),
                vec!["/d".to_owned(), "/c".to_owned(), path],
            ),
            Some(WindowsProgram::PowerShell) => {
                let flags = [
                    "-NoProfile",
                    "-NonInteractive",
                    "-ExecutionPolicy",
                    "Bypass",
                ];
                let flags = flags.map(str::to_owned).into_iter();
                (
                    in_system("System32/WindowsPowerShell/v1.0/powershell.exe"),
                    flags.chain(["-File".to_owned(), path]).collect(),
                )
            }
        };
        Spawn {
            args,
            env: self.environment.clone(),
            stdout: Output::Pipe,
            stderr: Output::Pipe,
            ..Spawn::new(program)
        }
    }
}

fn watch(process: &dyn Process, limit: Duration) -> (Verdict, String) {
    let streams = [process.take_stdout(), process.take_stderr()];
    let readers: Vec<_> = streams.into_iter().flatten().map(read_aside).collect();
    let ended = process.wait(Some(limit));
    // Also after a good end: what it left running would hold the output, and is nobody's.
    let killed = process.kill_tree(LONGEST_KILL);
    let mut output = String::new();
    for reader in readers {
        output.push_str(&reader.recv_timeout(LONGEST_DRAIN).unwrap_or_default());
    }
    let verdict = match (ended, killed) {
        (Err(error), _) => Verdict::Failed {
            how: sentence(&error),
        },
        (_, Err(error)) => Verdict::Failed {
            how: sentence(&error),
        },
        (Ok(None), _) => Verdict::TimedOut,
        (Ok(Some(exit)), _) if exit.is_success() => Verdict::Passed,
        (Ok(Some(exit)), _) => Verdict::Failed {
            how: match exit {
                Exit::Code(code) => format!("it ended with code {code}"),
                Exit::Signal(signal) => format!("it was ended by signal {signal}"),
                Exit::Unknown => "how it ended is not known".to_owned(),
            },
        },
    };
    (verdict, output)
}

/// Reads to the end, so that the program never waits for us, and keeps the beginning.
fn read_aside(mut stream: PipeReader) -> mpsc::Receiver<String> {
    let (done, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            let room = LONGEST_OUTPUT.saturating_sub(kept.len());
            kept.extend_from_slice(&chunk[..count.min(room)]);
        }
        // Nobody waits any more if the limit is over.
        let _ = done.send(String::from_utf8_lossy(&kept).into_owned());
    });
    receiver
}
