//! Questions about who is asking and what is allowed: answered, never stored.

use serde_json::Value;

use super::{Call, Reply};
use crate::{
    access::{
        authentication::{
            review,
            token::{BoundKind, Found, TokenRequest},
        },
        authorization::review as access,
    },
    http::body,
    pipeline,
    schema::{self, cannot_be_handled, decode},
    state::Api,
    status::ApiError,
};

pub(crate) fn create(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    let decoded = body::decode(call, &call.kind)?;
    let (question, guard, user) = (decoded.value, &api.guard, &call.user);
    let answer = match call.kind.kind.as_str() {
        "TokenReview" => {
            let keys = guard.keys()?;
            review::token_review(question, |token, audiences| {
                guard
                    .authenticator
                    .identify_token(token, audiences, &keys, api, api.now())
            })?
        }
        "SelfSubjectReview" => review::self_subject_review(question, user),
        "SubjectAccessReview" => {
            access::subject_access_review(question, |asked| guard.decide(asked))?
        }
        "SelfSubjectAccessReview" => {
            access::self_subject_access_review(question, user, |asked| guard.decide(asked))?
        }
        "LocalSubjectAccessReview" => {
            let namespace = &call.path.namespace;
            access::local_subject_access_review(question, namespace, |asked| guard.decide(asked))?
        }
        "SelfSubjectRulesReview" => {
            access::self_subject_rules_review(question, user, |user, namespace| {
                guard.read(|authorizer| authorizer.rules_for(user, namespace))
            })?
        }
        kind => return Err(ApiError::internal(format!("nobody answers a {kind}"))),
    };
    Ok(Reply::object(201, answer, decoded.warnings))
}

/// A token for a service account.
pub(crate) async fn token(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    let (request, warnings) = token_request(call)?;
    let (namespace, name) = (&call.path.namespace, &call.path.name);
    api.catch_up().await?;
    let account = api
        .look("", "serviceaccounts", namespace, name)
        .ok_or_else(|| call.not_found(name))?;
    let request = pipeline::admit_request(api, call, request)?;
    let request = TokenRequest::read(request, namespace, name)?;
    let bound: Option<Value> = match request.bound() {
        None => None,
        Some(bound) => {
            let (plural, place) = match bound.kind {
                BoundKind::Pod => ("pods", namespace.as_str()),
                BoundKind::Secret => ("secrets", namespace.as_str()),
                BoundKind::Node => ("nodes", ""),
            };
            let found = api.look("", plural, place, &bound.name);
            Some(found.ok_or_else(|| ApiError::not_found("", plural, &bound.name))?)
        }
    };
    let node = bound
        .as_ref()
        .and_then(|pod| pod["spec"]["nodeName"].as_str())
        .and_then(|node| api.look("", "nodes", "", node));
    let found = Found {
        account: &account,
        bound: bound.as_ref(),
        node: node.as_ref(),
    };
    let id = uuid::Uuid::new_v4().to_string();
    let keys = api.guard.keys()?;
    let answer = request.issue(
        &api.guard.authenticator.tokens,
        &keys,
        &found,
        id,
        api.now(),
    )?;
    let mut reply = Reply::other(201, answer);
    reply.warnings = warnings;
    Ok(reply)
}

/// The body as an object of its type; it may leave out to say what it is.
fn token_request(call: &Call) -> Result<(Value, Vec<String>), ApiError> {
    const VERSION: &str = "authentication.k8s.io/v1";
    const KIND: &str = "TokenRequest";
    let name = schema::builtin_name("authentication.k8s.io", "v1", KIND);
    let id = schema::builtin()
        .find(&name)
        .ok_or_else(|| ApiError::internal("requests for tokens have no type"))?;
    let (value, findings) = body::parse(&call.content_type, &call.body)?;
    if !value.is_object() {
        return Err(cannot_be_handled(KIND, "v1", "the body is not an object"));
    }
    for (field, expected) in [("apiVersion", VERSION), ("kind", KIND)] {
        let given = value[field].as_str().unwrap_or_default();
        if !given.is_empty() && given != expected {
            let why = format!("{field} is {given:?}, not {expected:?}");
            return Err(cannot_be_handled(KIND, "v1", &why));
        }
    }
    let validation = call.options.field_validation;
    decode::decode(schema::builtin(), id, value, findings, validation)
}
