//! Decides what becomes of a volume: whose it is, and what happens when its claim is gone.

use k8s_openapi::{
    api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};

use super::claims::{BOUND_BY_CONTROLLER, has_annotation, is_kept_for};

const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It has this phase, and nothing is to be done.
    Phase(&'static str),
    /// We gave it to a claim that took another.
    TakeBack,
    /// Nobody can delete it, though its policy says so; the text tells why.
    Fail(String),
}

/// What to do with a volume. `claim` is the one that it names, as far as it has the same uid.
pub(super) fn plan_volume(
    volume: &PersistentVolume,
    claim: Option<&PersistentVolumeClaim>,
) -> Step {
    let spec = volume.spec.clone().unwrap_or_default();
    let Some(reference) = spec.claim_ref else {
        return Step::Phase("Available");
    };
    if reference.uid.unwrap_or_default().is_empty() {
        // Somebody keeps it for a claim that is not there yet, or not bound.
        return Step::Phase("Available");
    }
    let Some(claim) = claim else {
        return released(volume, spec.persistent_volume_reclaim_policy.as_deref());
    };
    let named = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_name.clone());
    let named = named.unwrap_or_default();
    if named.is_empty() || Some(&named) == volume.metadata.name.as_ref() {
        return Step::Phase("Bound");
    }
    if has_annotation(&volume.metadata, BOUND_BY_CONTROLLER) {
        Step::TakeBack
    } else {
        // Who keeps it for this claim must see that it took another.
        Step::Phase("Available")
    }
}

fn released(volume: &PersistentVolume, policy: Option<&str>) -> Step {
    let phase = volume
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    // Who made it deletes it.
    let is_external = has_annotation(&volume.metadata, PROVISIONED_BY);
    match policy {
        _ if phase == Some("Failed") => Step::Phase("Failed"),
        Some("Delete") if !is_external => Step::Fail(format!(
            "error getting deleter volume plugin for volume {:?}: no volume plugin matched",
            volume.metadata.name.as_deref().unwrap_or_default()
        )),
        Some("Recycle") => Step::Fail("No recycler plugin found for the volume!".to_owned()),
        _ => Step::Phase("Released"),
    }
}

/// A volume in a phase; `None` if it is in it already.
pub(super) fn in_phase(
    volume: &PersistentVolume,
    phase: &str,
    message: Option<&str>,
    now: Timestamp,
) -> Option<PersistentVolume> {
    let mut wanted = volume.clone();
    let status = wanted.status.get_or_insert_default();
    if status.phase.as_deref() != Some(phase) {
        status.phase = Some(phase.to_owned());
        status.last_phase_transition_time = Some(Time(now));
    }
    status.message = message.map(str::to_owned);
    (wanted != *volume).then_some(wanted)
}

/// A volume that belongs to a claim; `None` if it does already.
pub(super) fn given(
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
) -> Option<PersistentVolume> {
    let mut wanted = volume.clone();
    let spec = wanted.spec.get_or_insert_default();
    let has_uid = spec
        .claim_ref
        .as_ref()
        .is_some_and(|reference| reference.uid.is_some());
    if has_uid && is_kept_for(volume, claim) {
        return None;
    }
    if spec.claim_ref.is_none() {
        let annotations = wanted.metadata.annotations.get_or_insert_default();
        annotations.insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    spec.claim_ref = Some(ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        ..ObjectReference::default()
    });
    Some(wanted)
}

/// A volume that we gave away, taken back.
pub(super) fn taken_back(volume: &PersistentVolume) -> PersistentVolume {
    let mut wanted = volume.clone();
    if let Some(spec) = &mut wanted.spec {
        spec.claim_ref = None;
    }
    if let Some(annotations) = &mut wanted.metadata.annotations {
        annotations.remove(BOUND_BY_CONTROLLER);
    }
    wanted
}
