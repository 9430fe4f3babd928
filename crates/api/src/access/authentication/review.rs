//! `TokenReview` and `SelfSubjectReview`: objects that are asked and answered, never stored.
//!
//! A token that is no good is an answer, not an error.

use serde_json::{Map, Value, json};

use super::{Authenticated, Fault, User};
use crate::status::ApiError;

/// Answers a `TokenReview`. `identify` gets the token and the audiences that were asked for.
pub fn token_review(
    mut review: Value,
    identify: impl FnOnce(&str, &[String]) -> Result<Authenticated, Fault>,
) -> Result<Value, ApiError> {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(ApiError::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let audiences: Vec<String> = review["spec"]["audiences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|audience| audience.as_str().map(str::to_owned))
        .collect();
    let mut status = Map::new();
    match identify(token, &audiences) {
        Ok(found) => {
            status.insert("authenticated".to_owned(), true.into());
            status.insert("user".to_owned(), found.user.to_value());
            if !found.audiences.is_empty() {
                status.insert("audiences".to_owned(), json!(found.audiences));
            }
        }
        Err(fault) => {
            status.insert("user".to_owned(), json!({}));
            let text = match fault {
                Fault::Token { .. } => format!("[{fault}]"),
                fault => fault.to_string(),
            };
            status.insert("error".to_owned(), text.into());
        }
    }
    review["status"] = status.into();
    Ok(review)
}

/// Answers a `SelfSubjectReview`.
pub fn self_subject_review(mut review: Value, user: &User) -> Value {
    review["status"] = json!({"userInfo": user.to_value()});
    review
}
