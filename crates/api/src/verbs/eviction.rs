//! Eviction: a deletion that disruption budgets may refuse.
//!
//! Everything that can refuse the deletion has its say before a budget is spent.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};

use super::{
    Call, Reply, change,
    delete::{self, Wish},
};
use crate::{
    cache::Selection,
    http::body::{self, WireType},
    object,
    pipeline::Write,
    state::{Api, Stored},
    status::{ApiError, Cause},
    validation::{read::Read as _, selector},
};

const EVICTION: WireType = WireType {
    group: "policy",
    version: "v1",
    kind: "Eviction",
    also: Some("policy/v1beta1"),
};
/// How often an eviction is decided again because the pod changed.
const TRIES: usize = 20;
/// Pods that go while the controller of budgets has not seen it; more are a sign that it does not look.
const MOST_UNSEEN: usize = 2000;

/// Why a pod may go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ground {
    /// No budget is about pods in this state.
    State,
    /// It is not ready, so its budget has nothing of it.
    Unhealthy,
    /// No budget selects it, or one was spent for it.
    Budget,
}

pub(super) async fn evict(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    let decoded = body::decode_wire(call, &EVICTION)?;
    let mut deletion = call.clone();
    deletion.path.subresource.clear();
    let wish = Wish::of(&deletion, &decoded.value["deleteOptions"])?;
    deletion.options.dry_run = wish.dry_run;
    for _ in 0..TRIES {
        let stored = change::current(api, &deletion)
            .await?
            .ok_or_else(|| call.not_found(&call.path.name))?;
        wish.admit(api, &deletion, &stored.value)?;
        let ground = ground(api, &deletion, &stored).await?;
        if delete(api, &deletion, &wish, &stored, ground).await? {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
            });
            let mut reply = Reply::other(201, status);
            reply.warnings = decoded.warnings;
            return Ok(reply);
        }
    }
    Err(refusal(
        10,
        "The pod changes too fast to be evicted.".to_owned(),
    ))
}

/// Deletes the pod, unless its state was the ground and it has another one by now.
async fn delete(
    api: &Api,
    call: &Call,
    wish: &Wish,
    seen: &Stored,
    ground: Ground,
) -> Result<bool, ApiError> {
    let now = object::time(api.now());
    let version = object::resource_version(&seen.value);
    let moved = AtomicBool::new(false);
    let changed = delete::delete_marked(api, call, wish, |pod| {
        if ground != Ground::Budget && object::resource_version(pod) != version {
            moved.store(true, Ordering::Relaxed);
            return Err(ApiError::modified("", "pods", &call.path.name));
        }
        Ok(marked(pod, &now))
    })
    .await;
    match changed {
        Err(_) if moved.load(Ordering::Relaxed) => Ok(false),
        Err(error) => Err(error),
        Ok(_) => Ok(true),
    }
}

/// The pod with the condition by which its controllers tell a disruption from a failure.
fn marked(pod: &Value, now: &Value) -> Value {
    let mut condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastTransitionTime": now,
    });
    if let Some(generation) = pod["metadata"].maybe_number("generation") {
        condition["observedGeneration"] = generation.into();
    }
    let mut pod = pod.clone();
    let status = object::as_map(&mut pod)
        .entry("status")
        .or_insert_with(|| json!({}));
    let conditions = object::as_map(status)
        .entry("conditions")
        .or_insert_with(|| json!([]));
    let Some(list) = conditions.as_array_mut() else {
        return pod;
    };
    let before = list.iter_mut().find(|old| old["type"] == condition["type"]);
    match before {
        Some(old) => {
            if old["status"] == condition["status"] && old.has("lastTransitionTime") {
                condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = condition;
        }
        None => list.push(condition),
    }
    pod
}

/// Finds why a pod may go, and takes one disruption from its budget if that is the reason.
async fn ground(api: &Api, call: &Call, stored: &Stored) -> Result<Ground, ApiError> {
    let pod = &stored.value;
    let phase = pod["status"].text("phase");
    if matches!(phase, "Succeeded" | "Failed" | "Pending") || object::is_being_deleted(pod) {
        return Ok(Ground::State);
    }
    let budgets = budgets_of(api, &call.path.namespace, pod)?;
    let budget = match budgets.as_slice() {
        [] => return Ok(Ground::Budget),
        [budget] => budget,
        _ => {
            return Err(ApiError::new(
                500,
                "InternalError",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    if !is_ready(pod) && lets_unhealthy_go(budget) {
        return Ok(Ground::Unhealthy);
    }
    spend(api, call, object::name(budget)).await?;
    Ok(Ground::Budget)
}

fn is_ready(pod: &Value) -> bool {
    pod["status"]
        .items("conditions")
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Whether a pod that is not ready may go though the budget is used up.
fn lets_unhealthy_go(budget: &Value) -> bool {
    let status = &budget["status"];
    let (has, needs) = (
        status.number("currentHealthy"),
        status.number("desiredHealthy"),
    );
    budget["spec"].text("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        || (has >= needs && needs > 0)
}

/// Takes one disruption from a budget. A dry run looks whether there is one.
async fn spend(api: &Api, call: &Call, budget: &str) -> Result<(), ApiError> {
    let kinds = api.registry.kinds();
    let kind = kinds
        .resource("policy", "v1", "poddisruptionbudgets")
        .ok_or_else(|| ApiError::internal("budgets are not served"))?;
    let mut on_budget = call.clone();
    on_budget.kind = Arc::clone(kind);
    budget.clone_into(&mut on_budget.path.name);
    "status".clone_into(&mut on_budget.path.subresource);
    let now = object::time(api.now());
    change::change(api, &on_budget, |stored| {
        check_budget(&stored.value)?;
        let mut value = stored.value.clone();
        let allowed = value["status"].number("disruptionsAllowed");
        value["status"]["disruptionsAllowed"] = (allowed - 1).into();
        value["status"]["disruptedPods"][&call.path.name] = now.clone();
        Ok(change::Next::Put(Write {
            value,
            ..Write::default()
        }))
    })
    .await?;
    Ok(())
}

/// Whether a budget has a disruption to give.
fn check_budget(budget: &Value) -> Result<(), ApiError> {
    let (name, status) = (object::name(budget), &budget["status"]);
    let forbidden = |why: &str| {
        Err(ApiError::forbidden(
            "policy",
            "poddisruptionbudget",
            name,
            why,
        ))
    };
    if status.number("observedGeneration") < budget["metadata"].number("generation") {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refusal(10, why));
    }
    if status.number("disruptionsAllowed") < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    if status.entries("disruptedPods").len() > MOST_UNSEEN {
        return forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        );
    }
    if status.number("disruptionsAllowed") > 0 {
        return Ok(());
    }
    let failure = status.items("conditions").iter().find(|condition| {
        condition["type"] == "DisruptionAllowed"
            && condition["status"] == "False"
            && condition["reason"] == "SyncFailed"
    });
    let why = match failure {
        Some(condition) => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            condition.text("message")
        ),
        None => format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            status.number("desiredHealthy"),
            status.number("currentHealthy")
        ),
    };
    Err(refusal(0, why))
}

/// The budgets that select a pod. One without a selector selects none; an empty one selects all that have labels.
fn budgets_of(api: &Api, namespace: &str, pod: &Value) -> Result<Vec<Value>, ApiError> {
    let kinds = api.registry.kinds();
    let labels = pod["metadata"].entries("labels");
    let Some(kind) = kinds.resource("policy", "v1", "poddisruptionbudgets") else {
        return Ok(Vec::new());
    };
    if labels.is_empty() {
        return Ok(Vec::new());
    }
    let selection = Selection {
        namespace: namespace.to_owned(),
        ..Selection::default()
    };
    let listing = api
        .cache_of(kind)
        .list(&selection, None, None, None)
        .map_err(|_| ApiError::internal("the budgets cannot be listed"))?;
    let budgets = listing.items.iter().map(|item| item.value());
    Ok(budgets
        .filter(|budget| selector::matches(&budget["spec"]["selector"], labels))
        .collect())
}

fn refusal(retry: u32, why: String) -> ApiError {
    let mut error = ApiError::too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        retry,
    );
    if let Some(details) = &mut error.details {
        details.causes.push(Cause {
            reason: "DisruptionBudget".to_owned(),
            message: why,
            field: String::new(),
        });
        if retry == 0 {
            details.retry_after_seconds = None;
        }
    }
    error
}
