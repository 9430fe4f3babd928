//! Runs programs of the system for an answer on standard output. Invariant: an answer has an end, in time
//! and in size; a program that has not ended by then is killed.

use std::io::{self, Read as _};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8Path;

/// More than this nobody reads.
const LIMIT: u64 = 4 << 20;

/// How often it is looked whether a program has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Why a program gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("`{program}` could not be started")]
    Start { program: String, source: io::Error },
    #[error("`{program} {verb}` failed ({status}): {complaint}")]
    Failed {
        program: String,
        verb: String,
        status: ExitStatus,
        complaint: String,
    },
    #[error("`{program} {verb}` gave no answer within {} seconds", .limit.as_secs())]
    Silent {
        program: String,
        verb: String,
        limit: Duration,
    },
    #[error("`{program}` answered with bytes that are not text")]
    NotText { program: String },
    #[error("the end of `{program}` could not be waited for")]
    Wait { program: String, source: io::Error },
}

/// Runs `program` in `folder` and returns what it printed.
pub(crate) fn run(
    program: &str,
    arguments: &[&str],
    folder: Option<&Utf8Path>,
    limit: Duration,
) -> Result<String, CommandError> {
    run_with(program, arguments, &[], folder, limit)
}

/// The same, with these variables besides our own.
pub(crate) fn run_with(
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
    folder: Option<&Utf8Path>,
    limit: Duration,
) -> Result<String, CommandError> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let start = |source| CommandError::Start {
        program: program.to_owned(),
        source,
    };
    let mut child = command.spawn().map_err(start)?;
    let printed = collect(child.stdout.take());
    let complained = collect(child.stderr.take());
    let wait = |source| CommandError::Wait {
        program: program.to_owned(),
        source,
    };
    let verb = arguments.first().copied().unwrap_or_default().to_owned();
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(wait)? {
            break status;
        }
        if Instant::now() >= deadline {
            // It may have ended by itself in between.
            let _ = child.kill();
            child.wait().map_err(wait)?;
            return Err(CommandError::Silent {
                program: program.to_owned(),
                verb,
                limit,
            });
        }
        thread::sleep(LOOK);
    };
    let printed = printed.join().unwrap_or_default();
    let complained = complained.join().unwrap_or_default();
    if !status.success() {
        let complaint = String::from_utf8_lossy(&complained);
        return Err(CommandError::Failed {
            program: program.to_owned(),
            verb,
            status,
            complaint: complaint.trim().to_owned(),
        });
    }
    String::from_utf8(printed).map_err(|_| CommandError::NotText {
        program: program.to_owned(),
    })
}

fn collect(stream: Option<impl io::Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            // What was read before an error is the answer as far as there is one.
            let _ = stream.take(LIMIT).read_to_end(&mut bytes);
        }
        bytes
    })
}
