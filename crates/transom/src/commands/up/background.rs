//! Starts the cluster as a process of its own, and waits until it works.

use std::cell::RefCell;
use std::env;
use std::time::Duration;

use anyhow::{Context as _, bail};
use camino::Utf8PathBuf;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, ListParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use tokio::time::Instant;
use transom_host::files::{Files as _, Native};
use transom_host::process::{
    Lifetime, Native as NativeProcesses, Output as To, Process, Processes as _, Spawn,
};

use super::demo;
use super::foreground::{Record, Wanted};
use super::place::Place;
use crate::context::Context;
use crate::failure::{Advice as _, Exit};
use crate::progress::Task;

/// Between two looks at what is not there yet.
const ROUND: Duration = Duration::from_millis(50);
/// The end of a log that is worth repeating.
const LAST_LINES: usize = 8;

pub(super) fn run(
    cx: &Context,
    place: &Place,
    wanted: &Wanted,
    timeout: Duration,
) -> anyhow::Result<Exit> {
    Native.create_dir_all(&place.folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let until = Instant::now() + timeout;
        let (process, before) = if place.is_held() {
            (None, None)
        } else {
            // What an earlier cluster has left would be taken for ours.
            let before = Record::read(place)?.map(|record| record.instance);
            (Some(start(cx, place, wanted)?), before)
        };
        let task = cx.progress.start("starting the cluster");
        let worked = tokio::time::timeout_at(
            until,
            work(place, before.as_deref(), process.as_deref(), &task),
        )
        .await;
        drop(task);
        let record = match worked {
            Ok(worked) => worked?,
            Err(_) => {
                return Err(anyhow::anyhow!(
                    "the cluster does not work after {timeout:?}"
                ))
                .hint(format!(
                    "look at `{}`; --timeout gives it longer",
                    place.log()
                ));
            }
        };
        report(cx, place, &record, process.is_none());
        Ok(Exit::Success)
    })
}

fn start(cx: &Context, place: &Place, wanted: &Wanted) -> anyhow::Result<Box<dyn Process>> {
    let program = env::current_exe().context("could not find this program")?;
    let program = Utf8PathBuf::try_from(program)?;
    let mut arguments = vec![
        "up".to_owned(),
        "--foreground".to_owned(),
        format!("--data-dir={}", place.folder),
        format!("--listen={}", wanted.listen),
        format!("--agent-listen={}", wanted.agent_listen),
        format!("--node-name={}", wanted.node_name),
        format!("--runtime={}", wanted.runtime.word()),
    ];
    arguments.extend(
        wanted
            .registries
            .iter()
            .map(|file| format!("--registries={file}")),
    );
    arguments.push(match wanted.demo {
        Some(address) => format!("--demo-listen={address}"),
        None => "--no-demo".to_owned(),
    });
    let mut spawn = Spawn::new(program);
    spawn.args = arguments;
    spawn.env = cx.environment.all();
    spawn.stdout = To::Truncate(place.log());
    spawn.stderr = To::Append(place.log());
    spawn.lifetime = Lifetime::Detached;
    NativeProcesses
        .spawn(&spawn)
        .context("could not start the cluster")
}

/// Returns when the API answers, the node is ready and the demonstration runs.
async fn work(
    place: &Place,
    before: Option<&str>,
    process: Option<&dyn Process>,
    task: &Task,
) -> anyhow::Result<Record> {
    let record = loop {
        match Record::read(place)? {
            Some(record) if before != Some(record.instance.as_str()) => break record,
            _ => {}
        }
        still_there(place, process)?;
        tokio::time::sleep(ROUND).await;
    };
    let client = client(place).await?;
    task.step("the API answers");
    until(place, process, || is_ready(&client, &record.node)).await?;
    task.step(&format!("node {} is ready", record.node));
    if record.demo.is_some() {
        let told = RefCell::default();
        until(place, process, || is_available(&client, task, &told)).await?;
        task.step("the demonstration runs");
    }
    Ok(record)
}

async fn until<F>(
    place: &Place,
    process: Option<&dyn Process>,
    look: impl Fn() -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = bool>,
{
    while !look().await {
        still_there(place, process)?;
        tokio::time::sleep(ROUND).await;
    }
    Ok(())
}

/// Fails with the last words of a process that has ended.
fn still_there(place: &Place, process: Option<&dyn Process>) -> anyhow::Result<()> {
    let Some(process) = process else {
        return Ok(());
    };
    if process.wait(Some(Duration::ZERO))?.is_none() {
        return Ok(());
    }
    let log = fs_err::read_to_string(place.log()).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    bail!("the cluster ended right after its start:\n{last}")
}

async fn client(place: &Place) -> anyhow::Result<Client> {
    let text = fs_err::read_to_string(place.kubeconfig())?;
    let kubeconfig = Kubeconfig::from_yaml(&text)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Nobody answering is an answer too: not yet.
async fn is_ready(client: &Client, node: &str) -> bool {
    let nodes: Api<Node> = Api::all(client.clone());
    let found = nodes.get_opt(node).await.ok().flatten();
    let conditions = found.and_then(|node| node.status?.conditions);
    conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// `told` is what was last said about a wait, which is said once.
async fn is_available(client: &Client, task: &Task, told: &RefCell<String>) -> bool {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), demo::NAMESPACE);
    let found = deployments.get_opt(demo::NAME).await.ok().flatten();
    let status = found
        .and_then(|deployment| deployment.status)
        .unwrap_or_default();
    if status.available_replicas.unwrap_or(0) > 0 {
        return true;
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), demo::NAMESPACE);
    let ours = ListParams::default()
        .labels(&format!("app={}", demo::NAME))
        .limit(1);
    if let Ok(found) = pods.list(&ours).await
        && let Some(waiting) = found.items.first().and_then(waiting)
        && told.replace(waiting.clone()) != waiting
    {
        task.step(&waiting);
    }
    false
}

/// What the first container of a pod waits for.
fn waiting(pod: &Pod) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let waiting = statuses.first()?.state.as_ref()?.waiting.as_ref()?;
    let message = waiting.message.as_deref().unwrap_or_default();
    let reason = waiting.reason.as_deref()?;
    Some(
        format!("the demonstration waits: {reason} {message}")
            .trim_end()
            .to_owned(),
    )
}

fn report(cx: &Context, place: &Place, record: &Record, was_there: bool) {
    let first = if was_there {
        format!("The cluster runs already: node {} is ready.", record.node)
    } else {
        format!("The cluster runs: node {} is ready.", record.node)
    };
    let mut lines = vec![first, String::new()];
    if let Some(address) = record.demo {
        lines.push(format!("  look at it    http://{address}/"));
    }
    lines.push(format!(
        "  kubectl       export KUBECONFIG={}",
        place.kubeconfig()
    ));
    lines.push("                kubectl get nodes,pods --all-namespaces".to_owned());
    lines.push(format!("  log           {}", place.log()));
    lines.push("  stop          transom down".to_owned());
    cx.out.remark(&lines.join("\n"));
}
