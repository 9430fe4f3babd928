//! Who owns which field, for every write: the bridge between verbs and server-side apply.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    apply::{self, Request, manager_name},
    pipeline::Part,
    schema::Shape,
    status::ApiError,
    verbs::Call,
};

fn with_request<T>(call: &Call, now: Timestamp, run: impl FnOnce(&Request<'_>) -> T) -> T {
    let shape = call.kind.type_id.map_or(Shape::Any, Shape::Object);
    run(&Request {
        schema: &call.kind.schema,
        shape: &shape,
        api_version: &call.kind.api_version(),
        kind: &call.kind.kind,
        manager: &manager_name(&call.options.field_manager, &call.user_agent),
        subresource: &call.path.subresource,
        scope: &Part::of(&call.path.subresource).scope(&call.kind),
        now,
    })
}

/// Records in `new` who changed what. An apply has recorded it already.
pub(crate) fn record(call: &Call, current: Option<&Value>, new: &mut Value, now: Timestamp) {
    if call.content_type.starts_with("application/apply-patch") {
        return;
    }
    let value = std::mem::take(new);
    *new = with_request(call, now, |request| apply::update(request, current, value));
}

/// The object after a server-side apply.
pub(crate) fn apply(
    call: &Call,
    current: Option<&Value>,
    wanted: &Value,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let force = call.options.force.unwrap_or_default();
    with_request(call, now, |request| {
        apply::apply(request, current, wanted, force)
    })
}

/// Lets a write that came to nothing be none: fields keep the time at which they got their owner.
pub(crate) fn settle(current: &Value, new: &mut Value) {
    apply::keep_times(current, new);
}
