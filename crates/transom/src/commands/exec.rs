//! `transom exec`: a program in a container, with our streams as its own. Invariant: its exit code is ours, and the
//! terminal is afterwards what it was before.

use std::io::{IsTerminal as _, Read as _};
use std::time::Duration;

use anyhow::Context as _;
use futures::SinkExt as _;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{AttachParams, AttachedProcess, TerminalSize};
use kube::{Api, ResourceExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use transom_host::terminal::RawTerminal;

use crate::client::{self, Place, container_of};
use crate::cluster::{Chosen, Cluster};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::output::OutputError;

/// How many bytes are passed on at once.
const PIECE: usize = 16 << 10;
/// How many pieces of our input wait for a slow program.
const WAITING: usize = 16;
/// How often the size of the terminal is looked at; not every system says when it changes.
const SIZE: Duration = Duration::from_millis(250);

const EXAMPLES: &str = "\
Examples:
  transom exec web -- ls /
  transom exec -it web -- sh
  transom exec deployment/web -c proxy -- cat /etc/hosts
  tar c folder | transom exec -i web -- tar x -C /tmp

The exit code is that of the program.";

/// Run a program in a container of a pod
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Exec {
    /// A pod, or KIND/NAME of what has pods; of several the first that runs
    #[arg(value_name = "POD")]
    what: String,

    #[command(flatten)]
    place: Place,

    /// The container, instead of the first or the one that the pod names
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,

    /// Pass our standard input on
    #[arg(short = 'i', long)]
    stdin: bool,

    /// Give the program a terminal
    #[arg(short = 't', long)]
    tty: bool,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,

    #[command(flatten)]
    cluster: Chosen,
}

impl Exec {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        client::block_on(async {
            let cluster = self.cluster.open(cx).await?;
            let namespace = self.place.namespace(&cluster);
            let pod = self.pod(&cluster, namespace).await?;
            let container = container_of(&pod, self.container.as_deref())?;
            let name = pod.name_any();
            let parameters = AttachParams {
                container: Some(container.clone()),
                stdin: self.stdin,
                stdout: true,
                // A terminal has one stream for both.
                stderr: !self.tty,
                tty: self.tty,
                max_stdin_buf_size: Some(PIECE),
                max_stdout_buf_size: Some(PIECE),
                max_stderr_buf_size: Some(PIECE),
            };
            let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
            let answer = pods.exec(&name, &self.command, &parameters).await;
            let attached = cluster.answer(answer).with_context(|| {
                format!("could not run a program in container {container} of pod {name}")
            })?;
            let raw = self.raw_terminal(cx)?;
            let ended = self.attend(cx, attached).await;
            drop(raw);
            Ok(exit_of(cx, code_of(ended?)?))
        })
    }

    /// The pod that is meant.
    async fn pod(&self, cluster: &Cluster, namespace: &str) -> anyhow::Result<Pod> {
        let pods = client::pods_of(cluster, namespace, &self.what).await?;
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        let Some(first) = pods.first() else {
            return Err(anyhow::anyhow!("{} has no pods", self.what)).exit(Exit::NotFound);
        };
        let is_running = |pod: &&Pod| phase(pod).as_deref() == Some("Running");
        match pods.iter().find(is_running) {
            Some(pod) => Ok(pod.clone()),
            None => Err(anyhow::anyhow!(
                "pod {} is {}, not Running",
                first.name_any(),
                phase(first).as_deref().unwrap_or("of no known phase")
            ))
            .hint(format!(
                "its events say why: transom get events -n {namespace} --field-selector involvedObject.name={}",
                first.name_any()
            ))
            .exit(Exit::NotRunning),
        }
    }

    /// Lets the program have our terminal, if we have one and it wants one.
    fn raw_terminal(&self, cx: &Context) -> anyhow::Result<Option<RawTerminal>> {
        if !self.tty || !self.stdin {
            return Ok(None);
        }
        if !std::io::stdin().is_terminal() {
            cx.out
                .remark("our standard input is no terminal; it is passed on as it is");
            return Ok(None);
        }
        let raw = RawTerminal::enter().context("could not take over the terminal")?;
        Ok(Some(raw))
    }

    /// Passes everything on until the program has ended, and says how it did.
    async fn attend(
        &self,
        cx: &Context,
        mut attached: AttachedProcess,
    ) -> anyhow::Result<Option<Status>> {
        let status = attached.take_status();
        let (stdout, stderr) = (attached.stdout(), attached.stderr());
        let stdin = attached.stdin();
        let sizes = attached.terminal_size();
        let outputs = async {
            tokio::try_join!(
                pass_out(stdout, |bytes| cx.relay.stdout(bytes)),
                pass_out(stderr, |bytes| cx.relay.stderr(bytes)),
            )
        };
        let inputs = async {
            let ((), ()) = tokio::join!(pass_in(stdin), pass_sizes(sizes));
            // The program may go on without us.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = outputs => { ended?; }
            () = inputs => {}
        }
        let status = match status {
            Some(status) => status.await,
            None => None,
        };
        match attached.join().await {
            Ok(()) => Ok(status),
            // What the program said at its end counts more than how the connection ended.
            Err(error) if status.is_some() => {
                tracing::debug!(%error, "the connection ended badly after the program");
                Ok(status)
            }
            Err(error) => Err(error).context("the connection to the program broke"),
        }
    }
}

/// Passes what the program prints on.
async fn pass_out(
    stream: Option<impl AsyncRead + Unpin>,
    print: impl Fn(&[u8]) -> Result<(), OutputError>,
) -> anyhow::Result<()> {
    let Some(mut stream) = stream else {
        return Ok(());
    };
    let mut piece = vec![0; PIECE];
    loop {
        let length = stream.read(&mut piece).await?;
        if length == 0 {
            return Ok(());
        }
        print(&piece[..length])?;
    }
}

/// Passes our standard input on. A thread reads it: such a read cannot be given up, but a process can end all the same.
async fn pass_in(stream: Option<impl AsyncWrite + Unpin>) {
    let Some(mut stream) = stream else { return };
    let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(WAITING);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut piece = vec![0; PIECE];
        // An input that cannot be read has ended.
        while let Ok(length @ 1..) = stdin.read(&mut piece) {
            if sender.blocking_send(piece[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    while let Some(piece) = pieces.recv().await {
        // A program that ended takes no more; how it ended is told elsewhere.
        if stream.write_all(&piece).await.is_err() {
            return;
        }
    }
    if let Err(error) = stream.shutdown().await {
        tracing::debug!(%error, "the end of our input could not be passed on");
    }
}

/// Tells how large our terminal is, first and whenever that changes.
async fn pass_sizes(sizes: Option<futures::channel::mpsc::Sender<TerminalSize>>) {
    let Some(mut sizes) = sizes else { return };
    let mut known = None;
    let mut ticks = tokio::time::interval(SIZE);
    loop {
        ticks.tick().await;
        let Some((width, height)) = terminal_size::terminal_size() else {
            return;
        };
        let size = (width.0, height.0);
        if known.replace(size) == Some(size) {
            continue;
        }
        let size = TerminalSize {
            width: size.0,
            height: size.1,
        };
        if sizes.send(size).await.is_err() {
            return;
        }
    }
}

/// The exit code of the program, or why there is none.
fn code_of(status: Option<Status>) -> anyhow::Result<i64> {
    let Some(status) = status else {
        return Err(anyhow::anyhow!(
            "the connection ended before the program did"
        ))
        .hint("the program may still run; look at the pod");
    };
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let message = status.message.unwrap_or_default();
    let causes = status.details.and_then(|details| details.causes);
    let code = causes
        .into_iter()
        .flatten()
        .find(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .and_then(|cause| cause.message?.parse().ok());
    code.ok_or_else(|| anyhow::anyhow!("the program could not be run: {message}"))
}

/// How we end for a program that ended with `code`.
fn exit_of(cx: &Context, code: i64) -> Exit {
    match u8::try_from(code) {
        Ok(0) => Exit::Success,
        Ok(code) => Exit::Status(code),
        Err(_) => {
            // Windows has more codes than we can end with.
            let text = format!("the program ended with code {code}");
            cx.out.remark(&text);
            Exit::Status(u8::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn code(status: Value) -> Result<i64, String> {
        let status = serde_json::from_value(status).unwrap();
        code_of(Some(status)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_exit_code_is_the_one_of_the_program() {
        assert_eq!(code(json!({"status": "Success"})), Ok(0));
        let ended = json!({
            "status": "Failure",
            "reason": "NonZeroExitCode",
            "message": "command terminated with non-zero exit code",
            "details": {"causes": [{"reason": "ExitCode", "message": "7"}]},
        });
        assert_eq!(code(ended), Ok(7));
    }

    #[test]
    fn a_program_that_did_not_run_has_no_code() {
        let failed = json!({"status": "Failure", "message": "no such file"});
        assert_eq!(
            code(failed).unwrap_err(),
            "the program could not be run: no such file"
        );
        let odd = json!({"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "x"}]}});
        code(odd).unwrap_err();
        code_of(None).unwrap_err();
    }
}
