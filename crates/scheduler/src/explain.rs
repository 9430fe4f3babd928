//! The decision for one pod in full, for people who ask why.

use k8s_openapi::api::core::v1::Pod;

use crate::{
    filter::Sight,
    profile::Profile,
    reason::Reason,
    score::{Score, scores},
    snapshot::Snapshot,
    text::Text,
};

/// What is decided about one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The pod can go there, and how good that would be.
    Possible(Score),
    Refused(Vec<Reason>),
    /// No node was even looked at.
    Nowhere(String),
}

/// The verdict about each node, the best first, those that cannot be by name.
///
/// All nodes are looked at, also where the scheduler itself would have found enough before. A pod that has a
/// node already is judged as if it had none.
pub fn explain(snapshot: &mut Snapshot, pod: &Pod) -> Vec<(Text, Verdict)> {
    if let Some(uid) = pod.metadata.uid.as_deref() {
        snapshot.remove_pod(uid);
    }
    let pod = snapshot.prepare(pod);
    let name = |index: usize| {
        snapshot
            .slot(index)
            .map_or_else(|| Text::from(""), |slot| slot.name.clone())
    };
    let order = snapshot.order();
    let sight = match Sight::new(snapshot, &pod) {
        Ok(sight) => sight,
        Err(whole) => {
            return order
                .iter()
                .map(|index| (name(*index), Verdict::Nowhere(whole.clone())))
                .collect();
        }
    };
    let mut possible = Vec::new();
    let mut refused = Vec::new();
    for index in order {
        match sight.check(*index) {
            Ok(()) => possible.push(*index),
            Err(refusal) => refused.push((name(*index), Verdict::Refused(refusal.reasons))),
        }
    }
    let scores = scores(snapshot, &Profile::default(), &pod, &possible);
    let mut verdicts: Vec<_> = possible
        .iter()
        .map(|index| name(*index))
        .zip(scores)
        .collect();
    verdicts.sort_by(|(name, score), (other, than)| {
        than.total().cmp(&score.total()).then(name.cmp(other))
    });
    refused.sort_by(|(name, _), (other, _)| name.cmp(other));
    let possible = verdicts
        .into_iter()
        .map(|(name, score)| (name, Verdict::Possible(score)));
    possible.chain(refused).collect()
}
