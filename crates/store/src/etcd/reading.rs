//! What the messages of a watch mean. Pure: a watch's connection may be lost, its reading goes on.
//!
//! A revision is handed over whole, and none twice.

use super::{
    client::unavailable,
    translate::{Place, revision},
    wire::{WatchCreateRequest, WatchEvent, WatchRequest, WatchRequestKind, WatchResponse},
};
use crate::{Batch, Event, Revision, StoreError};

/// How to learn that nothing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The server tells, truly.
    Asked,
    /// From changes to any key of ours.
    Changes,
}

pub(super) struct Reading {
    pub(super) place: Place,
    pub(super) prefix: String,
    pub(super) after: Revision,
    pub(super) progress: Progress,
    /// Parts of a message that etcd has split.
    parts: Vec<WatchEvent>,
}

impl Reading {
    pub(super) fn new(place: Place, prefix: &str, after: Revision, progress: Progress) -> Self {
        Self {
            place,
            prefix: prefix.to_owned(),
            after,
            progress,
            parts: Vec::new(),
        }
    }

    /// Asks for all that has not been read.
    pub(super) fn request(&mut self) -> WatchRequest {
        self.parts.clear();
        let (key, range_end) = match self.progress {
            Progress::Asked => self.place.range(&self.prefix),
            Progress::Changes => self.place.all(),
        };
        let create = WatchCreateRequest {
            key,
            range_end,
            start_revision: self.after.0.saturating_add(1).cast_signed(),
            prev_kv: true,
            fragment: true,
        };
        WatchRequest {
            kind: Some(WatchRequestKind::Create(create)),
        }
    }

    /// What is new after a message, if anything is.
    pub(super) fn take(&mut self, message: WatchResponse) -> Result<Option<Batch>, StoreError> {
        if message.compact_revision != 0 {
            return Err(StoreError::Compacted {
                requested: self.after,
                oldest: revision(message.compact_revision),
            });
        }
        if message.canceled {
            return Err(unavailable(message.cancel_reason));
        }
        if message.created {
            return Ok(None);
        }
        if message.events.is_empty() && !message.fragment && self.parts.is_empty() {
            let told = revision(message.header.unwrap_or_default().revision);
            // What a server says without being asked is no better than its answers.
            return Ok(match self.progress {
                Progress::Asked => self.reach(told, Vec::new()),
                Progress::Changes => None,
            });
        }
        self.parts.extend(message.events);
        if message.fragment {
            return Ok(None);
        }
        let mut reached = self.after;
        let mut events = Vec::with_capacity(self.parts.len());
        for event in self.parts.drain(..) {
            let event = self.place.event(event)?;
            reached = reached.max(event.revision);
            let is_mark = event.key.is_empty();
            if event.key.starts_with(&self.prefix) && !is_mark {
                events.push(event);
            }
        }
        Ok(self.reach(reached, events))
    }

    fn reach(&mut self, revision: Revision, events: Vec<Event>) -> Option<Batch> {
        if revision <= self.after {
            return None;
        }
        self.after = revision;
        Some(Batch { events, revision })
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Header, KeyValue};
    use super::*;

    fn reading(progress: Progress) -> Reading {
        Reading::new(Place::new("/s/"), "a", Revision(5), progress)
    }

    fn event(key: &str, revision: i64) -> WatchEvent {
        WatchEvent {
            kv: Some(KeyValue {
                key: key.to_owned().into(),
                create_revision: revision,
                mod_revision: revision,
                ..KeyValue::default()
            }),
            ..WatchEvent::default()
        }
    }

    fn message(revision: i64, events: Vec<WatchEvent>) -> WatchResponse {
        WatchResponse {
            header: Some(Header { revision }),
            events,
            ..WatchResponse::default()
        }
    }

    #[test]
    fn a_split_message_is_one_batch() {
        let mut reading = reading(Progress::Asked);
        let mut first = message(9, vec![event("/s/a", 7)]);
        first.fragment = true;
        assert_eq!(reading.take(first).unwrap(), None);
        let batch = reading.take(message(9, vec![event("/s/ab", 7)]));
        let batch = batch.unwrap().unwrap();
        assert_eq!((batch.events.len(), batch.revision), (2, Revision(7)));
    }

    #[test]
    fn a_connection_lost_within_a_message_loses_its_part() {
        let mut reading = reading(Progress::Asked);
        let mut first = message(9, vec![event("/s/a", 7)]);
        first.fragment = true;
        reading.take(first).unwrap();
        let Some(WatchRequestKind::Create(create)) = reading.request().kind else {
            panic!("a watch begins with its creation");
        };
        assert_eq!(create.start_revision, 6);
        let again = message(9, vec![event("/s/a", 7), event("/s/ab", 7)]);
        assert_eq!(reading.take(again).unwrap().unwrap().events.len(), 2);
    }

    #[test]
    fn progress_counts_only_where_servers_tell_the_truth() {
        let mut asked = reading(Progress::Asked);
        let batch = asked.take(message(8, Vec::new())).unwrap().unwrap();
        assert_eq!((batch.events.len(), batch.revision), (0, Revision(8)));
        assert_eq!(asked.take(message(8, Vec::new())).unwrap(), None);
        let mut created = message(9, Vec::new());
        created.created = true;
        assert_eq!(asked.take(created).unwrap(), None);
        let mut changes = reading(Progress::Changes);
        assert_eq!(changes.take(message(8, Vec::new())).unwrap(), None);
    }

    #[test]
    fn what_others_see_too_is_progress_and_no_event() {
        let mut reading = reading(Progress::Changes);
        let batch = reading.take(message(9, vec![event("/s/b", 8), event("/s/", 9)]));
        let batch = batch.unwrap().unwrap();
        assert_eq!((batch.events.len(), batch.revision), (0, Revision(9)));
    }

    #[test]
    fn a_watch_that_etcd_ends_says_why() {
        let mut forgotten = message(9, Vec::new());
        forgotten.canceled = true;
        forgotten.compact_revision = 7;
        let error = reading(Progress::Asked).take(forgotten).unwrap_err();
        let StoreError::Compacted { requested, oldest } = error else {
            panic!("{error:?}");
        };
        assert_eq!((requested, oldest), (Revision(5), Revision(7)));
        let mut refused = message(9, Vec::new());
        refused.canceled = true;
        let error = reading(Progress::Asked).take(refused).unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }));
    }
}
