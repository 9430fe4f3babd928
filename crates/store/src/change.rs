//! What is stored, and what happened to it.

use std::sync::Arc;

use bytes::Bytes;

use crate::{LeaseId, Revision};

/// One key as it was after some revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Arc<str>,
    pub value: Bytes,
    /// The revision that made the key, after its last deletion.
    pub created: Revision,
    /// The revision that wrote this value.
    pub modified: Revision,
    pub lease: Option<LeaseId>,
}

/// One key's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub key: Arc<str>,
    pub revision: Revision,
    /// What the key is now; `None` if it was deleted.
    pub current: Option<Entry>,
    /// What it was before; `None` if it was absent.
    ///
    /// A backend that cannot tell any more leaves it out of a change too; it is always there for a
    /// deletion that a watch sees live.
    pub previous: Option<Entry>,
}

/// Changes of one or more whole revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// In the order of their revisions; empty when only progress is told.
    pub events: Vec<Event>,
    /// Everything up to and including this revision has been seen.
    pub revision: Revision,
}
