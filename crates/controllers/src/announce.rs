//! Tells people what a controller did, in events about the objects concerned.
//!
//! An event that cannot be written is not worth failing for: the log has it.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use crate::fault::ask;

/// Events of one controller.
pub(crate) struct Announcer(Recorder);

impl Announcer {
    pub(crate) fn new(client: Client, controller: &str) -> Self {
        let reporter = Reporter {
            controller: controller.to_owned(),
            instance: None,
        };
        Self(Recorder::new(client, reporter))
    }

    /// Something happened as it should.
    pub(crate) async fn note(&self, about: &ObjectReference, reason: &str, text: String) {
        self.publish(EventType::Normal, about, reason, text).await;
    }

    /// Something that somebody should look at.
    pub(crate) async fn warn(&self, about: &ObjectReference, reason: &str, text: String) {
        self.publish(EventType::Warning, about, reason, text).await;
    }

    async fn publish(&self, type_: EventType, about: &ObjectReference, reason: &str, text: String) {
        let event = Event {
            type_,
            reason: reason.to_owned(),
            action: reason.to_owned(),
            note: Some(text),
            secondary: None,
        };
        if let Err(fault) = ask(self.0.publish(&event, about)).await {
            let (kind, name) = (&about.kind, &about.name);
            tracing::info!(reason, ?kind, ?name, %fault, "an event could not be published");
        }
    }
}

/// An object of the core group, as events name it.
pub(crate) fn core(kind: &str, namespace: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some(kind.to_owned()),
        namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}
