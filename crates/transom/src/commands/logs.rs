//! `transom logs`: what containers print. Invariant: bytes arrive as they were printed; where several containers are
//! shown, lines stay whole and say whose they are.

use anyhow::Context as _;
use futures::stream::FuturesUnordered;
use futures::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use kube::{Api, ResourceExt as _};

use crate::client::{self, Place, container_of, containers_of};
use crate::cluster::{Chosen, Cluster};
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::output::OutputError;

/// How many containers are followed at once: each is a connection.
const MOST: usize = 50;
/// A longer line is passed on in pieces.
const LONGEST_LINE: u64 = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  transom logs web                          Of a pod
  transom logs deployment/web -f            Of all pods of a deployment, and what comes
  transom logs web -c proxy --since 10m
  transom logs web -p                       Of the container before it was restarted
  transom logs -l app=web --tail 20 --prefix";

/// Show what containers print
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Logs {
    /// A pod, or KIND/NAME of what has pods, such as deployment/web
    #[arg(
        value_name = "POD",
        required_unless_present = "selector",
        conflicts_with = "selector"
    )]
    what: Option<String>,

    /// The pods with these labels, such as `app=web`
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,

    #[command(flatten)]
    place: Place,

    /// The container, instead of the first or the one that the pod names
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,

    /// All containers of each pod
    #[arg(long, conflicts_with = "container")]
    all_containers: bool,

    /// Go on with what comes, until the containers end or you interrupt
    #[arg(short, long)]
    follow: bool,

    /// What the container printed before it was started again
    #[arg(short, long, conflicts_with = "follow")]
    previous: bool,

    /// Not older than this, such as 10m or 2h
    #[arg(long, value_name = "TIME")]
    since: Option<SignedDuration>,

    /// Not older than this moment, such as 2026-11-01T08:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "since")]
    since_time: Option<Timestamp>,

    /// Only so many lines from the end
    #[arg(long, value_name = "COUNT")]
    tail: Option<u32>,

    /// Put the time before each line
    #[arg(long)]
    timestamps: bool,

    /// Put pod and container before each line, also of one alone
    #[arg(long)]
    prefix: bool,

    #[command(flatten)]
    cluster: Chosen,
}

/// A container that prints.
struct Source {
    pod: String,
    container: String,
}

impl Logs {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        client::block_on(async {
            let cluster = self.cluster.open(cx).await?;
            let namespace = self.place.namespace(&cluster);
            let sources = self.sources(cx, &cluster, namespace).await?;
            let reading = Reading {
                pods: Api::namespaced(cluster.client.clone(), namespace),
                with_prefix: self.prefix || sources.len() > 1,
                cluster: &cluster,
                cx,
                wanted: &self,
            };
            let failed = if self.follow {
                reading.together(&sources).await?
            } else {
                reading.in_turn(&sources).await?
            };
            client::together(cx, "logs could not be read", failed)
        })
    }

    async fn sources(
        &self,
        cx: &Context,
        cluster: &Cluster,
        namespace: &str,
    ) -> anyhow::Result<Vec<Source>> {
        let pods = match (&self.what, &self.selector) {
            (Some(what), _) => client::pods_of(cluster, namespace, what).await?,
            (None, selector) => {
                let labels = selector.as_deref().unwrap_or_default();
                let pods = client::pods_with(cluster, namespace, labels).await?;
                if pods.is_empty() {
                    return Err(anyhow::anyhow!(
                        "no pods in namespace {namespace} have the labels {labels}"
                    ))
                    .exit(Exit::NotFound);
                }
                pods
            }
        };
        let mut sources = Vec::new();
        for pod in &pods {
            for container in self.containers(cx, pod, pods.len() == 1)? {
                let pod = pod.name_any();
                sources.push(Source { pod, container });
            }
        }
        if self.follow && sources.len() > MOST {
            return Err(anyhow::anyhow!(
                "{} containers are too many to follow at once; {MOST} are possible",
                sources.len()
            ))
            .hint("choose fewer with -l or -c, or leave out --follow")
            .exit(Exit::Usage);
        }
        Ok(sources)
    }

    fn containers(&self, cx: &Context, pod: &Pod, alone: bool) -> anyhow::Result<Vec<String>> {
        let all = containers_of(pod);
        if self.all_containers {
            return Ok(all.into_iter().map(str::to_owned).collect());
        }
        let chosen = container_of(pod, self.container.as_deref())?;
        if alone && self.container.is_none() && all.len() > 1 {
            cx.out.remark(&format!(
                "this is container {chosen} of {}; choose with -c or --all-containers",
                all.join(", ")
            ));
        }
        Ok(vec![chosen])
    }

    fn parameters(&self, container: &str) -> LogParams {
        LogParams {
            container: Some(container.to_owned()),
            follow: self.follow,
            previous: self.previous,
            since_seconds: self.since.map(|since| since.as_secs()),
            since_time: self.since_time,
            tail_lines: self.tail.map(i64::from),
            timestamps: self.timestamps,
            ..LogParams::default()
        }
    }
}

struct Reading<'a> {
    pods: Api<Pod>,
    with_prefix: bool,
    cluster: &'a Cluster,
    cx: &'a Context,
    wanted: &'a Logs,
}

impl Reading<'_> {
    /// One after the other. Whoever cannot be read does not keep others from being read.
    async fn in_turn(&self, sources: &[Source]) -> anyhow::Result<Vec<anyhow::Error>> {
        let mut failed = Vec::new();
        for source in sources {
            note(self.read(source).await, &mut failed)?;
        }
        Ok(failed)
    }

    /// All at once.
    async fn together(&self, sources: &[Source]) -> anyhow::Result<Vec<anyhow::Error>> {
        let mut all: FuturesUnordered<_> = sources.iter().map(|source| self.read(source)).collect();
        let mut failed = Vec::new();
        while let Some(outcome) = all.next().await {
            note(outcome, &mut failed)?;
        }
        Ok(failed)
    }

    async fn read(&self, source: &Source) -> anyhow::Result<()> {
        let Source { pod, container } = source;
        let what = || format!("could not read the log of container {container} in pod {pod}");
        let parameters = self.wanted.parameters(container);
        let answer = self.pods.log_stream(pod, &parameters).await;
        let mut stream = Box::pin(self.cluster.answer(answer).with_context(what)?);
        if self.with_prefix {
            let prefix = format!("[pod/{pod}/{container}] ");
            self.lines(&prefix, &mut stream).await.with_context(what)
        } else {
            self.bytes(&mut stream).await.with_context(what)
        }
    }

    async fn bytes(&self, stream: &mut (impl AsyncBufRead + Unpin)) -> anyhow::Result<()> {
        loop {
            let some = stream.fill_buf().await?;
            if some.is_empty() {
                return Ok(());
            }
            let length = some.len();
            self.cx.relay.stdout(some)?;
            stream.consume_unpin(length);
        }
    }

    async fn lines(
        &self,
        prefix: &str,
        stream: &mut (impl AsyncBufRead + Unpin),
    ) -> anyhow::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            line.extend_from_slice(prefix.as_bytes());
            let mut piece = (&mut *stream).take(LONGEST_LINE);
            if piece.read_until(b'\n', &mut line).await? == 0 {
                return Ok(());
            }
            // The next line may be another container's.
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            self.cx.relay.stdout(&line)?;
        }
    }
}

/// Keeps a failure for the end, unless nobody reads any more.
fn note(outcome: anyhow::Result<()>, failed: &mut Vec<anyhow::Error>) -> anyhow::Result<()> {
    match outcome {
        Err(error) if OutputError::is_reader_gone(&error) => Err(error),
        outcome => {
            failed.extend(outcome.err());
            Ok(())
        }
    }
}
