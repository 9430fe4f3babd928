//! Runtime classes: what running a pod costs beside its containers, and where it can run.

use std::sync::Arc;

use serde_json::Value;

use super::{Attributes, Context, Outcome, Plugin, edit};
use crate::{
    status::ApiError,
    validation::{fault::same, read::Read},
};

pub(super) struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn mutate(&self, request: &mut Attributes, context: &Context<'_>) -> Result<(), ApiError> {
        if !request.creates("", "Pod") {
            return Ok(());
        }
        let Some(class) = find(request, context)? else {
            return Ok(());
        };
        overhead(request, &class)?;
        scheduling(request, &class)
    }

    fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
        _: &mut Outcome,
    ) -> Result<(), ApiError> {
        if !request.creates("", "Pod") {
            return Ok(());
        }
        let class = find(request, context)?;
        let own = &request.object["spec"]["overhead"];
        let defined = class
            .as_ref()
            .map_or(&Value::Null, |class| &class["overhead"]["podFixed"]);
        if !own.is_null() && defined.is_null() {
            return Err(request.refuse(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            ));
        }
        if !same(own, defined) {
            return Err(request.refuse(
                "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            ));
        }
        Ok(())
    }
}

fn find(request: &Attributes, context: &Context<'_>) -> Result<Option<Arc<Value>>, ApiError> {
    let Some(name) = request.object["spec"].maybe_text("runtimeClassName") else {
        return Ok(None);
    };
    context
        .objects
        .get("node.k8s.io", "RuntimeClass", "", name)
        .map(Some)
        .ok_or_else(|| request.refuse(format!("pod rejected: RuntimeClass {name:?} not found")))
}

fn overhead(request: &mut Attributes, class: &Value) -> Result<(), ApiError> {
    let defined = &class["overhead"]["podFixed"];
    if defined.is_null() {
        return Ok(());
    }
    let own = &request.object["spec"]["overhead"];
    if !own.is_null() && !same(own, defined) {
        return Err(request
            .refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"));
    }
    if let Some(spec) = request.object.get_mut("spec") {
        edit::put(spec, "overhead", defined.clone());
    }
    Ok(())
}

/// The pod runs where the class can: its selector and tolerations come on top.
fn scheduling(request: &mut Attributes, class: &Value) -> Result<(), ApiError> {
    let scheduling = &class["scheduling"];
    for (key, value) in scheduling.entries("nodeSelector") {
        let own = request.object["spec"]["nodeSelector"].maybe_text(key);
        if own.is_some_and(|own| Some(own) != value.as_str()) {
            let own = own.unwrap_or_default();
            let value = value.as_str().unwrap_or_default();
            return Err(request.refuse(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own}"
            )));
        }
    }
    let Some(spec) = request.object.get_mut("spec") else {
        return Ok(());
    };
    let selector = scheduling.entries("nodeSelector");
    if !selector.is_empty()
        && let Some(own) = edit::within(spec, "nodeSelector")
    {
        own.extend(selector.clone());
    }
    let missing: Vec<Value> = scheduling
        .items("tolerations")
        .iter()
        .filter(|toleration| {
            !spec
                .items("tolerations")
                .iter()
                .any(|own| same(own, toleration))
        })
        .cloned()
        .collect();
    if !missing.is_empty()
        && let Some(own) = edit::list(spec, "tolerations")
    {
        own.extend(missing);
    }
    Ok(())
}
