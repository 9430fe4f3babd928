//! One object in a cache, and one change of one.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use crate::{
    object,
    registry::Kind,
    selector::{FieldName, FieldSelector, LabelSelector},
};

/// An object as it was at one revision.
#[derive(Debug)]
pub struct Cached {
    /// `namespace/name`, or the name alone.
    pub key: Arc<str>,
    pub revision: u64,
    /// The object as an item of a list: JSON without `kind` and `apiVersion`.
    pub json: Bytes,
    labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the kind's selectable fields, in its order.
    fields: Box<[Box<str>]>,
}

/// Why stored bytes are no object.
#[derive(Debug, thiserror::Error)]
#[error("`{key}` does not hold an object")]
pub struct NotAnObject {
    pub key: String,
    pub source: Option<serde_json::Error>,
}

impl Cached {
    /// Reads what the store has.
    pub fn read(kind: &Kind, key: &str, stored: &[u8], revision: u64) -> Result<Self, NotAnObject> {
        let fault = |source| NotAnObject {
            key: key.to_owned(),
            source,
        };
        let json = object::with_revision(stored, revision).ok_or_else(|| fault(None))?;
        let value: Value = serde_json::from_slice(&json).map_err(|error| fault(Some(error)))?;
        Ok(Self::of(kind, key, &value, json.into(), revision))
    }

    /// The same object with the selectable fields of another form of its kind.
    #[must_use]
    pub(super) fn seen_as(&self, kind: &Kind) -> Self {
        Self::of(
            kind,
            &self.key,
            &self.value(),
            self.json.clone(),
            self.revision,
        )
    }

    fn of(kind: &Kind, key: &str, value: &Value, json: Bytes, revision: u64) -> Self {
        let labels = value["metadata"]["labels"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| {
                (
                    name.as_str().into(),
                    value.as_str().unwrap_or_default().into(),
                )
            })
            .collect();
        let fields = kind
            .fields
            .iter()
            .map(|field| field_text(value, &field.path, &field.default))
            .collect();
        Self {
            key: key.into(),
            revision,
            json,
            labels,
            fields,
        }
    }

    /// The same object at a later revision, for those who see it disappear.
    #[must_use]
    pub fn moved_to(&self, revision: u64) -> Self {
        let json = object::at_revision(&self.json, revision)
            .map_or_else(|| self.json.clone(), Bytes::from);
        Self {
            key: Arc::clone(&self.key),
            revision,
            json,
            labels: self.labels.clone(),
            fields: self.fields.clone(),
        }
    }

    /// The object to work with. Parsing cannot fail: what is here was parsed before.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    pub fn namespace(&self) -> &str {
        self.key
            .split_once('/')
            .map_or("", |(namespace, _)| namespace)
    }

    pub fn name(&self) -> &str {
        self.key
            .split_once('/')
            .map_or(&*self.key, |(_, name)| name)
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|(label, _)| &**label == name)
            .map(|(_, value)| &**value)
    }

    pub fn field(&self, field: FieldName) -> &str {
        match field {
            FieldName::Name => self.name(),
            FieldName::Namespace => self.namespace(),
            FieldName::Selectable(index) => self.fields.get(index).map_or("", |value| value),
        }
    }

    pub fn is_selected(&self, labels: &LabelSelector, fields: &FieldSelector) -> bool {
        labels.matches(|name| self.label(name)) && fields.matches(|field| self.field(field))
    }
}

/// A field's value as the text that selectors compare.
fn field_text(value: &Value, path: &[String], default: &str) -> Box<str> {
    let found = path.iter().try_fold(value, |value, name| value.get(name));
    match found {
        Some(Value::String(text)) => text.as_str().into(),
        Some(Value::Bool(flag)) => flag.to_string().into(),
        Some(Value::Number(number)) => number.to_string().into(),
        _ => default.into(),
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl ChangeKind {
    /// The `type` of a watch event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    /// How a watch event begins, up to its object.
    fn opening(self) -> &'static str {
        match self {
            Self::Added => r#"{"type":"ADDED","object":"#,
            Self::Modified => r#"{"type":"MODIFIED","object":"#,
            Self::Deleted => r#"{"type":"DELETED","object":"#,
        }
    }
}

/// One object's change, shared by all who see it.
#[derive(Debug)]
pub struct Change {
    /// Counts the changes of one cache: unlike revisions, no two are equal.
    pub sequence: u64,
    pub revision: u64,
    pub kind: ChangeKind,
    /// What the object is now; for a deletion, what it was, at the deletion's revision.
    pub object: Arc<Cached>,
    pub previous: Option<Arc<Cached>>,
    encoded: [OnceLock<Bytes>; 3],
}

impl Change {
    pub fn new(
        sequence: u64,
        kind: ChangeKind,
        object: Arc<Cached>,
        previous: Option<Arc<Cached>>,
    ) -> Self {
        let revision = object.revision;
        Self {
            sequence,
            revision,
            kind,
            object,
            previous,
            encoded: Default::default(),
        }
    }

    /// The event in JSON as `kind`, encoded by whoever needs it first, for all who want the same `head`. The
    /// versions of a custom resource share a cache, but each has a head of its own.
    pub fn encoded(&self, kind: ChangeKind, head: &str) -> Bytes {
        let encode = || encode_event(kind, head, &self.object.json);
        let shared = self.encoded[kind as usize].get_or_init(encode);
        let is_same = shared
            .get(kind.opening().len()..)
            .is_some_and(|object| object.starts_with(head.as_bytes()));
        if is_same { shared.clone() } else { encode() }
    }
}

/// A watch event around an item; `head` names its type.
pub fn encode_event(kind: ChangeKind, head: &str, item: &[u8]) -> Bytes {
    let opening = kind.opening();
    let mut bytes = Vec::with_capacity(opening.len() + head.len() + item.len() + 2);
    bytes.extend_from_slice(opening.as_bytes());
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(item.get(1..).unwrap_or_default());
    bytes.extend_from_slice(b"}\n");
    bytes.into()
}
