//! `binding`: puts a pod on a node. Only a pod that is nowhere can be put somewhere.

use serde_json::{Value, json};

use super::{
    Call, Reply,
    change::{self, Next},
};
use crate::{
    http::body::{self, WireType},
    object,
    pipeline::{self, Write},
    state::Api,
    status::ApiError,
    validation::{self, read::Read as _},
};

const BINDING: WireType = WireType {
    group: "",
    version: "v1",
    kind: "Binding",
    also: None,
};

pub(super) async fn bind(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    let decoded = body::decode_wire(call, &BINDING)?;
    let binding = decoded.value;
    let faults = validation::subresource("Pod", "binding", &binding, &Value::Null);
    if !faults.is_empty() {
        return Err(ApiError::invalid("", "Binding", &call.path.name, &faults));
    }
    // What admission looks at must be as new as the request.
    api.catch_up().await?;
    let binding = pipeline::admit_request(api, call, binding)?;
    let now = object::time(api.now());
    change::change(api, call, |stored| {
        check(call, &binding, &stored.value)?;
        let mut value = stored.value.clone();
        value["spec"]["nodeName"] = binding["target"]["name"].clone();
        for (name, text) in binding["metadata"].entries("annotations") {
            value["metadata"]["annotations"][name] = text.clone();
        }
        schedule_condition(&mut value, &now);
        Ok(Next::Put(Write {
            value,
            ..Write::default()
        }))
    })
    .await?;
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    let mut reply = Reply::other(201, status);
    reply.warnings = decoded.warnings;
    Ok(reply)
}

/// Whether a pod is the one that is meant, and may be put on a node.
fn check(call: &Call, binding: &Value, pod: &Value) -> Result<(), ApiError> {
    let name = &call.path.name;
    for (what, field) in [("UID", "uid"), ("ResourceVersion", "resourceVersion")] {
        let wanted = binding["metadata"].text(field);
        let found = pod["metadata"].text(field);
        if !wanted.is_empty() && wanted != found {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            );
            return Err(ApiError::conflict("", "pods", name, &why));
        }
    }
    let why = if object::is_being_deleted(pod) {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !pod["spec"].text("nodeName").is_empty() {
        let taken = pod["spec"].text("nodeName");
        format!("pod {name} is already assigned to node {taken:?}")
    } else if !pod["spec"].items("schedulingGates").is_empty() {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    Err(ApiError::conflict("", "pods/binding", name, &why))
}

fn schedule_condition(pod: &mut Value, now: &Value) {
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
    });
    let status = object::as_map(
        object::as_map(pod)
            .entry("status")
            .or_insert_with(|| json!({})),
    );
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(list) = conditions.as_array_mut() {
        list.retain(|old| old["type"] != "PodScheduled");
        list.push(condition);
    }
}
