//! Paths below an object that are more than a part of it: scale, binding, eviction, token.

use super::{Call, Reply, binding, eviction, review, scale};
use crate::{registry::Verb, state::Api, status::ApiError};

pub(crate) async fn run(api: &Api, call: &Call, verb: Verb) -> Result<Reply, ApiError> {
    match call.path.subresource.as_str() {
        "scale" => scale::scale(api, call, verb).await,
        "binding" => binding::bind(api, call).await,
        "eviction" => eviction::evict(api, call).await,
        "token" => review::token(api, call).await,
        _ => Err(ApiError::no_such_path()),
    }
}
