//! The volumes that pods of a set claim, and how long they outlive them.

use k8s_openapi::{
    api::{
        apps::v1::{StatefulSet, StatefulSetSpec},
        core::v1::{PersistentVolumeClaim, Pod},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::ResourceExt as _;

use super::identity::{claim_name, is_wanted};
use crate::workloads::owners::reference_to;

/// Whether claims go with their set, and whether they go with a pod that is not wanted any more.
fn policy(spec: &StatefulSetSpec) -> (bool, bool) {
    let policy = spec.persistent_volume_claim_retention_policy.as_ref();
    let deletes = |value: Option<&String>| value.is_some_and(|value| value == "Delete");
    (
        deletes(policy.and_then(|policy| policy.when_deleted.as_ref())),
        deletes(policy.and_then(|policy| policy.when_scaled.as_ref())),
    )
}

/// The claims of the pod with a number.
pub(super) fn claims_of(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    number: i32,
) -> Vec<PersistentVolumeClaim> {
    let templates = spec.volume_claim_templates.iter().flatten();
    templates
        .map(|template| {
            let mut claim = template.clone();
            claim.metadata.name = Some(claim_name(template, &set.name_any(), number));
            claim.metadata.namespace = set.namespace();
            claim.status = None;
            let labels = claim.metadata.labels.get_or_insert_default();
            labels.extend(spec.selector.match_labels.clone().unwrap_or_default());
            let (with_set, _) = policy(spec);
            if with_set && is_wanted(spec, number) {
                claim.metadata.owner_references = Some(vec![reference_to(set)]);
            }
            claim
        })
        .collect()
}

/// The owners that a claim should have, if it has others.
pub(super) fn plan_owners(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    pod: &Pod,
    number: i32,
    claim: &PersistentVolumeClaim,
) -> Option<Vec<OwnerReference>> {
    let (when_deleted, when_scaled) = policy(spec);
    let is_condemned = !is_wanted(spec, number);
    let with_pod = when_scaled && is_condemned;
    let with_set = when_deleted && !with_pod;
    let has = claim.owner_references();
    let is_ours = |owner: &OwnerReference, uid: Option<&String>| Some(&owner.uid) == uid;
    let (set_uid, pod_uid) = (set.metadata.uid.as_ref(), pod.metadata.uid.as_ref());
    let mut wanted: Vec<OwnerReference> = has
        .iter()
        .filter(|owner| {
            (!is_ours(owner, set_uid) || with_set) && (!is_ours(owner, pod_uid) || with_pod)
        })
        .cloned()
        .collect();
    if with_set && !wanted.iter().any(|owner| is_ours(owner, set_uid)) {
        wanted.push(reference_to(set));
    }
    if with_pod && !wanted.iter().any(|owner| is_ours(owner, pod_uid)) {
        wanted.push(reference_to(pod));
    }
    (wanted != has).then_some(wanted)
}

/// Whether a claim is about to go with a former pod of the name that is made now.
pub(super) fn is_stale(spec: &StatefulSetSpec, claim: &PersistentVolumeClaim, pod: &str) -> bool {
    let (_, when_scaled) = policy(spec);
    let mut owners = claim.owner_references().iter();
    when_scaled && owners.any(|owner| owner.kind == "Pod" && owner.name == pod)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(when_deleted: &str, when_scaled: &str) -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "n", "uid": "s"},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": when_deleted, "whenScaled": when_scaled},
                "volumeClaimTemplates": [{"metadata": {"name": "data", "labels": {"l": "1"}}}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn claims_are_owned_as_the_policy_says() {
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {"name": "web-0", "uid": "p"}})).unwrap();
        for (when_deleted, when_scaled, wanted, condemned) in [
            ("Retain", "Retain", vec![], vec![]),
            ("Delete", "Retain", vec!["s"], vec!["s"]),
            ("Retain", "Delete", vec![], vec!["p"]),
            ("Delete", "Delete", vec!["s"], vec!["p"]),
        ] {
            let set = set(when_deleted, when_scaled);
            let spec = set.spec.as_ref().unwrap();
            for (number, wanted) in [(0, wanted), (1, condemned)] {
                // Whoever it had before, it ends with those that it should have.
                for before in [vec![], vec![reference_to(&set)], vec![reference_to(&pod)]] {
                    let mut claim = claims_of(&set, spec, number).remove(0);
                    claim.metadata.owner_references = Some(before.clone());
                    let owners = plan_owners(&set, spec, &pod, number, &claim).unwrap_or(before);
                    let uids: Vec<_> = owners.iter().map(|owner| owner.uid.as_str()).collect();
                    assert_eq!(uids, wanted, "{when_deleted} {when_scaled} {number}");
                }
            }
        }
    }

    #[test]
    fn a_claim_has_its_name_and_labels_and_goes_stale_with_its_pod() {
        let set = set("Retain", "Delete");
        let spec = set.spec.as_ref().unwrap();
        let mut claim = claims_of(&set, spec, 0).remove(0);
        assert_eq!(claim.name_any(), "data-web-0");
        assert_eq!(json!(claim.labels()), json!({"app": "web", "l": "1"}));
        assert!(!is_stale(spec, &claim, "web-0"));
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {"name": "web-0", "uid": "p"}})).unwrap();
        claim.metadata.owner_references = Some(vec![reference_to(&pod)]);
        assert!(is_stale(spec, &claim, "web-0"));
    }
}
