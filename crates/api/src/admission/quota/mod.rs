//! Resource quotas: how much the objects of a namespace may be and use.
//!
//! A change that is accepted counts at once. The new counts come back with the version of the quota that
//! they were made from, to be written in one transaction with the object: of two requests that together
//! exceed a quota, one then finds the quota changed and is decided anew.

mod scopes;
mod usage;

use serde_json::{Map, Value, json};

use super::{Attributes, Context, Operation, Outcome, Plugin};
use crate::{
    status::ApiError,
    validation::{
        amounts::Amounts,
        quantities::{self, Amount},
        read::Read,
    },
};

/// A quota whose counts change with the object.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaChange {
    pub namespace: String,
    pub name: String,
    /// What the quota must still be for the change to be right.
    pub resource_version: String,
    /// The whole new status.
    pub status: Value,
}

/// A resource of which a request wants too much.
struct Exceeded<'a> {
    name: &'a str,
    requested: Amount,
    used: Amount,
    limited: Amount,
}

pub(super) struct ResourceQuota;

impl Plugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), ApiError> {
        if request.namespace.is_empty() || !is_counted(request) {
            return Ok(());
        }
        let after = usage::of(request, &request.object);
        let before = match request.operation {
            Operation::Update => usage::of(request, request.old()),
            _ => Amounts::new(),
        };
        for quota in context
            .objects
            .list("", "ResourceQuota", &request.namespace)
        {
            let selects = |object: &Value| scopes::select(&quota["spec"], request, object);
            if !selects(&request.object) {
                continue;
            }
            required(request, &quota)?;
            let counted_before = if request.operation == Operation::Update && selects(request.old())
            {
                before.clone()
            } else {
                Amounts::new()
            };
            let added = difference(&after, &counted_before, &quota);
            if added.is_empty() {
                continue;
            }
            let change = charge(request, context, &quota, &added)?;
            if !request.dry_run {
                outcome.quotas.push(change);
            }
        }
        Ok(())
    }
}

/// Creations count; of updates only those that can use more.
fn is_counted(request: &Attributes) -> bool {
    match request.operation {
        Operation::Create => request.subresource.is_empty(),
        Operation::Update => {
            let core = request.group.is_empty();
            let plain = request.subresource.is_empty()
                && matches!(request.kind.as_str(), "Service" | "PersistentVolumeClaim");
            let resized = request.kind == "Pod" && request.subresource == "resize";
            core && (plain || resized)
        }
        _ => false,
    }
}

/// What more is used of the resources that a quota limits.
fn difference(after: &Amounts, before: &Amounts, quota: &Value) -> Amounts {
    let hard = quota["spec"].entries("hard");
    after
        .iter()
        .filter(|(name, _)| hard.contains_key(*name))
        .map(|(name, amount)| {
            let earlier = before.get(name).copied().unwrap_or(Amount::ZERO);
            (name.clone(), amount.minus(earlier))
        })
        // What becomes less is counted down by the controller of quotas.
        .filter(|(_, amount)| *amount > Amount::ZERO)
        .collect()
}

/// Pods in a namespace with a quota on resources must say how much they need.
fn required(request: &Attributes, quota: &Value) -> Result<(), ApiError> {
    if request.kind != "Pod" || !request.group.is_empty() {
        return Ok(());
    }
    let missing = usage::missing(&request.object["spec"], quota["spec"].entries("hard"));
    if missing.is_empty() {
        return Ok(());
    }
    Err(request.refuse(format!(
        "failed quota: {}: must specify {}",
        quota["metadata"].text("name"),
        missing.join("; ")
    )))
}

fn charge(
    request: &Attributes,
    context: &Context<'_>,
    quota: &Value,
    added: &Amounts,
) -> Result<QuotaChange, ApiError> {
    let hard = &quota["spec"]["hard"];
    let mut used = Map::new();
    for name in quota["spec"].entries("hard").keys() {
        let known = quantities::amount_of(&quota["status"]["used"], name);
        let amount = known.unwrap_or_else(|| usage::total(name, &quota["spec"], request, context));
        used.insert(name.clone(), amount.to_string().into());
    }
    let mut exceeded: Vec<Exceeded<'_>> = Vec::new();
    for (name, amount) in added {
        let before = used
            .get(name)
            .and_then(quantities::read)
            .unwrap_or(Amount::ZERO);
        let after = before.plus(*amount);
        let limit = quantities::amount_of(hard, name).unwrap_or(Amount::ZERO);
        if after > limit {
            exceeded.push(Exceeded {
                name,
                requested: *amount,
                used: before,
                limited: limit,
            });
        }
        used.insert(name.clone(), after.to_string().into());
    }
    if !exceeded.is_empty() {
        let show = |pick: fn(&Exceeded<'_>) -> Amount| {
            let parts: Vec<String> = exceeded
                .iter()
                .map(|row| format!("{}={}", row.name, pick(row)))
                .collect();
            parts.join(",")
        };
        return Err(request.refuse(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            quota["metadata"].text("name"),
            show(|row| row.requested),
            show(|row| row.used),
            show(|row| row.limited),
        )));
    }
    Ok(QuotaChange {
        namespace: request.namespace.clone(),
        name: quota["metadata"].text("name").to_owned(),
        resource_version: quota["metadata"].text("resourceVersion").to_owned(),
        status: json!({"hard": hard, "used": used}),
    })
}
