//! One pod's turn: a node, or room made on one, or the reasons why not.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::jiff::Timestamp;

use super::{
    Delayed, Done, Driver, Outcome,
    record::Happening,
    requests::{self, Fault, Verdict},
};
use crate::{
    changes::Changes,
    place::{Place, Placement, Unplaceable},
    pod::PodFacts,
    preempt::{Preemption, preempt},
    snapshot::ClaimPlan,
    telemetry::{self, Attempt},
    text::Text,
};

/// How long a pod waits for its volumes before another node is tried.
const VOLUMES: Duration = Duration::from_mins(10);

impl Driver {
    /// Tries a pod. A panic over it is a failure of this pod only.
    pub(super) fn attempt(&mut self, uid: &Text, now: Instant) {
        let attempt = AssertUnwindSafe(|| self.find_place(uid, now));
        if catch_unwind(attempt).is_err() {
            tracing::error!(%uid, "the search for a node panicked");
            telemetry::attempted(Attempt::Error);
            self.take_back(uid, now);
        }
    }

    fn find_place(&mut self, uid: &Text, now: Instant) {
        let Some(waiting) = self.queue.get(uid) else {
            return;
        };
        let held_until = waiting.held_until.unwrap_or(now + self.image_patience);
        if now < held_until && self.snapshot.awaits_images(&waiting.pod) {
            self.queue.hold(uid, held_until);
            return;
        }
        let Some(placer) = self.placers.get_mut(waiting.profile) else {
            return;
        };
        self.snapshot.refresh(&waiting.pod);
        let begun = Instant::now();
        let placement = placer.place(&self.snapshot, &waiting.pod);
        telemetry::searched(begun.elapsed());
        match placement {
            Placement::Node(place) => self.accept(uid, place, now),
            Placement::Unplaceable(why) => {
                telemetry::attempted(Attempt::Unschedulable);
                self.refuse(uid, &why, now);
            }
        }
    }

    fn accept(&mut self, uid: &Text, place: Place, now: Instant) {
        let Some(waiting) = self.queue.get(uid) else {
            return;
        };
        let namespace = waiting.pod.facts.namespace.clone();
        match &place.address {
            Some(address) => self.snapshot.assume(&waiting.pod.at(address), &place.node),
            None => self.snapshot.assume(&waiting.pod, &place.node),
        }
        self.wake(Changes::NEIGHBOURS, None, now);
        if place.claims.is_empty() {
            self.bind(uid, place.node, place.address);
            return;
        }
        for plan in &place.claims {
            if let ClaimPlan::Bind { claim, volume } = plan {
                let key = (namespace.clone(), Text::from(claim.as_str()));
                self.snapshot.storage.promise(volume, key);
            }
        }
        let until = now + VOLUMES;
        self.delayed.insert(
            uid.clone(),
            Delayed {
                node: place.node.clone(),
                address: place.address,
                until,
            },
        );
        let (client, uid) = (self.client.clone(), uid.clone());
        self.work.spawn(async move {
            let work = requests::prepare_claims(client, &namespace, &place.node, place.claims);
            let answer = requests::guarded(work).await;
            Done {
                uid,
                outcome: Outcome::Claims { answer },
            }
        });
    }

    pub(super) fn bind(&mut self, uid: &Text, node: Text, address: Option<Text>) {
        let Some(waiting) = self.queue.get(uid) else {
            return;
        };
        let (facts, profile) = (Arc::clone(&waiting.pod.facts), waiting.profile);
        let client = self.client.clone();
        self.work.spawn(async move {
            let work = requests::bind(client, &facts, &node, address.as_deref());
            let answer = requests::guarded(work).await;
            Done {
                uid: facts.uid.clone(),
                outcome: Outcome::Bound {
                    facts,
                    profile,
                    node,
                    answer,
                },
            }
        });
    }

    fn refuse(&mut self, uid: &Text, why: &Unplaceable, now: Instant) {
        let Some(waiting) = self.queue.get(uid) else {
            return;
        };
        let helps = Changes::that_help(why);
        let pod = waiting.pod.clone();
        let attempts = usize::try_from(waiting.attempts).unwrap_or_default();
        let scheduler = self.placers[waiting.profile].profile.name.clone();
        let mut message = why.message();
        let mut nominated = None;
        let mut victims = Vec::new();
        let mut outranked = Vec::new();
        if why.nodes > 0 {
            match preempt(&self.snapshot, &pod, why, attempts) {
                Ok(Preemption {
                    node,
                    victims: found,
                }) => {
                    self.snapshot.nominate(&pod, &node);
                    outranked = self.outrank(&pod.facts, &node, now);
                    victims = found;
                    nominated = Some(node);
                }
                Err(no) => {
                    message = format!("{message} {}", no.message);
                    if pod.nominated.is_some() && !no.waits {
                        self.snapshot.forget_nomination(uid);
                        nominated = Some(Text::from(""));
                    }
                }
            }
        }
        self.queue.park(uid, helps, now);
        let is_new = self.note(uid, &message, nominated.as_ref());
        if is_new {
            let failed = Happening {
                is_warning: true,
                reason: "FailedScheduling",
                action: "Scheduling",
                scheduler: &scheduler,
            };
            self.events += 1;
            self.recorder
                .record(&pod.facts, failed, message.clone(), self.events);
        }
        if !is_new && victims.is_empty() {
            return;
        }
        let verdict = Verdict {
            message,
            nominated: nominated.clone(),
            now: Timestamp::now().to_string(),
        };
        for victim in &victims {
            let preempted = Happening {
                is_warning: false,
                reason: "Preempted",
                action: "Preempting",
                scheduler: &scheduler,
            };
            let node = nominated.as_deref().unwrap_or_default();
            let text = format!("Preempted by pod {uid} on node {node}");
            self.events += 1;
            self.recorder.record(victim, preempted, text, self.events);
        }
        let client = self.client.clone();
        self.work.spawn(async move {
            let facts = &pod.facts;
            let answer = requests::guarded(async {
                requests::tell(client.clone(), facts, verdict.clone()).await?;
                for victim in &victims {
                    requests::evict(client.clone(), victim, &scheduler, &verdict.now).await?;
                }
                for other in &outranked {
                    requests::take_nomination_back(client.clone(), other).await?;
                }
                Ok(())
            })
            .await;
            Done {
                uid: facts.uid.clone(),
                outcome: Outcome::Told { answer },
            }
        });
    }

    /// Room that was kept for the less important on a node is another's now: they look for a node anew.
    fn outrank(&mut self, pod: &PodFacts, node: &str, now: Instant) -> Vec<Arc<PodFacts>> {
        let others = self.snapshot.nominated_below(node, pod.priority);
        for other in &others {
            self.snapshot.forget_nomination(&other.uid);
            if self.queue.is_away(&other.uid) {
                continue;
            }
            if let Some(waiting) = self.queue.get_mut(&other.uid) {
                waiting.pod.nominated = None;
            }
            self.queue.hurry(&other.uid, now);
        }
        others
    }

    /// Keeps in mind what was said of a pod. Tells whether it is something new.
    fn note(&mut self, uid: &Text, message: &str, nominated: Option<&Text>) -> bool {
        let Some(waiting) = self.queue.get_mut(uid) else {
            return false;
        };
        let mut is_new = waiting.message.as_deref() != Some(message);
        waiting.message = Some(message.to_owned());
        if let Some(node) = nominated {
            let node = Some(node).filter(|node| !node.is_empty());
            is_new |= waiting.pod.nominated.as_ref() != node;
            // The watch will tell the same, and that is no reason to try the pod again.
            waiting.pod.nominated = node.cloned();
        }
        is_new
    }

    pub(super) fn finish(&mut self, done: Result<Done, tokio::task::JoinError>, now: Instant) {
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                // What panics is caught where it happens, so nothing was lost but the time.
                tracing::error!(%error, "a request was given up");
                return;
            }
        };
        let uid = done.uid;
        match done.outcome {
            Outcome::Bound {
                facts,
                profile,
                node,
                answer: Ok(()),
            } => {
                telemetry::attempted(Attempt::Scheduled);
                self.announce(&facts, profile, &node);
            }
            Outcome::Bound {
                answer: Err(fault), ..
            }
            | Outcome::Claims { answer: Err(fault) } => {
                telemetry::attempted(Attempt::Error);
                self.delayed.remove(&uid);
                report(&uid, &fault);
                self.take_back(&uid, now);
            }
            Outcome::Claims { answer: Ok(()) } => self.bind_delayed(now),
            Outcome::Told { answer: Ok(()) } => {}
            Outcome::Told { answer: Err(fault) } => {
                report(&uid, &fault);
                if let Some(waiting) = self.queue.get_mut(&uid) {
                    waiting.message = None;
                    self.queue.rest(&uid, now);
                }
            }
        }
    }

    fn announce(&mut self, facts: &PodFacts, profile: usize, node: &Text) {
        let scheduled = Happening {
            is_warning: false,
            reason: "Scheduled",
            action: "Binding",
            scheduler: &self.placers[profile].profile.name,
        };
        let text = format!(
            "Successfully assigned {}/{} to {node}",
            facts.namespace, facts.name
        );
        self.events += 1;
        self.recorder.record(facts, scheduled, text, self.events);
    }

    /// A pod did not get the node that was found for it.
    pub(super) fn take_back(&mut self, uid: &Text, now: Instant) {
        if self.queue.get(uid).is_none() {
            // Its watch was faster: it is gone, or it has a node.
            return;
        }
        for claim in self
            .queue
            .get(uid)
            .map(|waiting| waiting.pod.facts.claims.clone())
            .iter()
            .flatten()
        {
            if let Some(waiting) = self.queue.get(uid) {
                let key = (waiting.pod.facts.namespace.clone(), claim.clone());
                self.snapshot.storage.forget_promise(&key);
            }
        }
        if let Some(node) = self.snapshot.remove_pod(uid) {
            self.wake(Changes::DEPARTURE | Changes::ROOM, Some(&node), now);
        }
        self.queue.rest(uid, now);
    }
}

fn report(uid: &Text, fault: &Fault) {
    let source = std::error::Error::source(fault).map(ToString::to_string);
    match fault {
        // Old news are part of the game.
        Fault::Answer {
            code: 404 | 409, ..
        } => tracing::debug!(%uid, %fault, "a pod is tried again"),
        _ => tracing::warn!(%uid, %fault, source, "a pod is tried again"),
    }
}
