//! Streams into containers: programs beside their own, and their own.

use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::Inner;
use super::client::{CALL, encode};
use super::containers::state;
use super::frames::Frames;
use super::wire::{ExecState, Inspected, Made};
use crate::logs::Stream;
use crate::{Attach, ContainerId, ContainerState, Exec, RuntimeError, Session, Size};

const BUFFER: usize = 64 << 10;
const MOST_SIZES: usize = 16;
/// Between two looks whether a program has ended whose streams have.
const PAUSE: Duration = Duration::from_millis(20);

/// Which streams are wanted, and what is behind them.
struct Wanted {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    terminal: bool,
    behind: Behind,
}

#[derive(Clone, Debug)]
enum Behind {
    Exec(String),
    Container(ContainerId),
}

impl Inner {
    async fn running(&self, id: &ContainerId) -> Result<Arc<Inspected>, RuntimeError> {
        let found = self.existing(id).await?;
        if matches!(state(&found), ContainerState::Running { .. }) {
            return Ok(found);
        }
        let text = format!("container {id} is not running");
        Err(RuntimeError::Invalid(text))
    }

    pub(super) async fn exec(
        self: &Arc<Self>,
        id: &ContainerId,
        exec: &Exec,
    ) -> Result<Session, RuntimeError> {
        self.running(id).await?;
        let explain = |fault: super::client::Fault| fault.explain("container", &id.0);
        let body = json!({
            "AttachStdin": exec.stdin,
            // Without any stream nobody would be told when it ends.
            "AttachStdout": true,
            "AttachStderr": exec.stderr && !exec.terminal,
            "Tty": exec.terminal,
            "Cmd": exec.command,
        });
        let path = format!("/containers/{id}/exec");
        let made = self
            .client
            .post::<Made>(&path, &body)
            .await
            .map_err(explain)?;
        let body = json!({"Detach": false, "Tty": exec.terminal});
        let path = format!("/exec/{}/start", made.id);
        let connection =
            self.client
                .take_over(&path, &body)
                .await
                .map_err(|fault| RuntimeError::CannotRun {
                    program: exec.command.first().cloned().unwrap_or_default(),
                    cause: fault.message().to_owned(),
                })?;
        let wanted = Wanted {
            stdin: exec.stdin,
            stdout: exec.stdout,
            stderr: exec.stderr && !exec.terminal,
            terminal: exec.terminal,
            behind: Behind::Exec(made.id),
        };
        Ok(self.begin(connection, wanted))
    }

    pub(super) async fn attach(
        self: &Arc<Self>,
        id: &ContainerId,
        attach: &Attach,
    ) -> Result<Session, RuntimeError> {
        let found = self.running(id).await?;
        let terminal = found.config.tty;
        let path = format!(
            "/containers/{id}/attach?stream=1&stdin={}&stdout=1&stderr={}",
            u8::from(attach.stdin),
            u8::from(attach.stderr && !terminal),
        );
        let taken = self.client.take_over(&path, &json!({})).await;
        let connection = taken.map_err(|fault| fault.explain("container", &id.0))?;
        let wanted = Wanted {
            stdin: attach.stdin,
            stdout: attach.stdout,
            stderr: attach.stderr && !terminal,
            terminal,
            behind: Behind::Container(id.clone()),
        };
        Ok(self.begin(connection, wanted))
    }

    fn begin(self: &Arc<Self>, connection: TokioIo<Upgraded>, wanted: Wanted) -> Session {
        let (from, to) = tokio::io::split(connection);
        let (input, our_input) = tokio::io::duplex(BUFFER);
        let (output, our_output) = tokio::io::duplex(BUFFER);
        let (errors, our_errors) = tokio::io::duplex(BUFFER);
        let (resize, sizes) = mpsc::channel(MOST_SIZES);
        let (mut end, ended) = oneshot::channel();
        let sinks = Sinks {
            output: wanted.stdout.then_some(our_output),
            errors: wanted.stderr.then_some(our_errors),
        };
        let (inner, behind) = (Arc::clone(self), wanted.behind);
        let (stdin, terminal) = (wanted.stdin, wanted.terminal);
        tokio::spawn(async move {
            let work = async {
                tokio::select! {
                    () = carry(Frames::new(from, terminal), sinks) => {}
                    never = send_input(our_input, to, stdin) => match never {},
                    never = inner.send_sizes(sizes, &behind) => match never {},
                }
                inner.exit_code(&behind).await
            };
            let ending = tokio::select! {
                ending = work => ending,
                // The session was dropped: the connection goes with it.
                () = end.closed() => return,
            };
            // Nobody may be waiting.
            let _ = end.send(ending);
        });
        Session {
            input: wanted.stdin.then(|| Box::new(input) as _),
            output: wanted.stdout.then(|| Box::new(output) as _),
            errors: wanted.stderr.then(|| Box::new(errors) as _),
            resize: wanted.terminal.then_some(resize),
            ended: Box::pin(async move {
                ended.await.unwrap_or_else(|_| {
                    let text = "the connection to docker broke";
                    Err(RuntimeError::Other(text.to_owned()))
                })
            }),
        }
    }

    async fn send_sizes(
        &self,
        mut sizes: mpsc::Receiver<Size>,
        behind: &Behind,
    ) -> std::convert::Infallible {
        while let Some(size) = sizes.recv().await {
            let place = match behind {
                Behind::Exec(id) => format!("/exec/{id}"),
                Behind::Container(id) => format!("/containers/{id}"),
            };
            let path = format!("{place}/resize?h={}&w={}", size.rows, size.columns);
            if let Err(fault) = self.client.act(Method::POST, &path, CALL).await {
                tracing::debug!(cause = fault.message(), "a terminal keeps its size");
            }
        }
        std::future::pending().await
    }

    /// The exit code of a program whose streams have ended.
    async fn exit_code(&self, behind: &Behind) -> Result<i32, RuntimeError> {
        let waited = async {
            loop {
                if let Some(code) = self.code_so_far(behind).await? {
                    return Ok(code);
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        // A program may close its outputs and run on.
        tokio::time::timeout(CALL, waited).await.unwrap_or(Ok(0))
    }

    async fn code_so_far(&self, behind: &Behind) -> Result<Option<i32>, RuntimeError> {
        match behind {
            Behind::Exec(id) => {
                let path = format!("/exec/{}/json", encode(id));
                let found = self.client.get::<ExecState>(&path).await;
                let found = found.map_err(|fault| fault.explain("program", id))?;
                let code = found.exit_code.filter(|_| !found.running);
                Ok(code.map(|code| i32::try_from(code).unwrap_or(i32::MAX)))
            }
            Behind::Container(id) => match state(&*self.existing(id).await?) {
                ContainerState::Exited(ended) => Ok(Some(ended.exit_code)),
                _ => Ok(None),
            },
        }
    }
}

/// Where the outputs of a program go.
struct Sinks {
    output: Option<DuplexStream>,
    errors: Option<DuplexStream>,
}

/// Carries outputs until the program has closed them.
async fn carry(mut frames: Frames<ReadHalf<TokioIo<Upgraded>>>, mut sinks: Sinks) {
    loop {
        let piece = match frames.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%error, "streams of docker broke");
                return;
            }
        };
        let sink = match piece.stream {
            Stream::Stdout => &mut sinks.output,
            Stream::Stderr => &mut sinks.errors,
        };
        if let Some(to) = sink {
            // Who does not read any more does not miss it.
            if to.write_all(&piece.bytes).await.is_err() {
                *sink = None;
            }
        }
    }
}

/// Carries the input, tells its end, and waits for others.
async fn send_input(
    mut from: DuplexStream,
    mut to: WriteHalf<TokioIo<Upgraded>>,
    is_wanted: bool,
) -> std::convert::Infallible {
    if is_wanted {
        let sent = async {
            tokio::io::copy(&mut from, &mut to).await?;
            to.shutdown().await
        };
        if let Err(error) = sent.await {
            tracing::debug!(%error, "a program takes no more input");
        }
    }
    std::future::pending().await
}
