//! Whether a node can reach the pod's data.

use super::Refusal;
use crate::{
    node::NodeFacts,
    pod::{PodFacts, PodToPlace},
    reason::Reason,
    snapshot::{Claim, ClaimKey, ClaimPlan, Snapshot},
};

/// The claims of a pod, as they concern its node.
#[derive(Clone)]
pub(super) struct VolumeSight<'a> {
    snapshot: &'a Snapshot,
    bound: Vec<&'a Claim>,
    unbound: Vec<(ClaimKey, &'a Claim)>,
    /// How many other pods use claims that only one may use.
    rivals: i64,
}

impl<'a> VolumeSight<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, pod: &'a PodToPlace) -> Result<Self, String> {
        let mut sight = Self {
            snapshot,
            bound: Vec::new(),
            unbound: Vec::new(),
            rivals: 0,
        };
        let mut has_immediate = false;
        for name in &pod.facts.claims {
            let key = (pod.facts.namespace.clone(), name.clone());
            let Some(claim) = snapshot.storage.claims.get(&key) else {
                return Err(format!("persistentvolumeclaim \"{name}\" not found"));
            };
            if claim.is_lost {
                let volume = claim.volume.as_deref().unwrap_or_default();
                return Err(format!(
                    "persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\""
                ));
            }
            if claim.is_leaving {
                return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
            }
            if claim.is_exclusive {
                let users = snapshot.claim_users(&key);
                sight.rivals += i64::try_from(users).unwrap_or(i64::MAX);
            }
            if claim.is_bound {
                sight.bound.push(claim);
            } else if snapshot.storage.waits_for_pod(claim) {
                sight.unbound.push((key, claim));
            } else {
                has_immediate = true;
            }
        }
        if has_immediate {
            return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
        }
        Ok(sight)
    }

    pub(super) fn check(&self, node: &NodeFacts) -> Result<(), Refusal> {
        if self.rivals > 0 {
            return Err(Reason::ClaimInUse.into());
        }
        for claim in &self.bound {
            let name = claim.volume.as_ref();
            let Some(volume) = name.and_then(|name| self.snapshot.storage.volumes.get(name)) else {
                return Err(Reason::VolumeMissing.into());
            };
            if !volume.can_be_on(node) {
                return Err(Reason::VolumeAffinity.into());
            }
            if !volume.is_in_zone_of(node) {
                return Err(Reason::VolumeZone.into());
            }
        }
        if self.plans(node).is_none() {
            return Err(Reason::NoVolume.into());
        }
        Ok(())
    }

    /// How all claims without a volume get one on a node, if they can.
    pub(super) fn plans(&self, node: &NodeFacts) -> Option<Vec<ClaimPlan>> {
        let mut plans = Vec::with_capacity(self.unbound.len());
        for (key, claim) in &self.unbound {
            plans.push(self.snapshot.storage.plan(key, claim, node, &plans)?);
        }
        Some(plans)
    }

    pub(super) fn shift(&mut self, pod: &PodToPlace, other: &PodFacts, by: i64) {
        if other.claims.is_empty() || pod.facts.namespace != other.namespace {
            return;
        }
        for name in other
            .claims
            .iter()
            .filter(|name| pod.facts.claims.contains(name))
        {
            let key = (other.namespace.clone(), name.clone());
            if self
                .snapshot
                .storage
                .claims
                .get(&key)
                .is_some_and(|claim| claim.is_exclusive)
            {
                self.rivals += by;
            }
        }
    }
}
