//! `patch`: three ways to say what changes, and server-side apply.

use serde_json::Value;

use super::{Call, Reply, change, create};
use crate::{
    apply::check_options,
    fields,
    http::body,
    object,
    patch::{self, PatchMedia},
    pipeline::{self, Part},
    schema::{Findings, Shape},
    state::Api,
    status::ApiError,
};

pub(crate) async fn patch(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    let media = PatchMedia::from_content_type(&call.content_type, call.kind.custom.is_some())?;
    let is_apply = media == PatchMedia::Apply;
    check_options(&call.options.field_manager, call.options.force, is_apply)?;
    let PatchMedia::Change(kind) = media else {
        return apply_patch(api, call).await;
    };
    let shape = call.kind.type_id.map_or(Shape::Any, Shape::Object);
    let mut warnings = Vec::new();
    let changed = change::change(api, call, |stored| {
        let patched = patch::apply(kind, &call.kind.schema, &shape, &stored.value, &call.body)?;
        check_identity(call, &stored.value, &patched)?;
        let decoded = body::typed(call, &call.kind, patched, Findings::default())?;
        warnings = decoded.warnings;
        let part = Part::of(&call.path.subresource);
        pipeline::prepare_update(api, call, part, &stored.value, decoded.value, &mut warnings)
    })
    .await?;
    Ok(Reply::object(200, changed.value, warnings))
}

/// A patch may not turn an object into another one.
fn check_identity(call: &Call, current: &Value, patched: &Value) -> Result<(), ApiError> {
    if object::name(patched) != object::name(current) {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            object::name(patched),
            call.path.name
        )));
    }
    if object::namespace(patched) != object::namespace(current) {
        return Err(ApiError::bad_request(
            "the namespace of the object does not match the namespace on the request",
        ));
    }
    Ok(())
}

/// Server-side apply: the client says what it wants to own, the server merges.
async fn apply_patch(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    let wanted = body::read_yaml(&call.body)?;
    let mut decoded = body::typed(call, &call.kind, wanted, Findings::default())?;
    pipeline::place(&call.kind, &call.path, &mut decoded.value)?;
    if change::current(api, call).await?.is_none() {
        if !call.path.subresource.is_empty() {
            return Err(call.not_found(&call.path.name));
        }
        let value = fields::apply(call, None, &decoded.value, api.now())?;
        let decoded = body::Decoded {
            value,
            warnings: decoded.warnings,
        };
        let (value, warnings) = create::create_absent(api, call, decoded).await?;
        return Ok(Reply::object(201, value, warnings));
    }
    let mut warnings = Vec::new();
    let changed = change::change(api, call, |stored| {
        let merged = fields::apply(call, Some(&stored.value), &decoded.value, api.now())?;
        warnings.clone_from(&decoded.warnings);
        let part = Part::of(&call.path.subresource);
        pipeline::prepare_update(api, call, part, &stored.value, merged, &mut warnings)
    })
    .await?;
    Ok(Reply::object(200, changed.value, warnings))
}
