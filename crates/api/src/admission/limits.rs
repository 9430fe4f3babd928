//! Limit ranges: what containers get if they ask for nothing, and what they may ask for.

use std::sync::Arc;

use serde_json::Value;

use super::{Attributes, Context, Operation, Outcome, Plugin, edit};
use crate::{
    status::ApiError,
    validation::{
        amounts::{self, Amounts},
        quantities::{self, Amount},
        read::Read,
    },
};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

pub(super) struct LimitRanger;

impl Plugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn mutate(&self, request: &mut Attributes, context: &Context<'_>) -> Result<(), ApiError> {
        if !request.creates("", "Pod") {
            return Ok(());
        }
        for range in ranges(request, context) {
            let set = fill(&mut request.object, &range);
            if !set.is_empty() {
                annotate(&mut request.object, &set);
            }
        }
        Ok(())
    }

    fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
        _: &mut Outcome,
    ) -> Result<(), ApiError> {
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        let resizes = request.kind == "Pod" && request.subresource == "resize";
        let pod = request.creates("", "Pod") || resizes;
        let claim = writes && request.is("", "PersistentVolumeClaim");
        if !pod && !claim {
            return Ok(());
        }
        for range in ranges(request, context) {
            let mut faults = Vec::new();
            for limit in range["spec"].items("limits") {
                match limit.text("type") {
                    "Container" if pod => containers(&request.object["spec"], limit, &mut faults),
                    "Pod" if pod => whole_pod(&request.object["spec"], limit, &mut faults),
                    "PersistentVolumeClaim" if claim => {
                        storage(&request.object["spec"], limit, &mut faults);
                    }
                    _ => {}
                }
            }
            match faults.as_slice() {
                [] => {}
                [one] => return Err(request.refuse(one)),
                several => return Err(request.refuse(format!("[{}]", several.join(", ")))),
            }
        }
        Ok(())
    }
}

fn ranges(request: &Attributes, context: &Context<'_>) -> Vec<Arc<Value>> {
    context.objects.list("", "LimitRange", &request.namespace)
}

/// Sets what containers do not say, and returns sentences about it.
fn fill(pod: &mut Value, range: &Value) -> Vec<String> {
    let mut set = Vec::new();
    let Some(limit) = range["spec"]
        .items("limits")
        .iter()
        .find(|limit| limit.text("type") == "Container")
    else {
        return set;
    };
    let Some(spec) = pod.get_mut("spec") else {
        return set;
    };
    for (list, what) in [
        ("containers", "container"),
        ("initContainers", "init container"),
    ] {
        for container in edit::items(spec, list) {
            let name = container.text("name").to_owned();
            for (field, source, word) in [
                ("requests", "defaultRequest", "request"),
                ("limits", "default", "limit"),
            ] {
                let names = fill_list(container, field, limit.entries(source));
                if !names.is_empty() {
                    set.push(format!("{} {word} for {what} {name}", names.join(", ")));
                }
            }
        }
    }
    set
}

fn fill_list(
    container: &mut Value,
    field: &str,
    defaults: &serde_json::Map<String, Value>,
) -> Vec<String> {
    let absent: Vec<(String, Value)> = defaults
        .iter()
        .filter(|(name, _)| !container["resources"][field].has(name))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    if absent.is_empty() || edit::within(container, "resources").is_none() {
        return Vec::new();
    }
    let Some(resources) = container.get_mut("resources") else {
        return Vec::new();
    };
    let Some(list) = edit::within(resources, field) else {
        return Vec::new();
    };
    let names = absent.iter().map(|(name, _)| name.clone()).collect();
    list.extend(absent);
    names
}

fn annotate(pod: &mut Value, set: &[String]) {
    let text = format!("LimitRanger plugin set: {}", set.join("; "));
    if let Some(metadata) = pod.get_mut("metadata")
        && let Some(annotations) = edit::within(metadata, "annotations")
    {
        annotations.insert(ANNOTATION.to_owned(), text.into());
    }
}

fn read(list: &Value) -> Amounts {
    list.as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), quantities::read(value)?)))
        .collect()
}

fn containers(spec: &Value, limit: &Value, faults: &mut Vec<String>) {
    for list in ["containers", "initContainers"] {
        for container in spec.items(list) {
            let resources = &container["resources"];
            bounds(
                limit,
                "Container",
                &read(&resources["requests"]),
                &read(&resources["limits"]),
                faults,
            );
        }
    }
}

fn whole_pod(spec: &Value, limit: &Value, faults: &mut Vec<String>) {
    bounds(
        limit,
        "Pod",
        &amounts::pod_requests(spec),
        &amounts::pod_limits(spec),
        faults,
    );
}

fn bounds(
    limit: &Value,
    kind: &str,
    requests: &Amounts,
    limits: &Amounts,
    faults: &mut Vec<String>,
) {
    for (name, least) in read(&limit["min"]) {
        let prefix = format!("minimum {name} usage per {kind} is {least}");
        let (request, limit) = (requests.get(&name), limits.get(&name));
        match request {
            None => faults.push(format!("{prefix}.  No request is specified")),
            Some(request) if *request < least => {
                faults.push(format!("{prefix}, but request is {request}"));
            }
            Some(_) => {
                if let Some(limit) = limit
                    && *limit < least
                {
                    faults.push(format!("{prefix}, but limit is {limit}"));
                }
            }
        }
    }
    for (name, most) in read(&limit["max"]) {
        let prefix = format!("maximum {name} usage per {kind} is {most}");
        let (request, limit) = (requests.get(&name), limits.get(&name));
        match limit {
            None => faults.push(format!("{prefix}.  No limit is specified")),
            Some(limit) if *limit > most => {
                faults.push(format!("{prefix}, but limit is {limit}"));
            }
            Some(_) => {
                if let Some(request) = request
                    && *request > most
                {
                    faults.push(format!("{prefix}, but request is {request}"));
                }
            }
        }
    }
    ratios(limit, kind, requests, limits, faults);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "upstream compares and shows ratios as floating point numbers"
)]
fn ratios(
    limit: &Value,
    kind: &str,
    requests: &Amounts,
    limits: &Amounts,
    faults: &mut Vec<String>,
) {
    for (name, most) in read(&limit["maxLimitRequestRatio"]) {
        let prefix = format!("{name} max limit to request ratio per {kind} is {most}");
        let request = requests
            .get(&name)
            .filter(|request| **request > Amount::ZERO);
        let limit = limits.get(&name).filter(|limit| **limit > Amount::ZERO);
        match (request, limit) {
            (None, _) => faults.push(format!(
                "{prefix}, but no request is specified or request is 0"
            )),
            (_, None) => faults.push(format!("{prefix}, but no limit is specified or limit is 0")),
            (Some(request), Some(limit)) => {
                let ratio = limit.milli_value() as f64 / request.milli_value() as f64;
                if ratio > most.milli_value() as f64 / 1000.0 {
                    faults.push(format!("{prefix}, but provided ratio is {ratio:.6}"));
                }
            }
        }
    }
}

fn storage(spec: &Value, limit: &Value, faults: &mut Vec<String>) {
    let kind = "PersistentVolumeClaim";
    let Some(asked) = quantities::amount_of(&spec["resources"]["requests"], "storage") else {
        return;
    };
    if let Some(least) = quantities::amount_of(&limit["min"], "storage")
        && asked < least
    {
        faults.push(format!(
            "minimum storage usage per {kind} is {least}, but request is {asked}"
        ));
    }
    if let Some(most) = quantities::amount_of(&limit["max"], "storage")
        && asked > most
    {
        faults.push(format!(
            "maximum storage usage per {kind} is {most}, but request is {asked}"
        ));
    }
}
