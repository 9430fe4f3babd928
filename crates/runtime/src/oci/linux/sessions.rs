//! Programs beside a container's own, and joining its own: streams between the agent and a pod.

#![expect(
    unsafe_code,
    reason = "a descriptor is registered with the reactor, which cannot check who closes it"
)]

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use rustix::termios::Winsize;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::client::{self, ShimConnection};
use super::protocol::{self, Call, Channel, Reply};
use super::records::{self, PodFolder};
use super::runtime::{OciRuntime, PodEntry};
use super::spec;
use crate::{Attach, Exec, RuntimeError, Session, Size};

const BUFFER: usize = 64 * 1024;
const QUEUED_SIZES: usize = 8;

impl OciRuntime {
    pub(super) async fn run_beside(
        &self,
        entry: &PodEntry,
        id: &str,
        exec: &Exec,
    ) -> Result<Session, RuntimeError> {
        if exec.command.is_empty() {
            return Err(RuntimeError::Invalid("no command specified".to_owned()));
        }
        let configuration: serde_json::Value =
            records::read(&entry.folder.container(id).join("config.json"))?
                .ok_or_else(|| super::containers::missing(id))?;
        let process = spec::plan_exec(&configuration, &exec.command, exec.terminal);
        let mut connection = ShimConnection::open(&entry.folder).await?;
        let call = Call::Exec {
            container: id.to_owned(),
            terminal: exec.terminal,
            process: process.to_string(),
        };
        if exec.terminal {
            exec_with_terminal(connection, call, exec).await
        } else {
            let (ours, theirs) =
                streams(exec).map_err(|error| RuntimeError::io("make pipes", error))?;
            let given: Vec<_> = theirs.iter().map(AsFd::as_fd).collect();
            let reply = connection.ask(call, &given).await?;
            drop(theirs);
            started(reply, exec)?;
            Ok(Session {
                input: ours
                    .input
                    .map(|input| Box::new(input) as Box<dyn AsyncWrite + Send + Unpin>),
                output: ours
                    .output
                    .map(|output| Box::new(output) as Box<dyn AsyncRead + Send + Unpin>),
                errors: ours
                    .errors
                    .map(|errors| Box::new(errors) as Box<dyn AsyncRead + Send + Unpin>),
                resize: None,
                ended: end_of(connection).boxed(),
            })
        }
    }

    pub(super) async fn join(
        &self,
        entry: &PodEntry,
        id: &str,
        attach: Attach,
    ) -> Result<Session, RuntimeError> {
        let terminal = entry
            .live()
            .containers
            .get(id)
            .is_some_and(|found| found.record.spec.terminal);
        let mut connection = ShimConnection::open(&entry.folder).await?;
        let call = Call::Attach {
            container: id.to_owned(),
            input: attach.stdin,
            output: attach.stdout,
            errors: attach.stderr && !terminal,
        };
        match connection.ask(call, &[]).await? {
            Reply::Done => {}
            Reply::Failed { message } => return Err(RuntimeError::Invalid(message)),
            other => {
                return Err(RuntimeError::Other(format!(
                    "the shim answered {other:?} to an attach"
                )));
            }
        }
        let (reader, writer) = connection.split();
        let output = attach.stdout.then(|| tokio::io::duplex(BUFFER));
        let errors = (attach.stderr && !terminal).then(|| tokio::io::duplex(BUFFER));
        let (output, to_output) = output.unzip();
        let (errors, to_errors) = errors.unzip();
        let (mut end_sender, end) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let received = tokio::select! {
                received = receive(reader, to_output, to_errors) => received,
                // The session was let go.
                () = end_sender.closed() => return,
            };
            // Whoever does not wait for the end does not need it.
            drop(end_sender.send(received));
        });
        let input = attach.stdin.then(|| {
            let (ours, theirs) = tokio::io::duplex(BUFFER);
            tokio::spawn(send_input(theirs, writer));
            ours
        });
        Ok(Session {
            input: input.map(|input| Box::new(input) as Box<dyn AsyncWrite + Send + Unpin>),
            output: output.map(|output| Box::new(output) as Box<dyn AsyncRead + Send + Unpin>),
            errors: errors.map(|errors| Box::new(errors) as Box<dyn AsyncRead + Send + Unpin>),
            resize: terminal.then(|| resize_container(entry.folder.clone(), id.to_owned())),
            ended: async move {
                end.await.unwrap_or_else(|_| {
                    Err(RuntimeError::Other("the session was given up".to_owned()))
                })
            }
            .boxed(),
        })
    }
}

fn started(reply: Reply, exec: &Exec) -> Result<(), RuntimeError> {
    match reply {
        Reply::Started { .. } => Ok(()),
        Reply::Failed { message } => Err(RuntimeError::CannotRun {
            program: exec.command.first().cloned().unwrap_or_default(),
            cause: message,
        }),
        other => Err(RuntimeError::Other(format!(
            "the shim answered {other:?} to an exec"
        ))),
    }
}

async fn exec_with_terminal(
    mut connection: ShimConnection,
    call: Call,
    exec: &Exec,
) -> Result<Session, RuntimeError> {
    let failed = |error| RuntimeError::io("open the terminal of a program", error);
    let reply = connection.ask(call, &[]).await?;
    started(reply, exec)?;
    let terminal = connection.descriptors.pop();
    let terminal = terminal
        .ok_or_else(|| RuntimeError::Other("the program came without its terminal".to_owned()))?;
    let copy = |descriptor: &OwnedFd| {
        descriptor
            .try_clone()
            .and_then(Terminal::new)
            .map_err(failed)
    };
    let input = exec.stdin.then(|| copy(&terminal)).transpose()?;
    let output = exec.stdout.then(|| copy(&terminal)).transpose()?;
    Ok(Session {
        input: input.map(|input| Box::new(input) as Box<dyn AsyncWrite + Send + Unpin>),
        output: output.map(|output| Box::new(output) as Box<dyn AsyncRead + Send + Unpin>),
        errors: None,
        resize: Some(resize_terminal(terminal)),
        ended: end_of(connection).boxed(),
    })
}

/// The end of a program, as long as somebody waits: hanging up kills it.
async fn end_of(mut connection: ShimConnection) -> Result<i32, RuntimeError> {
    match connection.reply().await? {
        Reply::Ended { exit_code } => Ok(exit_code),
        other => Err(RuntimeError::Other(format!(
            "the shim said {other:?} instead of how a program ended"
        ))),
    }
}

struct Streams {
    input: Option<pipe::Sender>,
    output: Option<pipe::Receiver>,
    errors: Option<pipe::Receiver>,
}

/// Our ends and those of the program. What nobody wants leads nowhere.
fn streams(exec: &Exec) -> io::Result<(Streams, [OwnedFd; 3])> {
    let nowhere = || {
        std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .map(OwnedFd::from)
    };
    let output = |wanted: bool| -> io::Result<(Option<pipe::Receiver>, OwnedFd)> {
        if !wanted {
            return Ok((None, nowhere()?));
        }
        let (reader, writer) = io::pipe()?;
        Ok((
            Some(pipe::Receiver::from_owned_fd(reader.into())?),
            writer.into(),
        ))
    };
    let (input, their_input) = if exec.stdin {
        let (reader, writer) = io::pipe()?;
        (
            Some(pipe::Sender::from_owned_fd(writer.into())?),
            reader.into(),
        )
    } else {
        (None, nowhere()?)
    };
    let (ours, their_output) = output(exec.stdout)?;
    let (errors, their_errors) = output(exec.stderr)?;
    let streams = Streams {
        input,
        output: ours,
        errors,
    };
    Ok((streams, [their_input, their_output, their_errors]))
}

/// Passes on what comes from an attached container, until it ends.
async fn receive(
    mut connection: client::FrameReader,
    mut output: Option<DuplexStream>,
    mut errors: Option<DuplexStream>,
) -> Result<i32, RuntimeError> {
    let failed = |error| RuntimeError::io("hear the shim", error);
    while let Some((channel, content)) = connection.next().await.map_err(failed)? {
        let target = match channel {
            Channel::Output => &mut output,
            Channel::Errors => &mut errors,
            Channel::Input => continue,
            Channel::Control => match serde_json::from_slice(&content) {
                Ok(Reply::Ended { exit_code }) => return Ok(exit_code),
                _ => continue,
            },
        };
        if let Some(stream) = target
            && stream.write_all(&content).await.is_err()
        {
            // Nobody reads it any more.
            *target = None;
        }
    }
    Err(RuntimeError::Unavailable {
        runtime: "the shim of the pod",
        cause: "it hung up".to_owned(),
    })
}

async fn send_input(mut source: DuplexStream, mut writer: tokio::net::unix::OwnedWriteHalf) {
    let mut chunk = vec![0; BUFFER];
    loop {
        let count = source.read(&mut chunk).await.unwrap_or(0);
        let frame = protocol::frame(Channel::Input, &chunk[..count]);
        if writer.write_all(&frame).await.is_err() || count == 0 {
            // The end of the input is not yet the end of the session.
            writer.forget();
            return;
        }
    }
}

fn resize_container(folder: PodFolder, container: String) -> mpsc::Sender<Size> {
    let (sender, mut receiver) = mpsc::channel::<Size>(QUEUED_SIZES);
    tokio::spawn(async move {
        while let Some(size) = receiver.recv().await {
            let call = Call::Resize {
                container: container.clone(),
                columns: size.columns,
                rows: size.rows,
            };
            if let Err(error) = client::ask(&folder, call).await {
                tracing::debug!(container, %error, "a terminal cannot be resized");
            }
        }
    });
    sender
}

fn resize_terminal(terminal: OwnedFd) -> mpsc::Sender<Size> {
    let (sender, mut receiver) = mpsc::channel::<Size>(QUEUED_SIZES);
    tokio::spawn(async move {
        while let Some(size) = receiver.recv().await {
            let size = Winsize {
                ws_row: size.rows,
                ws_col: size.columns,
                ws_xpixel: 0,
                ws_ypixel: 0,
            };
            if let Err(error) = rustix::termios::tcsetwinsize(&terminal, size) {
                tracing::debug!(%error, "a terminal cannot be resized");
            }
        }
    });
    sender
}

/// Our side of a terminal.
struct Terminal(AsyncFd<std::fs::File>);

impl Terminal {
    fn new(descriptor: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&descriptor, true)?;
        let terminal = std::fs::File::from(descriptor);
        // SAFETY: a file is its descriptor's only owner and closes it when it is dropped, not before.
        let registered = unsafe { AsyncFd::register(terminal) };
        Ok(Self(registered.map_err(io::Error::from)?))
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(context))?;
            let space = buffer.initialize_unfilled();
            match guard.try_io(|terminal| terminal.get_ref().read(space)) {
                Ok(Ok(count)) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                // The last program of a terminal is gone: that is its end.
                Ok(Err(error)) if error.raw_os_error() == Some(nix::libc::EIO) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_) => {}
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(context))?;
            if let Ok(result) = guard.try_io(|terminal| terminal.get_ref().write(bytes)) {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// A terminal has no end of input but a key for it.
    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
