//! The history of a template in controller revisions, each named by the hash of what it holds.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::{
    api::{apps::v1::ControllerRevision, core::v1::PodTemplateSpec},
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, runtime::RawExtension},
};
use kube::{
    Resource, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    World,
    names::hash_of,
    owners::{is_controlled_by, reference_to},
    requests::{create, delete, objects},
};
use crate::fault::{Fault, ask, fetch, found};

/// The label of pods that says which revision they are of.
pub(crate) const REVISION: &str = "controller-revision-hash";

/// What a revision holds: a patch that brings its template back, as `kubectl rollout undo` sends it.
pub(crate) fn data_of(template: &PodTemplateSpec) -> Value {
    let mut template = json!(template);
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

/// The template that a revision holds.
pub(crate) fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision
        .data
        .as_ref()?
        .0
        .get("spec")?
        .get("template")?
        .clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// What to do so that a template has a revision, which is the newest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Keep(Arc<ControllerRevision>),
    /// An older one becomes the newest again.
    Renumber(Arc<ControllerRevision>, i64),
    Create(i64),
}

pub(crate) fn plan_revision(data: &Value, revisions: &[Arc<ControllerRevision>]) -> Step {
    let is_equal = |revision: &&Arc<ControllerRevision>| {
        revision.data.as_ref().is_some_and(|has| has.0 == *data)
    };
    let newest = revisions
        .iter()
        .map(|revision| revision.revision)
        .max()
        .unwrap_or(0);
    let equal = revisions
        .iter()
        .filter(is_equal)
        .max_by_key(|revision| revision.revision);
    match equal {
        Some(equal) if equal.revision == newest => Step::Keep(Arc::clone(equal)),
        Some(equal) => Step::Renumber(Arc::clone(equal), newest + 1),
        None => Step::Create(newest + 1),
    }
}

/// The revisions that history has no room for: the oldest that nothing is of.
pub(crate) fn superfluous(
    revisions: &[Arc<ControllerRevision>],
    live: &BTreeSet<String>,
    limit: Option<i32>,
) -> Vec<Arc<ControllerRevision>> {
    let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or(usize::MAX);
    let mut old: Vec<_> = revisions
        .iter()
        .filter(|revision| !live.contains(&revision.name_any()))
        .cloned()
        .collect();
    old.sort_by_key(|revision| revision.revision);
    old.truncate(old.len().saturating_sub(limit));
    old
}

/// How a controller names its revisions.
pub(crate) struct Naming {
    /// The label that holds the hash.
    pub(crate) label: &'static str,
    pub(crate) collisions: Option<i32>,
}

/// A revision, or that its name is taken by another.
pub(crate) enum Outcome {
    Is(Arc<ControllerRevision>),
    Collides,
}

/// Does what was planned.
pub(crate) async fn ensure<O>(
    world: &World,
    owner: &O,
    template: &PodTemplateSpec,
    step: Step,
    naming: &Naming,
) -> Result<Outcome, Fault>
where
    O: Resource<DynamicType = ()>,
{
    let namespace = owner.namespace().unwrap_or_default();
    let api = objects::<ControllerRevision>(&world.client, &namespace);
    let number = match step {
        Step::Keep(revision) => return Ok(Outcome::Is(revision)),
        Step::Renumber(revision, number) => {
            let change = json!({
                "metadata": {"resourceVersion": revision.resource_version()}, "revision": number,
            });
            let (name, parameters) = (revision.name_any(), PatchParams::default());
            let answer = ask(api.patch(&name, &parameters, &Patch::Merge(change))).await?;
            return Ok(Outcome::Is(world.revisions.note(answer)));
        }
        Step::Create(number) => number,
    };
    let revision = new_revision(owner, template, number, naming);
    match create(&world.client, &world.revisions, &revision).await {
        Ok(made) => Ok(Outcome::Is(made)),
        Err(fault) if fault.is_conflict() => {
            let other = found(fetch(api.get(&revision.name_any())).await)?;
            let other = other.ok_or(Fault::Incomplete)?;
            let is_same = other.data == revision.data
                && is_controlled_by(&other.metadata, owner.uid().as_deref());
            Ok(if is_same {
                Outcome::Is(world.revisions.note(other))
            } else {
                Outcome::Collides
            })
        }
        Err(fault) => Err(fault),
    }
}

fn new_revision<O>(
    owner: &O,
    template: &PodTemplateSpec,
    number: i64,
    naming: &Naming,
) -> ControllerRevision
where
    O: Resource<DynamicType = ()>,
{
    let data = data_of(template);
    let hash = hash_of(&data, naming.collisions);
    let metadata = template.metadata.as_ref();
    let mut labels = metadata
        .and_then(|metadata| metadata.labels.clone())
        .unwrap_or_default();
    labels.insert(naming.label.to_owned(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", owner.name_any())),
            namespace: owner.namespace(),
            labels: Some(labels),
            annotations: owner.meta().annotations.clone(),
            owner_references: Some(vec![reference_to(owner)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision: number,
    }
}

/// Deletes revisions that nobody needs.
pub(crate) async fn forget(
    world: &World,
    revisions: &[Arc<ControllerRevision>],
) -> Result<(), Fault> {
    for revision in revisions {
        delete(
            world,
            &world.revisions,
            &**revision,
            DeleteParams::default(),
        )
        .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(name: &str, number: i64, data: &Value) -> Arc<ControllerRevision> {
        Arc::new(ControllerRevision {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(RawExtension(data.clone())),
            revision: number,
        })
    }

    #[test]
    fn a_template_keeps_comes_back_to_or_gets_its_revision() {
        let (a, b) = (json!({"a": 1}), json!({"b": 1}));
        let all = [revision("a", 1, &a), revision("b", 2, &b)];
        assert_eq!(plan_revision(&b, &all), Step::Keep(Arc::clone(&all[1])));
        assert_eq!(
            plan_revision(&a, &all),
            Step::Renumber(Arc::clone(&all[0]), 3)
        );
        assert_eq!(plan_revision(&json!({}), &all), Step::Create(3));
        assert_eq!(plan_revision(&a, &[]), Step::Create(1));
    }

    #[test]
    fn history_forgets_the_oldest_that_nothing_is_of() {
        let all = [3, 1, 2].map(|number| revision(&format!("r{number}"), number, &json!({})));
        let live = BTreeSet::from(["r1".to_owned()]);
        let names = |limit| -> Vec<String> {
            superfluous(&all, &live, Some(limit))
                .iter()
                .map(|one| one.name_any())
                .collect()
        };
        assert_eq!(names(0), ["r2", "r3"]);
        assert_eq!(names(1), ["r2"]);
        assert_eq!(names(-1), [""; 0]);
    }

    #[test]
    fn a_revision_gives_back_the_template_that_it_holds() {
        let template: PodTemplateSpec =
            serde_json::from_value(json!({"spec": {"containers": [{"name": "c"}]}})).unwrap();
        let held = revision("r", 1, &data_of(&template));
        assert_eq!(template_of(&held), Some(template));
        assert_eq!(template_of(&revision("r", 1, &json!(3))), None);
    }
}
