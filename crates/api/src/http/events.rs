//! Watch events on the wire, in each form that a client may want.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    negotiate::{Encoding, Form, View},
    render, wire,
};
use crate::{
    cache::{Cached, ChangeKind, Sight, encode_event},
    pipeline,
    registry::Kind,
    state::Api,
    status::ApiError,
    verbs::Call,
};

/// Turns what a watcher sees into bytes.
pub(crate) struct Encoder {
    kind: Arc<Kind>,
    form: Form,
    head: Arc<str>,
    /// Columns of a table are told once.
    told_columns: bool,
    include: String,
    clock: crate::state::Clock,
}

impl Encoder {
    pub(crate) fn new(api: &Api, call: &Call) -> Self {
        Self {
            kind: Arc::clone(&call.kind),
            form: call.form,
            head: crate::verbs::watch::head(&call.kind),
            told_columns: false,
            include: call.options.include_object.clone(),
            clock: Arc::clone(&api.clock),
        }
    }

    /// Whether items go out as they are cached.
    fn is_plain(&self) -> bool {
        self.form == Form::JSON && self.kind.conversion.is_none()
    }

    pub(crate) fn event(&mut self, sight: &Sight) -> Bytes {
        match &sight.change {
            Some(change) if self.is_plain() => change.encoded(sight.kind, &self.head),
            _ => self.object(sight.kind, &sight.object),
        }
    }

    pub(crate) fn object(&mut self, event: ChangeKind, object: &Cached) -> Bytes {
        if self.is_plain() {
            return encode_event(event, &self.head, &object.json);
        }
        let mut value = object.value();
        pipeline::from_storage(&self.kind, &mut value);
        self.value(event.as_str(), value)
    }

    fn value(&mut self, event: &str, value: Value) -> Bytes {
        let value = match self.form.view {
            View::Object => value,
            View::Partial => render::partial(&value, self.form.beta),
            View::Table => {
                let table = render::table(
                    &self.kind,
                    std::slice::from_ref(&value),
                    &json!({"resourceVersion": value["metadata"]["resourceVersion"]}),
                    &self.include,
                    !self.told_columns,
                    (self.clock)(),
                    self.form.beta,
                );
                self.told_columns = true;
                table
            }
        };
        self.frame(event, &value)
    }

    fn frame(&self, event: &str, value: &Value) -> Bytes {
        match self.form.encoding {
            Encoding::Protobuf => match wire::event(event, value) {
                Ok(bytes) => bytes.into(),
                // The client is told, and lists again; an error that cannot be told either is in the log.
                Err(error) => {
                    tracing::error!(%error, kind = self.kind.kind, "an event could not be written");
                    let told = wire::event("ERROR", &error.to_status());
                    told.unwrap_or_default().into()
                }
            },
            Encoding::Json | Encoding::Yaml => {
                let mut bytes = serde_json::to_vec(&json!({"type": event, "object": value}))
                    .unwrap_or_default();
                bytes.push(b'\n');
                bytes.into()
            }
        }
    }

    pub(crate) fn bookmark(&mut self, revision: u64, ends_start: bool) -> Bytes {
        let mut metadata =
            json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if ends_start {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let value = json!({
            "kind": self.kind.kind,
            "apiVersion": self.kind.api_version(),
            "metadata": metadata,
        });
        match self.form.view {
            View::Table => self.value("BOOKMARK", value),
            View::Partial => self.value("BOOKMARK", value),
            View::Object => self.frame("BOOKMARK", &value),
        }
    }

    pub(crate) fn error(&self, error: &ApiError) -> Bytes {
        self.frame("ERROR", &error.to_status())
    }
}
