//! The kinds of patch that change an object in place: JSON patch, JSON merge patch, strategic merge patch.
//!
//! A patch is a pure function from one object to the next. It never half applies: an error leaves nothing behind.

mod json;
mod merge;
mod order;
mod strategic;
mod words;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::{
    schema::{Schema, Shape},
    status::ApiError,
};

pub use merge::merge;

/// What a body of `PATCH` may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchMedia {
    /// A change to the object that is there.
    Change(PatchType),
    /// What a manager wants to own, see [`crate::apply`].
    Apply,
}

/// How a change is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// A list of operations, RFC 6902.
    Json,
    /// An object that is laid over the other, RFC 7386.
    Merge,
    /// A merge patch that knows how the lists of Kubernetes merge.
    Strategic,
}

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

impl PatchMedia {
    /// What a `Content-Type` names. Custom resources have no strategic merge patch: nobody wrote down how
    /// their lists merge.
    pub fn from_content_type(content_type: &str, custom: bool) -> Result<Self, ApiError> {
        let media = content_type.split(';').next().unwrap_or_default().trim();
        match media {
            JSON => Ok(Self::Change(PatchType::Json)),
            MERGE => Ok(Self::Change(PatchType::Merge)),
            STRATEGIC if !custom => Ok(Self::Change(PatchType::Strategic)),
            APPLY => Ok(Self::Apply),
            _ => Err(unsupported(custom)),
        }
    }
}

/// The media types a `PATCH` may have, in the order in which messages name them.
pub fn media_types(custom: bool) -> &'static [&'static str] {
    if custom {
        &[JSON, MERGE, APPLY]
    } else {
        &[JSON, MERGE, STRATEGIC, APPLY]
    }
}

fn unsupported(custom: bool) -> ApiError {
    ApiError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        media_types(custom).join(", ")
    ))
}

/// The object that `current` becomes by the patch in `body`.
pub fn apply(
    kind: PatchType,
    schema: &Schema,
    shape: &Shape,
    current: &Value,
    body: &[u8],
) -> Result<Value, ApiError> {
    match kind {
        PatchType::Json => {
            let operations = json::decode(body)?;
            json::apply(current, operations).map_err(|_fault| rejected())
        }
        PatchType::Merge => {
            let patch = decode_object(body, "error decoding patch: ")?;
            let mut object = current.clone();
            merge(&mut object, patch);
            Ok(object)
        }
        PatchType::Strategic => {
            let Value::Object(patch) = decode_object(body, "")? else {
                return Ok(current.clone());
            };
            strategic::apply(schema, shape, current, patch).map_err(ApiError::from)
        }
    }
}

/// What upstream says of every JSON patch that does not fit the object. It does not name the operation, and
/// clients tell a lost race from a fault of validation by just these words and the empty details.
fn rejected() -> ApiError {
    let mut error = ApiError::new(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    error.details = Some(Box::default());
    error
}

fn decode_object(body: &[u8], prefix: &str) -> Result<Value, ApiError> {
    let patch: Value = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("{prefix}{error}")))?;
    let found = match &patch {
        Value::Object(_) => return Ok(patch),
        Value::Null => return Err(ApiError::bad_request("Invalid JSON Patch")),
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
    };
    Err(ApiError::bad_request(format!(
        "{prefix}json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
    )))
}
