//! Streams of fake programs. Only while somebody holds a session there are tasks for it.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::oneshot;

use super::clock::Clock;
use super::node::Node;
use super::plan::{ExecPlan, Plan};
use crate::logs::{LogWriter, Stream};
use crate::{Attach, ContainerId, Exec, RuntimeError, Session};

const BUFFER: usize = 64 << 10;

type Ends = (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>);

fn pipe() -> (Ends, Ends) {
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    (tokio::io::split(ours), tokio::io::split(theirs))
}

pub(super) fn run(exec: &Exec, plan: ExecPlan) -> Session {
    let ((mut input, mut output), (their_output, their_input)) = pipe();
    let (mut errors, their_errors) = tokio::io::duplex(BUFFER);
    let (end, ended) = oneshot::channel();
    let wants_input = exec.stdin && plan.echoes_input;
    tokio::spawn(async move {
        // A stream fails when its reader has gone, and then nobody misses what it would have said.
        let _ = errors.write_all(&plan.errors).await;
        let _ = output.write_all(&plan.output).await;
        if wants_input {
            let _ = tokio::io::copy(&mut input, &mut output).await;
        }
        let _ = output.shutdown().await;
        drop(errors);
        let _ = end.send(plan.exit_code);
    });
    Session {
        input: exec.stdin.then(|| Box::new(their_input) as _),
        output: exec.stdout.then(|| Box::new(their_output) as _),
        errors: (exec.stderr && !exec.terminal).then(|| Box::new(their_errors) as _),
        resize: None,
        ended: Box::pin(async move { ended.await.map_err(|_| gone()) }),
    }
}

fn gone() -> RuntimeError {
    RuntimeError::Other("the program is gone".to_owned())
}

/// What an attached session needs to know of its container.
pub(super) struct Attached {
    pub(super) node: Arc<Node>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) container: ContainerId,
    pub(super) plan: Arc<Plan>,
    pub(super) log: Option<Arc<LogWriter>>,
    /// The input of the container ends with this session's.
    pub(super) ends_input: bool,
    pub(super) ended: oneshot::Receiver<i32>,
}

pub(super) fn attach(attach: Attach, to: Attached) -> Session {
    let (ours, (their_output, their_input)) = pipe();
    let (end, ended) = oneshot::channel();
    tokio::spawn(follow(attach, to, ours, end));
    Session {
        input: attach.stdin.then(|| Box::new(their_input) as _),
        output: attach.stdout.then(|| Box::new(their_output) as _),
        errors: attach.stderr.then(|| Box::new(tokio::io::empty()) as _),
        resize: None,
        ended: Box::pin(async move { ended.await.map_err(|_| gone()) }),
    }
}

/// Holds the streams of a session until the container ends or nobody is there any more.
async fn follow(attach: Attach, to: Attached, ours: Ends, mut end: oneshot::Sender<i32>) {
    let Attached {
        node,
        clock,
        container,
        plan,
        log,
        ends_input,
        mut ended,
    } = to;
    let (from, mut echo) = ours;
    let talk = async {
        if attach.stdin {
            talk(from, &mut echo, &plan, log.as_deref()).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        code = &mut ended => return finish(end, code.ok()),
        () = talk => {}
        // Whoever goes away says nothing more.
        () = end.closed() => {}
    }
    if let (true, Some(code)) = (ends_input, plan.ends_with_input) {
        node.end(&container, clock.now(), code);
    }
    tokio::select! {
        code = ended => finish(end, code.ok()),
        () = end.closed() => {}
    }
}

fn finish(end: oneshot::Sender<i32>, code: Option<i32>) {
    if let Some(code) = code {
        // Nobody may be waiting.
        let _ = end.send(code);
    }
}

/// Gives lines back until there are no more.
async fn talk(
    from: ReadHalf<DuplexStream>,
    to: &mut WriteHalf<DuplexStream>,
    plan: &Plan,
    log: Option<&LogWriter>,
) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if !plan.echoes_input {
            continue;
        }
        let line = format!("{line}\n");
        if let Some(log) = log
            && let Err(error) = log.write(Stream::Stdout, line.as_bytes())
        {
            tracing::warn!(%error, "the log of a fake container cannot be written");
        }
        if to.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}
