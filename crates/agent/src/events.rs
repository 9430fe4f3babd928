//! Tells people what happens, as events of the API with kubelet's reasons and texts.
//!
//! Telling never holds up the work: a full queue drops, and what repeats is counted instead of written anew.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{Clock, fault::ask, pods::Kind};

const QUEUE: usize = 512;
/// How many events are remembered to be counted when they repeat.
const REMEMBERED: usize = 1024;
/// Longer messages are cut, as the API takes no longer ones.
const LONGEST_MESSAGE: usize = 1000;

#[derive(Debug)]
struct Told {
    about: ObjectReference,
    kind: &'static str,
    reason: &'static str,
    message: String,
    when: Timestamp,
}

type Key = (Option<String>, Option<String>, &'static str, String);

/// Where events are handed in.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    queue: mpsc::Sender<Told>,
    clock: Clock,
}

impl Events {
    pub(crate) fn new(clock: Clock) -> (Self, Outbox) {
        let (queue, inbox) = mpsc::channel(QUEUE);
        (Self { queue, clock }, Outbox { inbox })
    }

    pub(crate) fn normal(&self, about: ObjectReference, reason: &'static str, message: String) {
        self.tell(about, "Normal", reason, message);
    }

    pub(crate) fn warning(&self, about: ObjectReference, reason: &'static str, message: String) {
        self.tell(about, "Warning", reason, message);
    }

    fn tell(
        &self,
        about: ObjectReference,
        kind: &'static str,
        reason: &'static str,
        mut message: String,
    ) {
        if message.len() > LONGEST_MESSAGE {
            let end = (0..=LONGEST_MESSAGE)
                .rev()
                .find(|end| message.is_char_boundary(*end));
            message.truncate(end.unwrap_or(0));
        }
        let when = self.clock.now();
        let told = Told {
            about,
            kind,
            reason,
            message,
            when,
        };
        if let Err(error) = self.queue.try_send(told) {
            tracing::debug!(%error, "an event was dropped");
        }
    }
}

/// Events on their way out.
#[derive(Debug)]
pub(crate) struct Outbox {
    inbox: mpsc::Receiver<Told>,
}

impl Outbox {
    pub(crate) async fn run(mut self, client: Client, node: String, stop: CancellationToken) {
        let mut known = Known::default();
        while let Some(Some(told)) = stop.run_until_cancelled(self.inbox.recv()).await {
            let namespace = told
                .about
                .namespace
                .clone()
                .unwrap_or_else(|| "default".to_owned());
            let events = Api::<Event>::namespaced(client.clone(), &namespace);
            if let Err(fault) = known.write(&events, &node, told).await {
                tracing::debug!(%fault, "an event could not be written");
            }
        }
    }
}

#[derive(Default)]
struct Known {
    counts: BTreeMap<Key, (String, i32)>,
    order: VecDeque<Key>,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Known {
    async fn write(
        &mut self,
        events: &Api<Event>,
        node: &str,
        told: Told,
    ) -> Result<(), crate::fault::Fault> {
        let about = &told.about;
        let key = (
            about.uid.clone(),
            about.field_path.clone(),
            told.reason,
            told.message.clone(),
        );
        if let Some((name, count)) = self.counts.get_mut(&key) {
            *count = count.saturating_add(1);
            let patch = json!({"count": *count, "lastTimestamp": Time(told.when)});
            let patched =
                ask(events.patch(name, &PatchParams::default(), &Patch::Merge(patch))).await;
            match patched {
                Err(fault) if fault.is_absent() => {}
                other => return other.map(drop),
            }
        }
        let stamp = told.when.as_nanosecond();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!(
            "{}.{:x}{number:04x}",
            about.name.clone().unwrap_or_default(),
            stamp
        );
        let event = Event {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(
                    about
                        .namespace
                        .clone()
                        .unwrap_or_else(|| "default".to_owned()),
                ),
                ..ObjectMeta::default()
            },
            involved_object: told.about,
            type_: Some(told.kind.to_owned()),
            reason: Some(told.reason.to_owned()),
            message: Some(told.message),
            count: Some(1),
            first_timestamp: Some(Time(told.when)),
            last_timestamp: Some(Time(told.when)),
            source: Some(EventSource {
                component: Some("kubelet".to_owned()),
                host: Some(node.to_owned()),
            }),
            reporting_component: Some("kubelet".to_owned()),
            reporting_instance: Some(node.to_owned()),
            ..Event::default()
        };
        ask(events.create(&PostParams::default(), &event)).await?;
        self.remember(key, name);
        Ok(())
    }

    fn remember(&mut self, key: Key, name: String) {
        if self.counts.insert(key.clone(), (name, 1)).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
    }
}

pub(crate) fn about_pod(pod: &Pod) -> ObjectReference {
    let meta = &pod.metadata;
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: None,
    }
}

pub(crate) fn about_container(pod: &Pod, kind: Kind, name: &str) -> ObjectReference {
    let list = match kind {
        Kind::Init | Kind::Sidecar => "initContainers",
        Kind::Main => "containers",
        Kind::Ephemeral => "ephemeralContainers",
    };
    ObjectReference {
        field_path: Some(format!("spec.{list}{{{name}}}")),
        ..about_pod(pod)
    }
}

/// Nodes are known by name here, as kubelet does it.
pub(crate) fn about_node(name: &str) -> ObjectReference {
    ObjectReference {
        kind: Some("Node".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}
