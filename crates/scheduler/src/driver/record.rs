//! Events: what people read when they ask what happened. They are written behind the work, by few at a time,
//! and lost rather than waited for.

use futures::StreamExt as _;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::mpsc;

use crate::pod::PodFacts;

/// How many events may wait to be written.
const WAITING: usize = 16_384;
const AT_ONCE: usize = 2;
/// The longest note that the API takes.
const LONGEST_NOTE: usize = 1024;

/// Hands events to those who write them.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    events: mpsc::Sender<Box<Event>>,
    instance: String,
}

/// What happened to a pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct Happening<'a> {
    pub(super) is_warning: bool,
    pub(super) reason: &'a str,
    pub(super) action: &'a str,
    pub(super) scheduler: &'a str,
}

impl Recorder {
    /// The recorder and the work of writing, which ends when the last recorder is gone.
    pub(super) fn new(client: Client, instance: String) -> (Self, impl Future<Output = ()>) {
        let (events, received) = mpsc::channel(WAITING);
        let work = write(client, received);
        (Self { events, instance }, work)
    }

    pub(super) fn record(&self, pod: &PodFacts, what: Happening<'_>, note: String, number: u64) {
        let now = Timestamp::now();
        let mut note = note;
        if note.len() > LONGEST_NOTE {
            let end = (0..=LONGEST_NOTE - 3)
                .rev()
                .find(|end| note.is_char_boundary(*end));
            note.truncate(end.unwrap_or_default());
            note.push_str("...");
        }
        let event = Event {
            metadata: ObjectMeta {
                // The number tells apart what happens within one tick of the clock.
                name: Some(format!("{}.{:x}{number:x}", pod.name, now.as_nanosecond())),
                namespace: Some(pod.namespace.to_string()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(now)),
            reporting_controller: Some(what.scheduler.to_owned()),
            reporting_instance: Some(format!("{}-{}", what.scheduler, self.instance)),
            action: Some(what.action.to_owned()),
            reason: Some(what.reason.to_owned()),
            regarding: Some(ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name.to_string()),
                namespace: Some(pod.namespace.to_string()),
                uid: Some(pod.uid.to_string()),
                ..ObjectReference::default()
            }),
            note: Some(note),
            type_: Some(if what.is_warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        if self.events.try_send(Box::new(event)).is_err() {
            tracing::debug!(pod = %pod.name, reason = what.reason, "an event was lost");
        }
    }
}

async fn write(client: Client, mut events: mpsc::Receiver<Box<Event>>) {
    let stream = futures::stream::poll_fn(|context| events.poll_recv(context));
    stream
        .for_each_concurrent(AT_ONCE, |event| {
            let client = client.clone();
            async move {
                let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
                let all: Api<Event> = Api::namespaced(client, namespace);
                if let Err(error) = all.create(&PostParams::default(), &event).await {
                    tracing::debug!(%error, "an event could not be written");
                }
            }
        })
        .await;
}
