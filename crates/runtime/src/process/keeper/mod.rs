//! The process that holds one container while agents come and go.
//!
//! Invariant: how the program ended is on disk before anybody is told, and before this process ends. Nothing of the
//! container lives longer than its program.

mod conversation;
pub(super) mod protocol;
mod streams;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use transom_host::ipc::{Access, Endpoint, Listener};
use transom_host::process::{
    Exit, Native, Process, Processes, SpawnError, become_subreaper, reap_orphans,
};

use super::chain;
use super::folder::{self, Folder, Life, Record, SETUP_FILE};
use crate::logs::LogWriter;
use crate::{Ended, RuntimeError};
use protocol::{ENDPOINT, Setup};
use streams::Streams;

/// How long killing what a program left may take.
const KILL_LIMIT: Duration = Duration::from_secs(30);
/// How long those who listen have to read the last words.
const FAREWELL: Duration = Duration::from_secs(10);
const HOUSEKEEPING: Duration = Duration::from_secs(5);
/// The exit code of a program that could not be started.
const CANNOT_RUN: i32 = 128;

/// Becomes the keeper of a container. `arguments` is what follows the words that the runtime was configured with:
/// the folder of the container.
pub fn keeper_main(arguments: &[String]) -> ExitCode {
    let [folder] = arguments else {
        complain("a keeper needs the folder of its container");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let kept = match runtime {
        Ok(runtime) => {
            let kept = runtime.block_on(keep(Folder(Utf8PathBuf::from(folder))));
            // Whatever still waits, waits in vain.
            runtime.shutdown_background();
            kept
        }
        Err(error) => Err(RuntimeError::io("start", error)),
    };
    match kept {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Standard error is the keeper's own log.
fn complain(text: &str) {
    // There is nobody else to tell.
    let _ = writeln!(std::io::stderr(), "{} {text}", Timestamp::now());
}

/// What all conversations share.
struct Kept {
    folder: Folder,
    setup: Setup,
    process: Arc<dyn Process>,
    streams: Streams,
    record: watch::Receiver<Record>,
}

async fn keep(folder: Folder) -> Result<(), RuntimeError> {
    let setup: Option<Setup> = folder::read(&folder.0.join(SETUP_FILE))?;
    let setup = setup.ok_or_else(|| RuntimeError::Other("nothing is to be kept".to_owned()))?;
    if folder.read_record()?.is_some() {
        // A container is started once. Whoever started us looks at the record.
        return Ok(());
    }
    if let Err(error) = become_subreaper() {
        complain(&format!("orphans of the container may escape: {error}"));
    }
    // Only one listens: a second keeper of the same container ends here.
    let listener = Listener::bind(
        &Endpoint::in_directory(&folder.0, ENDPOINT),
        Access::OwnerOnly,
    )
    .map_err(|error| RuntimeError::Other(chain(&error)))?;
    let mut record = Record {
        keeper: Native.current(),
        life: Life::Starting,
        not_supported: false,
        remarks: Vec::new(),
    };
    folder.write_record(&record)?;
    match begin(&setup, &mut record) {
        Ok((process, streams)) => {
            folder.write_record(&record)?;
            say_begun();
            serve(listener, folder, setup, process, streams, record).await
        }
        Err(ended) => {
            record.life = Life::Ended(ended);
            folder.write_record(&record)?;
            say_begun();
            Ok(())
        }
    }
}

/// Tells the runtime that waits that the record says what became of the start.
fn say_begun() {
    // Whoever started us may be gone.
    let _ = std::io::stdout().write_all(b"\n");
    let _ = std::io::stdout().flush();
}

fn begin(setup: &Setup, record: &mut Record) -> Result<(Arc<dyn Process>, Streams), Ended> {
    let failed = |message: String| Ended {
        started: None,
        finished: Timestamp::now(),
        exit_code: CANNOT_RUN,
        reason: "ContainerCannotRun".to_owned(),
        message,
    };
    let log = open_log(&setup.log).map_err(|error| failed(chain(&error)))?;
    let started = Timestamp::now();
    let process = Native.spawn(&setup.spawn).map_err(|error| {
        record.not_supported = matches!(
            error,
            SpawnError::UserNotSupported { .. } | SpawnError::GroupNotSupported { .. }
        );
        failed(chain(&error))
    })?;
    let process: Arc<dyn Process> = Arc::from(process);
    let limits = process.limits();
    let not_enforced = limits.not_enforced.iter().map(ToString::to_string);
    let clamped = limits.clamped.iter().map(ToString::to_string);
    record.remarks = not_enforced.chain(clamped).collect();
    record.life = Life::Running {
        process: process.identity().clone(),
        started,
    };
    let streams = Streams::carry(&*process, Arc::new(log));
    Ok((process, streams))
}

fn open_log(path: &Utf8Path) -> std::io::Result<LogWriter> {
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder)?;
    }
    LogWriter::open(path, Timestamp::now)
}

async fn serve(
    mut listener: Listener,
    folder: Folder,
    setup: Setup,
    process: Arc<dyn Process>,
    streams: Streams,
    record: Record,
) -> Result<(), RuntimeError> {
    let (telling, record) = watch::channel(record);
    let waiting = Arc::clone(&process);
    let mut exit = tokio::task::spawn_blocking(move || waiting.wait(None));
    let kept = Arc::new(Kept {
        folder,
        setup,
        process,
        streams,
        record,
    });
    let conversations = TaskTracker::new();
    let mut housekeeping = tokio::time::interval(HOUSEKEEPING);
    let exit = loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(stream) => {
                    conversations.spawn(conversation::hold(Arc::clone(&kept), stream));
                }
                Err(error) => {
                    complain(&chain(&error));
                    // Whatever it is must not make us spin.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            _ = housekeeping.tick() => {
                reap_orphans();
            }
            exit = &mut exit => break exit,
        }
    };
    let exit = match exit {
        Ok(Ok(Some(exit))) => exit,
        Ok(Ok(None)) | Err(_) => Exit::Unknown,
        Ok(Err(error)) => {
            complain(&chain(&error));
            Exit::Unknown
        }
    };
    let ended = kept.bury(exit).await;
    let mut last = telling.borrow().clone();
    last.life = Life::Ended(ended);
    kept.save(&last).await;
    telling.send_replace(last);
    drop(listener);
    conversations.close();
    if tokio::time::timeout(FAREWELL, conversations.wait())
        .await
        .is_err()
    {
        complain("somebody did not listen to the end");
    }
    Ok(())
}

impl Kept {
    /// Ends what the program left and waits for its last words.
    async fn bury(&self, exit: Exit) -> Ended {
        let finished = Timestamp::now();
        let process = Arc::clone(&self.process);
        let killed = tokio::task::spawn_blocking(move || process.kill_tree(KILL_LIMIT)).await;
        if let Ok(Err(error)) = killed {
            complain(&chain(&error));
        }
        self.streams.finish().await;
        let exit_code = match exit {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
            Exit::Unknown => 255,
        };
        let started = match self.record.borrow().life {
            Life::Running { started, .. } => Some(started),
            _ => None,
        };
        let reason = if exit_code == 0 { "Completed" } else { "Error" };
        Ended {
            started,
            // Clocks are set; an end before the begin would confuse everybody.
            finished: started.map_or(finished, |started| finished.max(started)),
            exit_code,
            reason: reason.to_owned(),
            message: String::new(),
        }
    }

    /// Writes the end down. While the disk does not take it, this process is the only one who knows, and stays.
    async fn save(&self, record: &Record) {
        let mut pause = Duration::from_millis(100);
        while let Err(error) = self.folder.write_record(record) {
            complain(&chain(&error));
            if !self.folder.0.is_dir() {
                // Removed under us: nobody wants to know.
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(30));
        }
    }
}
