//! Decides what becomes of a claim: which volume it is bound to, or what it waits for.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim},
        storage::v1::StorageClass,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::core::{Selector, SelectorExt as _};

use crate::quantity::Amount;

pub(super) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
pub(super) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
const OLD_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Something to tell people, with the reason of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remark {
    pub(super) is_warning: bool,
    pub(super) reason: &'static str,
    pub(super) text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Both belong together: complete whatever is missing on either side.
    Bind(Arc<PersistentVolume>),
    /// It waits; provisioners are told by annotations.
    Pend {
        provisioner: Option<String>,
        remark: Option<Remark>,
    },
    Lose(Remark),
}

fn note(reason: &'static str, text: impl Into<String>) -> Remark {
    Remark {
        is_warning: false,
        reason,
        text: text.into(),
    }
}

fn warning(reason: &'static str, text: impl Into<String>) -> Remark {
    Remark {
        is_warning: true,
        ..note(reason, text)
    }
}

fn pend(remark: Option<Remark>) -> Step {
    Step::Pend {
        provisioner: None,
        remark,
    }
}

pub(super) fn has_annotation(metadata: &ObjectMeta, name: &str) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(name))
}

/// The class of a claim or volume, by its field or the annotation of old.
pub(super) fn class_name(metadata: &ObjectMeta, field: Option<&String>) -> String {
    let annotations = metadata.annotations.as_ref();
    let old = annotations.and_then(|annotations| annotations.get(OLD_CLASS));
    old.or(field).cloned().unwrap_or_default()
}

pub(super) fn class_of(claim: &PersistentVolumeClaim) -> String {
    let spec = claim.spec.as_ref();
    class_name(
        &claim.metadata,
        spec.and_then(|spec| spec.storage_class_name.as_ref()),
    )
}

pub(super) fn class_of_volume(volume: &PersistentVolume) -> String {
    let spec = volume.spec.as_ref();
    class_name(
        &volume.metadata,
        spec.and_then(|spec| spec.storage_class_name.as_ref()),
    )
}

fn reference(volume: &PersistentVolume) -> Option<&ObjectReference> {
    volume.spec.as_ref()?.claim_ref.as_ref()
}

/// Whether a volume is kept for a claim, by its name and, if it was bound before, its uid.
pub(super) fn is_kept_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    reference(volume).is_some_and(|reference| {
        let uid = reference.uid.as_deref().unwrap_or_default();
        reference.name == claim.metadata.name
            && reference.namespace == claim.metadata.namespace
            && (uid.is_empty() || claim.metadata.uid.as_deref() == Some(uid))
    })
}

/// What to do with a claim. `named` is the volume that it names; `candidates` are those of its class.
pub(super) fn plan_claim(
    claim: &PersistentVolumeClaim,
    named: Option<Arc<PersistentVolume>>,
    candidates: &[Arc<PersistentVolume>],
    class: Option<&StorageClass>,
) -> Step {
    let spec = claim.spec.clone().unwrap_or_default();
    let name = spec.volume_name.clone().unwrap_or_default();
    let was_bound = has_annotation(&claim.metadata, BIND_COMPLETED);
    match (was_bound, name.is_empty(), named) {
        (true, true, _) => Step::Lose(warning(
            "ClaimLost",
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
        )),
        (true, false, None) => Step::Lose(warning(
            "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
        )),
        (true, false, Some(volume)) => {
            if reference(&volume).is_none() || is_kept_for(&volume, claim) {
                Step::Bind(volume)
            } else {
                Step::Lose(warning(
                    "ClaimMisbound",
                    "Two claims are bound to the same volume, this one is bound incorrectly",
                ))
            }
        }
        (false, true, _) => find(claim, candidates, class),
        (false, false, None) => pend(None),
        (false, false, Some(volume)) => match reference(&volume) {
            Some(_) if is_kept_for(&volume, claim) => Step::Bind(volume),
            Some(_) => pend(Some(warning(
                "FailedBinding",
                format!("volume {name:?} already bound to a different claim."),
            ))),
            None => match misfit(claim, &volume) {
                None => Step::Bind(volume),
                Some(why) => pend(Some(warning(
                    "VolumeMismatch",
                    format!("Cannot bind to requested volume {name:?}: {why}"),
                ))),
            },
        },
    }
}

/// Why a claim cannot have the volume that it names.
fn misfit(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<&'static str> {
    if capacity(volume) < request(claim) {
        return Some("requested PV is too small");
    }
    if class_of_volume(volume) != class_of(claim) {
        return Some("storageClassName does not match");
    }
    if mode_of_volume(volume) != mode_of(claim) {
        return Some("incompatible volumeMode");
    }
    (!has_modes(claim, volume)).then_some("incompatible accessMode")
}

fn find(
    claim: &PersistentVolumeClaim,
    candidates: &[Arc<PersistentVolume>],
    class: Option<&StorageClass>,
) -> Step {
    let waits = class
        .is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"))
        && !has_annotation(&claim.metadata, SELECTED_NODE);
    // One that somebody keeps for this claim comes before all others.
    let kept = candidates.iter().find(|volume| is_kept_for(volume, claim));
    if let Some(volume) = kept.filter(|volume| misfit(claim, volume).is_none()) {
        return Step::Bind(Arc::clone(volume));
    }
    if waits {
        return pend(Some(note(
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding",
        )));
    }
    let fits = |volume: &&Arc<PersistentVolume>| fits(claim, volume);
    let smallest = candidates
        .iter()
        .filter(fits)
        .min_by_key(|volume| (capacity(volume), volume.metadata.name.clone()));
    if let Some(volume) = smallest {
        return Step::Bind(Arc::clone(volume));
    }
    let provisioner = class.map(|class| class.provisioner.clone());
    match provisioner.filter(|name| name != "kubernetes.io/no-provisioner") {
        Some(name) => {
            let text = format!(
                "Waiting for a volume to be created either by the external provisioner '{name}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
            );
            Step::Pend {
                provisioner: Some(name),
                remark: Some(note("ExternalProvisioning", text)),
            }
        }
        None => pend(Some(note("FailedBinding", unavailable(claim, class)))),
    }
}

fn unavailable(claim: &PersistentVolumeClaim, class: Option<&StorageClass>) -> String {
    let name = class_of(claim);
    if name.is_empty() || class.is_some() {
        "no persistent volumes available for this claim and no storage class is set".to_owned()
    } else {
        format!("storageclass.storage.k8s.io {name:?} not found")
    }
}

/// Whether a volume that nobody has can be given to a claim that does not name it.
fn fits(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let phase = volume
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let is_free = reference(volume).is_none() && volume.metadata.deletion_timestamp.is_none();
    let selector = claim.spec.as_ref().and_then(|spec| spec.selector.clone());
    let labels: BTreeMap<String, String> = volume.metadata.labels.clone().unwrap_or_default();
    let is_selected = selector.is_none_or(|selector| {
        Selector::try_from(selector).is_ok_and(|selector| selector.matches(&labels))
    });
    // A volume whose phase was not told yet may be one that failed.
    is_free && phase == Some("Available") && is_selected && misfit(claim, volume).is_none()
}

fn capacity(volume: &PersistentVolume) -> Amount {
    let spec = volume.spec.as_ref();
    let capacity = spec.and_then(|spec| spec.capacity.as_ref()?.get("storage"));
    capacity.and_then(Amount::of).unwrap_or_default()
}

fn request(claim: &PersistentVolumeClaim) -> Amount {
    let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    let storage = resources.and_then(|resources| resources.requests.as_ref()?.get("storage"));
    storage.and_then(Amount::of).unwrap_or_default()
}

fn mode_of(claim: &PersistentVolumeClaim) -> &str {
    let spec = claim.spec.as_ref();
    spec.and_then(|spec| spec.volume_mode.as_deref())
        .unwrap_or("Filesystem")
}

fn mode_of_volume(volume: &PersistentVolume) -> &str {
    let spec = volume.spec.as_ref();
    spec.and_then(|spec| spec.volume_mode.as_deref())
        .unwrap_or("Filesystem")
}

/// Whether a volume can be used in all ways that a claim wants.
fn has_modes(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let offered = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.access_modes.as_ref());
    let offers = |mode: &String| offered.is_some_and(|offered| offered.contains(mode));
    let wanted = claim
        .spec
        .iter()
        .flat_map(|spec| spec.access_modes.iter().flatten());
    wanted.clone().all(offers)
}

/// A claim that belongs to a volume, as its spec and annotations should be; `None` if they are so already.
pub(super) fn bound_claim(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
) -> Option<PersistentVolumeClaim> {
    let mut wanted = claim.clone();
    let spec = wanted.spec.get_or_insert_default();
    let annotations = wanted.metadata.annotations.get_or_insert_default();
    if spec.volume_name != volume.metadata.name {
        spec.volume_name.clone_from(&volume.metadata.name);
        annotations.insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    annotations
        .entry(BIND_COMPLETED.to_owned())
        .or_insert_with(|| "yes".to_owned());
    (wanted != *claim).then_some(wanted)
}

/// A claim that belongs to a volume, as its status should be; `None` if it is so already.
pub(super) fn bound_status(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
) -> Option<PersistentVolumeClaim> {
    let mut wanted = claim.clone();
    let spec = volume.spec.clone().unwrap_or_default();
    let status = wanted.status.get_or_insert_default();
    if status.phase.as_deref() != Some("Bound") {
        status.phase = Some("Bound".to_owned());
        status.capacity.clone_from(&spec.capacity);
    }
    // Growing is told by who grows it.
    status.capacity = status.capacity.take().or(spec.capacity);
    status.access_modes = spec.access_modes;
    (wanted != *claim).then_some(wanted)
}

/// A claim that is not bound, in a phase; `None` if it is so already.
pub(super) fn unbound_status(
    claim: &PersistentVolumeClaim,
    phase: &str,
) -> Option<PersistentVolumeClaim> {
    let mut wanted = claim.clone();
    let status = wanted.status.get_or_insert_default();
    status.phase = Some(phase.to_owned());
    status.access_modes = None;
    status.capacity = None;
    (wanted != *claim).then_some(wanted)
}

/// A claim that says who should make its volume; `None` if it does so already.
pub(super) fn told_claim(
    claim: &PersistentVolumeClaim,
    provisioner: &str,
) -> Option<PersistentVolumeClaim> {
    let mut wanted = claim.clone();
    let annotations = wanted.metadata.annotations.get_or_insert_default();
    for name in [PROVISIONER, OLD_PROVISIONER] {
        annotations.insert(name.to_owned(), provisioner.to_owned());
    }
    (wanted != *claim).then_some(wanted)
}
