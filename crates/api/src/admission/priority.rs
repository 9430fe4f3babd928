//! How important pods are, and how long they stay on nodes that fail.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Attributes, Context, Operation, Outcome, Plugin, edit};
use crate::{
    status::ApiError,
    validation::{cluster::SYSTEM_PRIORITIES, read::Read},
};

const GROUP: &str = "scheduling.k8s.io";
const KIND: &str = "PriorityClass";
const DEFAULT_POLICY: &str = "PreemptLowerPriority";
const TOLERATED_SECONDS: i64 = 300;

pub(super) struct Priority;

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn mutate(&self, request: &mut Attributes, context: &Context<'_>) -> Result<(), ApiError> {
        if request.updates("", "Pod") {
            keep(request);
        }
        if !request.creates("", "Pod") {
            return Ok(());
        }
        let chosen = request.object["spec"].text("priorityClassName").to_owned();
        let (name, value, policy) = if chosen.is_empty() {
            match default_class(context) {
                Some(class) => describe(&class),
                None => (String::new(), 0, DEFAULT_POLICY.to_owned()),
            }
        } else {
            find(context, &chosen).ok_or_else(|| {
                request.refuse(format!("no PriorityClass with name {chosen} was found"))
            })?
        };
        let spec = &request.object["spec"];
        if let Some(own) = spec.maybe_number("priority")
            && own != value
        {
            return Err(request.refuse(format!(
                "the integer value of priority ({own}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
            )));
        }
        if let Some(own) = spec.maybe_text("preemptionPolicy")
            && own != policy
        {
            return Err(request.refuse(format!(
                "the string value of PreemptionPolicy ({own}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
            )));
        }
        if let Some(spec) = request.object.get_mut("spec") {
            if !name.is_empty() {
                edit::put(spec, "priorityClassName", name);
            }
            edit::put(spec, "priority", value);
            edit::put(spec, "preemptionPolicy", policy);
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
        if !writes || !request.is(GROUP, KIND) || !request.object.flag("globalDefault") {
            return Ok(());
        }
        let other = context
            .objects
            .list(GROUP, KIND, "")
            .into_iter()
            .find(|class| {
                class.flag("globalDefault")
                    && class["metadata"].text("name") != request.shown_name()
            });
        match other {
            Some(other) => Err(request.refuse(format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                other["metadata"].text("name")
            ))),
            None => Ok(()),
        }
    }
}

/// A client that leaves out what was set here does not want it changed.
fn keep(request: &mut Attributes) {
    for field in ["priority", "preemptionPolicy"] {
        let old = request.old()["spec"][field].clone();
        if let Some(spec) = request.object.get_mut("spec")
            && !spec.has(field)
            && !old.is_null()
        {
            edit::put(spec, field, old);
        }
    }
}

/// Name, value and policy of a class.
fn describe(class: &Value) -> (String, i64, String) {
    let policy = class
        .maybe_text("preemptionPolicy")
        .unwrap_or(DEFAULT_POLICY);
    (
        class["metadata"].text("name").to_owned(),
        class.number("value"),
        policy.to_owned(),
    )
}

fn find(context: &Context<'_>, name: &str) -> Option<(String, i64, String)> {
    if let Some(class) = context.objects.get(GROUP, KIND, "", name) {
        return Some(describe(&class));
    }
    // The classes of the system are there before their objects are.
    SYSTEM_PRIORITIES
        .iter()
        .find(|known| known.0 == name)
        .map(|known| (known.0.to_owned(), known.1, DEFAULT_POLICY.to_owned()))
}

/// Of several defaults, which there should not be, the least important counts.
fn default_class(context: &Context<'_>) -> Option<Arc<Value>> {
    context
        .objects
        .list(GROUP, KIND, "")
        .into_iter()
        .filter(|class| class.flag("globalDefault"))
        .min_by_key(|class| class.number("value"))
}

pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn mutate(&self, request: &mut Attributes, _: &Context<'_>) -> Result<(), ApiError> {
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        if !writes || !request.is("", "Pod") {
            return Ok(());
        }
        let Some(spec) = request.object.get_mut("spec") else {
            return Ok(());
        };
        for key in [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
        ] {
            let tolerated = spec.items("tolerations").iter().any(|toleration| {
                let own = toleration.text("key");
                (own.is_empty() || own == key)
                    && matches!(toleration.text("effect"), "" | "NoExecute")
            });
            if !tolerated && let Some(list) = edit::list(spec, "tolerations") {
                list.push(json!({
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": TOLERATED_SECONDS,
                }));
            }
        }
        Ok(())
    }
}
