//! `update`: an object is replaced by what the client has.

use serde_json::Value;

use super::{Call, Reply, change, create};
use crate::{
    http::body,
    object,
    pipeline::{self, Part},
    state::Api,
    status::ApiError,
};

pub(crate) async fn update(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    let mut decoded = body::decode(call, &call.kind)?;
    pipeline::place(&call.kind, &call.path, &mut decoded.value)?;
    if call.path.subresource.is_empty()
        && call.kind.created_by_updates
        && object::resource_version(&decoded.value).is_empty()
        && change::current(api, call).await?.is_none()
    {
        let (value, warnings) = create::create_absent(api, call, decoded).await?;
        return Ok(Reply::object(201, value, warnings));
    }
    let (value, warnings) = replace(api, call, decoded.value).await?;
    decoded.warnings.extend(warnings);
    Ok(Reply::object(200, value, decoded.warnings))
}

/// Replaces the object of a call by a checked one. With it comes what admission has to say.
pub(crate) async fn replace(
    api: &Api,
    call: &Call,
    wanted: Value,
) -> Result<(Value, Vec<String>), ApiError> {
    let part = Part::of(&call.path.subresource);
    let mut warnings = Vec::new();
    let changed = change::change(api, call, |stored| {
        warnings.clear();
        let wanted = wanted.clone();
        pipeline::prepare_update(api, call, part, &stored.value, wanted, &mut warnings)
    })
    .await?;
    Ok((changed.value, warnings))
}
