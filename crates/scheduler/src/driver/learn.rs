//! Takes news into the snapshot and the queue.

use std::time::Instant;

use k8s_openapi::api::core::v1::{Node, Pod};

use super::{
    Driver,
    news::{News, Step, key_of},
};
use crate::{
    changes::Changes,
    filter::could_host,
    pod::{PodToPlace, is_gated, is_over, node_of, scheduler_of},
    text::Text,
};

impl Driver {
    pub(super) fn learn(&mut self, news: News, now: Instant) {
        match news {
            News::Node(event) => {
                for step in self.listings[0].take(event, key_of) {
                    match step {
                        Step::Put(node) => self.learn_node(&node, now),
                        Step::Remove(name) => self.snapshot.remove_node(&name),
                    }
                }
            }
            News::Pod(event) => {
                let uid = |pod: &Pod| pod.metadata.uid.clone().unwrap_or_default();
                for step in self.listings[1].take(event, uid) {
                    match step {
                        Step::Put(pod) => self.learn_pod(&pod, now),
                        Step::Remove(uid) => self.forget_pod(&uid, now),
                    }
                }
            }
            News::Claim(event) => {
                for step in self.listings[2].take(event, key_of) {
                    match step {
                        Step::Put(claim) => self.snapshot.put_claim(&claim),
                        Step::Remove(key) => {
                            let (namespace, name) = key.split_once('/').unwrap_or(("", &key));
                            self.snapshot.remove_claim(namespace, name);
                        }
                    }
                }
                self.bind_delayed(now);
                self.wake(Changes::STORAGE, None, now);
            }
            News::Volume(event) => {
                for step in self.listings[3].take(event, key_of) {
                    match step {
                        Step::Put(volume) => self.snapshot.put_volume(&volume),
                        Step::Remove(name) => self.snapshot.remove_volume(&name),
                    }
                }
                self.wake(Changes::STORAGE, None, now);
            }
            News::Class(event) => {
                for step in self.listings[4].take(event, key_of) {
                    match step {
                        Step::Put(class) => self.snapshot.put_class(&class),
                        Step::Remove(name) => self.snapshot.remove_class(&name),
                    }
                }
                self.wake(Changes::STORAGE, None, now);
            }
            News::Budget(event) => {
                for step in self.listings[5].take(event, key_of) {
                    match step {
                        Step::Put(budget) => self.snapshot.put_budget(&budget),
                        Step::Remove(key) => {
                            let (namespace, name) = key.split_once('/').unwrap_or(("", &key));
                            self.snapshot.remove_budget(namespace, name);
                        }
                    }
                }
            }
            News::Namespace(event) => {
                for step in self.listings[6].take(event, key_of) {
                    match step {
                        Step::Put(namespace) => self.snapshot.put_namespace(&namespace),
                        Step::Remove(name) => self.snapshot.remove_namespace(&name),
                    }
                }
                self.wake(Changes::NAMESPACES, None, now);
            }
            News::Image(event) => {
                for step in self.listings[7].take(event, key_of) {
                    match step {
                        Step::Put(image) => {
                            let name = image.metadata.name.as_deref().unwrap_or_default();
                            let status = image.status.as_ref();
                            self.snapshot.put_image(name, &image.spec, status);
                        }
                        Step::Remove(name) => self.snapshot.remove_image(&name),
                    }
                }
                self.queue.release_held();
                self.wake(Changes::IMAGES, None, now);
            }
        }
    }

    /// Tries those again whom a change may help. What happens on one node helps only whom that node could take.
    pub(super) fn wake(&mut self, changes: Changes, node: Option<&str>, now: Instant) {
        let index = node.and_then(|name| self.snapshot.index_of(name));
        let snapshot = &self.snapshot;
        self.queue.wake(changes, now, |pod, helps| {
            helps.meets(changes.without(Changes::LOCAL))
                || index.is_none_or(|index| could_host(snapshot, pod, index))
        });
    }

    fn learn_node(&mut self, node: &Node, now: Instant) {
        let changes = self.snapshot.put_node(node);
        if changes != Changes::NONE {
            // A node often comes without room or with a taint, so that those who wait were never refused by
            // it for what changes now: it is as good as new to them.
            let name = node.metadata.name.as_deref();
            self.wake(changes | Changes::NODE, name, now);
        }
    }

    fn learn_pod(&mut self, pod: &Pod, now: Instant) {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        if let Some(node) = node_of(pod).filter(|_| !is_over(pod)) {
            self.queue.remove(uid);
            self.delayed.remove(uid);
            if self.snapshot.put_pod(pod) {
                self.wake(Changes::NEIGHBOURS | Changes::ROOM, Some(node), now);
            }
            return;
        }
        let profile = self
            .placers
            .iter()
            .position(|placer| placer.profile.name == scheduler_of(pod));
        let is_ours = !is_over(pod) && !is_gated(pod) && pod.metadata.deletion_timestamp.is_none();
        match profile.filter(|_| is_ours) {
            Some(profile) => {
                let pod = PodToPlace::of(pod, self.snapshot.texts());
                if let Some(node) = pod.nominated.clone()
                    && !self.queue.is_away(uid)
                {
                    self.snapshot.nominate(&pod, &node);
                }
                self.queue.put(pod, profile);
            }
            // Also one that somebody took back while it was on its way to a node.
            None => self.forget_pod(uid, now),
        }
    }

    fn forget_pod(&mut self, uid: &str, now: Instant) {
        if let Some(waiting) = self.queue.remove(uid) {
            let facts = &waiting.pod.facts;
            for claim in &facts.claims {
                let key = (facts.namespace.clone(), claim.clone());
                self.snapshot.storage.forget_promise(&key);
            }
        }
        self.delayed.remove(uid);
        self.snapshot.forget_nomination(uid);
        if let Some(node) = self.snapshot.remove_pod(uid) {
            self.wake(Changes::DEPARTURE | Changes::ROOM, Some(&node), now);
        }
    }

    /// Binds pods whose volumes are all there now.
    pub(super) fn bind_delayed(&mut self, now: Instant) {
        let is_ready = |uid: &Text| {
            self.queue.get(uid).is_some_and(|waiting| {
                let facts = &waiting.pod.facts;
                facts.claims.iter().all(|claim| {
                    let key = (facts.namespace.clone(), claim.clone());
                    self.snapshot
                        .storage
                        .claims
                        .get(&key)
                        .is_some_and(|claim| claim.is_bound)
                })
            })
        };
        let ready: Vec<Text> = self
            .delayed
            .keys()
            .filter(|uid| is_ready(uid))
            .cloned()
            .collect();
        for uid in ready {
            if let Some(delayed) = self.delayed.remove(&uid) {
                self.bind(&uid, delayed.node, delayed.address);
            }
        }
        self.give_up_delayed(now);
    }

    /// Takes back pods that waited too long for their volumes.
    pub(super) fn give_up_delayed(&mut self, now: Instant) {
        let late = self
            .delayed
            .iter()
            .filter(|(_, delayed)| delayed.until <= now);
        let late: Vec<Text> = late.map(|(uid, _)| uid.clone()).collect();
        for uid in late {
            self.delayed.remove(&uid);
            self.take_back(&uid, now);
        }
    }
}
