//! When the oldest of the changes happened that a new state of a service's endpoints shows.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::{api::core::v1::Service, jiff::Timestamp};

use super::facts::PodFacts;
use crate::known::Key;

pub(super) const ANNOTATION: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The newest changes that were shown already, by service.
#[derive(Debug, Default)]
pub(super) struct Triggers(Mutex<HashMap<Key, Shown>>);

#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    pods: Option<Timestamp>,
    service: Option<Timestamp>,
}

impl Triggers {
    /// The oldest change that was not shown yet. From now on all of these are.
    pub(super) fn take(
        &self,
        key: &Key,
        service: &Service,
        pods: &[Arc<PodFacts>],
    ) -> Option<Timestamp> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = all.entry(key.clone()).or_default();
        let created = service.metadata.creation_timestamp.as_ref();
        let created = created.map(|time| time.0);
        let turns = pods.iter().filter_map(|pod| pod.turned);
        let newer = turns.clone().filter(|turn| Some(*turn) > shown.pods);
        let oldest = newer
            .chain(created.filter(|_| created > shown.service))
            .min();
        shown.pods = turns.max().max(shown.pods);
        shown.service = created;
        oldest
    }

    pub(super) fn forget(&self, key: &Key) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(second: i64) -> Arc<PodFacts> {
        Arc::new(PodFacts {
            turned: Timestamp::from_second(second).ok(),
            ..PodFacts::default()
        })
    }

    #[test]
    fn the_oldest_change_that_is_new_counts() {
        let triggers = Triggers::default();
        let key = Key::new("n", "s");
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "s", "creationTimestamp": "1970-01-01T00:00:10Z"},
        }))
        .unwrap();
        let take = |pods: &[Arc<PodFacts>]| {
            let time = triggers.take(&key, &service, pods);
            time.map(Timestamp::as_second)
        };
        assert_eq!(take(&[]), Some(10), "the service itself is new");
        assert_eq!(take(&[]), None);
        assert_eq!(take(&[pod(30), pod(20)]), Some(20));
        assert_eq!(take(&[pod(30), pod(20)]), None);
        assert_eq!(take(&[pod(40), pod(50), pod(30)]), Some(40));
        assert_eq!(take(&[]), None, "a pod that went away has no time");
    }
}
