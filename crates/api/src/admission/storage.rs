//! Storage: the class of claims that name none, protection of what is in use, and growing.

use std::sync::Arc;

use serde_json::Value;

use super::{Attributes, Context, Outcome, Plugin, edit};
use crate::{
    status::ApiError,
    validation::{quantities, read::Read},
};

const GROUP: &str = "storage.k8s.io";
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const IS_DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

pub(super) struct DefaultStorageClass;

impl Plugin for DefaultStorageClass {
    fn name(&self) -> &'static str {
        "DefaultStorageClass"
    }

    fn mutate(&self, request: &mut Attributes, context: &Context<'_>) -> Result<(), ApiError> {
        let chosen = request.object["spec"].has("storageClassName")
            || request.object["metadata"]["annotations"].has(OLD_CLASS);
        if !request.creates("", "PersistentVolumeClaim") || chosen {
            return Ok(());
        }
        if let Some(class) =
            newest_default(context.objects.list(GROUP, "StorageClass", ""), &IS_DEFAULT)
            && let Some(spec) = request.object.get_mut("spec")
        {
            edit::put(spec, "storageClassName", class["metadata"].text("name"));
        }
        Ok(())
    }
}

/// Of several defaults the newest counts, and among equals the first by name.
pub(super) fn newest_default(classes: Vec<Arc<Value>>, annotations: &[&str]) -> Option<Arc<Value>> {
    let mut marked: Vec<Arc<Value>> = classes
        .into_iter()
        .filter(|class| {
            annotations
                .iter()
                .any(|key| class["metadata"]["annotations"].text(key) == "true")
        })
        .collect();
    marked.sort_by(|left, right| {
        let key = |class: &Value, field: &str| class["metadata"].text(field).to_owned();
        key(right, "creationTimestamp")
            .cmp(&key(left, "creationTimestamp"))
            .then(key(left, "name").cmp(&key(right, "name")))
    });
    marked.into_iter().next()
}

pub(super) struct StorageObjectInUseProtection;

impl Plugin for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn mutate(&self, request: &mut Attributes, _: &Context<'_>) -> Result<(), ApiError> {
        let finalizer = if request.creates("", "PersistentVolume") {
            "kubernetes.io/pv-protection"
        } else if request.creates("", "PersistentVolumeClaim") {
            "kubernetes.io/pvc-protection"
        } else {
            return Ok(());
        };
        if let Some(metadata) = request.object.get_mut("metadata")
            && let Some(list) = edit::list(metadata, "finalizers")
            && !list.iter().any(|each| each == finalizer)
        {
            list.push(finalizer.into());
        }
        Ok(())
    }
}

pub(super) struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
        _: &mut Outcome,
    ) -> Result<(), ApiError> {
        if !request.updates("", "PersistentVolumeClaim") {
            return Ok(());
        }
        let size =
            |claim: &Value| quantities::read(&claim["spec"]["resources"]["requests"]["storage"]);
        let (Some(after), Some(before)) = (size(&request.object), size(request.old())) else {
            return Ok(());
        };
        if after <= before {
            return Ok(());
        }
        if request.old()["status"].text("phase") != "Bound" {
            return Err(request.refuse("Only bound persistent volume claims can be expanded"));
        }
        let name = request.object["spec"].text("storageClassName");
        let can_grow = context
            .objects
            .get(GROUP, "StorageClass", "", name)
            .is_some_and(|class| class.flag("allowVolumeExpansion"));
        if can_grow {
            Ok(())
        } else {
            Err(request.refuse(
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
            ))
        }
    }
}
