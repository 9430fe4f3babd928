//! The node this agent is: registered, described and alive, as long as the agent is.

mod describe;
mod lease;

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use k8s_openapi::{
    api::core::v1::{Node, NodeCondition, NodeStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::json;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use transom_runtime::{Image, Version};

pub(crate) use describe::{Capacity, own_labels};
pub(crate) use lease::run as keep_lease;

use self::describe::Facts;
use crate::{
    events::about_node,
    fault::{Fault, ask},
    site::Site,
};

/// How often the node is looked at, and how often it is told though nothing changed.
const LOOK: Duration = Duration::from_secs(10);
const TELL: Duration = Duration::from_mins(5);
const RETRY: Duration = Duration::from_secs(2);
/// How long the runtime may take to say who it is.
const RUNTIME: Duration = Duration::from_secs(15);

/// Registers the node and keeps its status, until `stop`.
pub(crate) async fn run(site: Arc<Site>, stop: CancellationToken) {
    let changed = Notify::new();
    site.events.normal(
        about_node(&site.options.node),
        "Starting",
        "Starting kubelet.".to_owned(),
    );
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&site, &changed) => {}
        () = keep_status(&site, &changed) => {}
    }
}

/// Knows the node as the API has it: others set labels and conditions, and somebody may delete it.
async fn follow(site: &Site, changed: &Notify) {
    let nodes = Api::<Node>::all(site.client.clone());
    let states = watcher::watch_object(nodes, &site.options.node).default_backoff();
    let mut states = std::pin::pin!(states);
    while let Some(state) = states.next().await {
        match state {
            Ok(node) => {
                let gone = node.is_none();
                site.set_node(node);
                if gone {
                    changed.notify_one();
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the watch for the node failed and is tried again");
            }
        }
    }
}

async fn keep_status(site: &Site, changed: &Notify) {
    let mut told: Option<(NodeStatus, Instant)> = None;
    let mut pause = RETRY;
    loop {
        let wait = match tell(site, &mut told).await {
            Ok(()) => {
                pause = RETRY;
                LOOK
            }
            Err(fault) => {
                tracing::warn!(%fault, "the node could not be told of");
                told = None;
                pause = (pause * 2).min(LOOK);
                pause
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = changed.notified() => {}
            () = site.pressure.changed.notified() => {}
        }
    }
}

async fn tell(site: &Site, told: &mut Option<(NodeStatus, Instant)>) -> Result<(), Fault> {
    let nodes = Api::<Node>::all(site.client.clone());
    let (runtime, images) = ask_runtime(site).await;
    let facts = Facts {
        site,
        runtime: runtime.as_ref(),
        images,
    };
    let known = match site.node() {
        Some(known) => (*known).clone(),
        None => {
            *told = None;
            register(site, &nodes, &facts).await?
        }
    };
    let now = site.options.clock.now();
    let mut status = describe::status(&facts, now);
    let before = known.status.unwrap_or_default();
    merge_conditions(&mut status, before.conditions.unwrap_or_default());
    let is_same = told.as_ref().is_some_and(|(last, when)| {
        when.elapsed() < TELL && without_heartbeats(last) == without_heartbeats(&status)
    });
    if is_same {
        return Ok(());
    }
    let was_ready = told.as_ref().map(|(last, _)| describe::is_ready(last));
    let is_ready = describe::is_ready(&status);
    let patch = Patch::Merge(json!({"status": status}));
    let answer = ask(nodes.patch_status(&site.options.node, &PatchParams::default(), &patch)).await;
    match answer {
        Ok(node) => site.set_node(Some(node)),
        Err(fault) => {
            if fault.is_absent() {
                site.set_node(None);
            }
            return Err(fault);
        }
    }
    if was_ready != Some(is_ready) {
        let reason = if is_ready {
            "NodeReady"
        } else {
            "NodeNotReady"
        };
        let text = format!("Node {} status is now: {reason}", site.options.node);
        site.events
            .normal(about_node(&site.options.node), reason, text);
    }
    *told = Some((status, Instant::now()));
    Ok(())
}

/// Makes the node, or finds it and gives it the labels it must have.
async fn register(site: &Site, nodes: &Api<Node>, facts: &Facts<'_>) -> Result<Node, Fault> {
    let wanted = describe::node(facts, site.options.clock.now());
    match ask(nodes.create(&PostParams::default(), &wanted)).await {
        Ok(node) => {
            site.set_node(Some(node.clone()));
            Ok(node)
        }
        Err(fault) if fault.is_conflict() => {
            let patch = Patch::Merge(json!({"metadata": {"labels": wanted.metadata.labels}}));
            let parameters = PatchParams::default();
            let node = ask(nodes.patch(&site.options.node, &parameters, &patch)).await?;
            site.set_node(Some(node.clone()));
            Ok(node)
        }
        Err(fault) => Err(fault),
    }
}

async fn ask_runtime(site: &Site) -> (Result<Version, String>, Vec<Image>) {
    let runtime = &site.options.runtime;
    let version = match tokio::time::timeout(RUNTIME, runtime.version()).await {
        Ok(Ok(version)) => {
            site.set_runtime(&version.name);
            Ok(version)
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the container runtime does not answer".to_owned()),
    };
    let images = match tokio::time::timeout(RUNTIME, runtime.images()).await {
        Ok(Ok(images)) => images,
        Ok(Err(error)) => {
            tracing::debug!(%error, "the images could not be listed");
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    (version, images)
}

/// Keeps conditions of others, and since when ours hold.
fn merge_conditions(status: &mut NodeStatus, before: Vec<NodeCondition>) {
    let ours = status.conditions.get_or_insert_default();
    for condition in before {
        match ours.iter_mut().find(|one| one.type_ == condition.type_) {
            Some(one) if one.status == condition.status => {
                one.last_transition_time = condition.last_transition_time;
            }
            Some(_) => {}
            None => ours.insert(0, condition),
        }
    }
}

fn without_heartbeats(status: &NodeStatus) -> NodeStatus {
    let mut status = status.clone();
    for condition in status.conditions.iter_mut().flatten() {
        condition.last_heartbeat_time = None::<Time>;
    }
    status
}
