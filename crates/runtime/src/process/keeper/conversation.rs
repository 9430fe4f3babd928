//! One connection to a keeper: a request, and what follows from it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{ReadHalf, WriteHalf};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use transom_host::ipc::Stream as Connection;
use transom_host::process::{Delivered, Exit, Native, Process, Processes, Scope, Signal, Spawn};

use super::super::chain;
use super::super::folder::Life;
use super::protocol::{Frame, Reply, Request, read_frame, write_frame};
use super::streams::{feed, forward};
use super::{KILL_LIMIT, Kept, complain};
use crate::logs::Stream;

/// Frames that may wait to be sent.
const MOST_FRAMES: usize = 16;
/// How long somebody may take to say what they want.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long outputs are heard after their program has ended, because others may have them too.
const LAST_WORDS: Duration = Duration::from_secs(2);

type Reader = ReadHalf<Connection>;
type Writer = WriteHalf<Connection>;

/// Holds a whole conversation. An error is that of the other side, who has gone or speaks nonsense.
pub(super) async fn hold(kept: Arc<Kept>, stream: Connection) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let asked = async {
        match tokio::time::timeout(PATIENCE, read_frame(&mut reader)).await {
            Ok(Ok(Some(frame))) => frame.parse::<Request>().map(Some),
            Ok(Ok(None)) | Err(_) => Ok(None),
            Ok(Err(error)) => Err(error),
        }
    };
    let held = match asked.await {
        Ok(Some(request)) => kept.obey(request, reader, &mut writer).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = held
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        complain(&format!("a conversation broke: {error}"));
    }
}

async fn say(writer: &mut Writer, reply: &Reply) -> io::Result<()> {
    write_frame(writer, &Frame::message(reply)?).await
}

impl Kept {
    async fn obey(
        self: &Arc<Self>,
        request: Request,
        reader: Reader,
        writer: &mut Writer,
    ) -> io::Result<()> {
        match request {
            Request::Watch => self.report(reader, writer).await,
            Request::Stop => {
                let reply = self.ask_to_end();
                say(writer, &reply).await
            }
            Request::Kill => {
                let process = Arc::clone(&self.process);
                // Blocks until all are gone.
                let killed =
                    tokio::task::spawn_blocking(move || process.kill_tree(KILL_LIMIT)).await;
                let reply = match killed {
                    Ok(Ok(())) => Reply::Done,
                    Ok(Err(error)) => failed(chain(&error)),
                    Err(error) => failed(error.to_string()),
                };
                say(writer, &reply).await
            }
            Request::Reopen => {
                let reply = match self.streams.log.reopen() {
                    Ok(()) => Reply::Done,
                    Err(error) => failed(error.to_string()),
                };
                say(writer, &reply).await
            }
            Request::Exec(spawn) => self.run_beside(*spawn, reader, writer).await,
            Request::Attach {
                stdin,
                stdout,
                stderr,
            } => self.attach([stdin, stdout, stderr], reader, writer).await,
        }
    }

    /// Says how the container is until it has ended.
    async fn report(&self, mut reader: Reader, writer: &mut Writer) -> io::Result<()> {
        let mut record = self.record.clone();
        loop {
            let now = record.borrow_and_update().clone();
            say(writer, &Reply::Record(now.clone())).await?;
            if matches!(now.life, Life::Ended(_)) {
                return Ok(());
            }
            tokio::select! {
                changed = record.changed() => if changed.is_err() { return Ok(()) },
                // Whoever watches says nothing more but that it has gone.
                _ = read_frame(&mut reader) => return Ok(()),
            }
        }
    }

    fn ask_to_end(&self) -> Reply {
        let signal = self.setup.stop_signal.parse().unwrap_or(Signal::Terminate);
        match self.process.signal(signal, Scope::Main) {
            Ok(Delivered::NotSupported) => {
                self.streams.close_input();
                Reply::Done
            }
            Ok(Delivered::To(_) | Delivered::Gone) => Reply::Done,
            Err(error) => failed(chain(&error)),
        }
    }

    /// Joins the program's streams.
    async fn attach(
        self: &Arc<Self>,
        [stdin, stdout, stderr]: [bool; 3],
        reader: Reader,
        writer: &mut Writer,
    ) -> io::Result<()> {
        let mut heard = self.streams.subscribe();
        let mut record = self.record.clone();
        say(writer, &Reply::Started).await?;
        let wants_input = stdin && self.setup.stdin;
        let gone = CancellationToken::new();
        let input = if wants_input {
            self.streams.input()
        } else {
            None
        };
        // With an input that is for one, its end is the program's end of input.
        let kept = Arc::clone(self);
        let end_input = move || {
            if wants_input && kept.setup.stdin_once {
                kept.streams.close_input();
            }
        };
        let reading = tokio::spawn(take_input(reader, input, gone.clone(), end_input.clone()));
        let talked = async {
            loop {
                tokio::select! {
                    biased;
                    said = heard.recv() => match said {
                        Ok((Stream::Stdout, bytes)) if stdout => {
                            write_frame(writer, &Frame::Output(bytes)).await?;
                        }
                        Ok((Stream::Stderr, bytes)) if stderr => {
                            write_frame(writer, &Frame::Errors(bytes)).await?;
                        }
                        Ok(_) => {}
                        Err(broadcast::error::RecvError::Closed) => return Ok(()),
                        Err(broadcast::error::RecvError::Lagged(_)) => {
                            let cause = "the outputs were not read in time".to_owned();
                            return say(writer, &failed(cause)).await;
                        }
                    },
                    ended = ended(&mut record) => {
                        return say(writer, &Reply::Ended { exit_code: ended }).await;
                    }
                    () = gone.cancelled() => return Ok(()),
                }
            }
        };
        let talked = talked.await;
        reading.abort();
        end_input();
        talked
    }

    /// Runs a program in the container's group.
    async fn run_beside(
        &self,
        spawn: Spawn,
        reader: Reader,
        writer: &mut Writer,
    ) -> io::Result<()> {
        let spawned = tokio::task::spawn_blocking(move || Native.spawn(&spawn)).await;
        let process: Arc<dyn Process> = match spawned {
            Ok(Ok(process)) => Arc::from(process),
            Ok(Err(error)) => return say(writer, &failed(chain(&error))).await,
            Err(error) => return say(writer, &failed(error.to_string())).await,
        };
        let said = say(writer, &Reply::Started).await;
        let carried = match said {
            Ok(()) => carry_beside(&process, reader, writer).await,
            Err(error) => Err(error),
        };
        if carried.is_err() {
            // Nobody is there for it any more.
            if let Err(error) = process.signal(Signal::Kill, Scope::Main) {
                complain(&chain(&error));
            }
        }
        carried
    }
}

async fn carry_beside(
    process: &Arc<dyn Process>,
    reader: Reader,
    writer: &mut Writer,
) -> io::Result<()> {
    let (frames, mut to_send) = mpsc::channel(MOST_FRAMES);
    forward(process.take_stdout(), frames.clone(), Frame::Output);
    forward(process.take_stderr(), frames, Frame::Errors);
    let gone = CancellationToken::new();
    let reading = tokio::spawn(take_input(
        reader,
        process.take_stdin().map(feed),
        gone.clone(),
        || {},
    ));
    let waiting = Arc::clone(process);
    let mut exit = tokio::task::spawn_blocking(move || waiting.wait(None));
    let mut exit_code = None;
    let last_words = tokio::time::sleep(LAST_WORDS);
    tokio::pin!(last_words);
    loop {
        tokio::select! {
            frame = to_send.recv() => match frame {
                Some(frame) => write_frame(writer, &frame).await?,
                None => break,
            },
            exit = &mut exit, if exit_code.is_none() => {
                exit_code = Some(code_of(&exit));
                last_words.as_mut().reset(tokio::time::Instant::now() + LAST_WORDS);
            }
            () = last_words.as_mut(), if exit_code.is_some() => break,
            () = gone.cancelled() => return Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
    let exit_code = match exit_code {
        Some(code) => code,
        None => tokio::select! {
            exit = exit => code_of(&exit),
            () = gone.cancelled() => return Err(io::ErrorKind::BrokenPipe.into()),
        },
    };
    reading.abort();
    say(writer, &Reply::Ended { exit_code }).await
}

fn code_of<E, F>(exit: &Result<Result<Option<Exit>, E>, F>) -> i32 {
    match exit {
        Ok(Ok(Some(Exit::Code(code)))) => *code,
        Ok(Ok(Some(Exit::Signal(signal)))) => 128 + signal,
        _ => 255,
    }
}

fn failed(cause: String) -> Reply {
    Reply::Failed { cause }
}

/// The exit code, once the container has ended.
async fn ended(record: &mut tokio::sync::watch::Receiver<super::Record>) -> i32 {
    loop {
        if let Life::Ended(ended) = &record.borrow_and_update().life {
            return ended.exit_code;
        }
        if record.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Takes frames of input to a program, until there are no more; `end` is called then, and `gone` when the sender is.
async fn take_input(
    mut reader: Reader,
    mut input: Option<mpsc::Sender<bytes::Bytes>>,
    gone: CancellationToken,
    end: impl Fn(),
) {
    loop {
        match read_frame(&mut reader).await {
            Ok(Some(Frame::Input(bytes))) => {
                if let Some(to) = &input
                    && to.send(bytes).await.is_err()
                {
                    input = None;
                }
            }
            Ok(Some(Frame::InputEnd)) => {
                input = None;
                end();
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => {
                gone.cancel();
                return;
            }
        }
    }
}
