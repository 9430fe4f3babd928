//! `get` and `list`: always from memory.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::{Call, Reply, ReplyBody};
use crate::{
    cache::TooOld,
    field::{FieldError, Path},
    http::options::{VersionMatch, invalid_options},
    state::Api,
    status::ApiError,
};

pub(crate) async fn get(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    if let Some(revision) = revision(&call.options.resource_version)? {
        api.cache.wait_for(revision).await?;
    } else {
        api.catch_up().await?;
    }
    let key = crate::state::cache_key(&call.kind, &call.path.namespace, &call.path.name);
    let object = api
        .cache_of(&call.kind)
        .get(&key)
        .ok_or_else(|| call.not_found(&call.path.name))?;
    Ok(Reply {
        code: 200,
        body: ReplyBody::Cached(object),
        warnings: Vec::new(),
    })
}

/// Where a list goes on, in the form that upstream gives to its clients.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    v: String,
    #[serde(default)]
    rv: i64,
    start: String,
}

/// A resource version as a number; zero and nothing are told apart by the caller.
pub(crate) fn revision(text: &str) -> Result<Option<u64>, ApiError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        ApiError::bad_request(format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"))
    })
}

pub(crate) async fn list(api: &Api, call: &Call) -> Result<Reply, ApiError> {
    let options = &call.options;
    check_versions(call)?;
    let selection = call.selection()?;
    let cache = api.cache_of(&call.kind);
    let (after, at) = if options.continues.is_empty() {
        let at = match (revision(&options.resource_version)?, options.version_match) {
            (None, _) => {
                api.catch_up().await?;
                None
            }
            (Some(0), _) => None,
            (Some(revision), version_match) if is_exact(version_match, options.limit) => {
                api.cache.wait_for(revision).await?;
                Some(revision)
            }
            (Some(revision), _) => {
                api.cache.wait_for(revision).await?;
                None
            }
        };
        (None, at)
    } else {
        let token = read_token(&options.continues)?;
        // A negative revision says that the history was lost and the rest is wanted as it is now.
        let at = u64::try_from(token.rv).ok();
        match at {
            Some(revision) => api.cache.wait_for(revision).await?,
            None => api.catch_up().await?,
        }
        (Some(start_key(&token.start, &selection.namespace)), at)
    };
    let listing = cache
        .list(&selection, after.as_deref(), options.limit, at)
        .map_err(|too_old| expired(too_old, after.as_deref(), &selection.namespace))?;
    let next = listing.next.as_deref().map(|key| {
        token(
            i64::try_from(listing.revision).unwrap_or(i64::MAX),
            key,
            &selection.namespace,
        )
    });
    Ok(Reply {
        code: 200,
        body: ReplyBody::List(listing, next),
        warnings: Vec::new(),
    })
}

/// Whether a list is wanted at just its revision. A page of an older client, which cannot say so, is.
fn is_exact(version_match: Option<VersionMatch>, limit: Option<usize>) -> bool {
    match version_match {
        Some(version_match) => version_match == VersionMatch::Exact,
        None => limit.is_some(),
    }
}

fn check_versions(call: &Call) -> Result<(), ApiError> {
    let options = &call.options;
    let path = Path::new("resourceVersionMatch");
    let mut faults = Vec::new();
    if let Some(version_match) = options.version_match {
        if options.resource_version.is_empty() {
            faults.push(FieldError::forbidden(
                &path,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !options.continues.is_empty() {
            faults.push(FieldError::forbidden(
                &path,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if version_match == VersionMatch::Exact && options.resource_version == "0" {
            faults.push(FieldError::forbidden(
                &path,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if options.initial_events.is_some() {
        faults.push(FieldError::forbidden(
            &Path::new("sendInitialEvents"),
            "sendInitialEvents is forbidden for list",
        ));
    }
    if !faults.is_empty() {
        return Err(invalid_options("ListOptions", &faults));
    }
    // A list that goes on does so at the revision where it began.
    if !options.continues.is_empty() && !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(ApiError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    Ok(())
}

fn read_token(text: &str) -> Result<Token, ApiError> {
    let broken = |why: &str| ApiError::bad_request(format!("continue key is not valid: {why}"));
    let bytes = URL_SAFE_NO_PAD
        .decode(text.trim_end_matches('='))
        .map_err(|_| broken("illegal base64 data"))?;
    let token: Token = serde_json::from_slice(&bytes).map_err(|_| broken("it does not decode"))?;
    if token.v != "meta.k8s.io/v1" {
        return Err(broken(&format!(
            "server does not recognize this encoded version {:?}",
            token.v
        )));
    }
    if token.rv == 0 {
        return Err(broken(
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ));
    }
    if token.start.is_empty() || token.start.contains("..") {
        return Err(broken("encoded start key empty (version meta.k8s.io/v1)"));
    }
    Ok(token)
}

/// Tokens name the first key that is wanted, which is the last one given with a zero byte behind it.
fn token(revision: i64, key: &str, namespace: &str) -> String {
    let start = if namespace.is_empty() {
        key
    } else {
        key.split_once('/').map_or(key, |(_, name)| name)
    };
    let token = Token {
        v: "meta.k8s.io/v1".to_owned(),
        rv: revision,
        start: format!("{start}\0"),
    };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
}

fn start_key(start: &str, namespace: &str) -> String {
    let start = start.trim_end_matches('\0');
    if namespace.is_empty() {
        start.to_owned()
    } else {
        format!("{namespace}/{start}")
    }
}

/// A list that cannot go on at its revision may go on at the newest one; the client is given a token for that.
fn expired(too_old: TooOld, after: Option<&str>, namespace: &str) -> ApiError {
    let Some(after) = after else {
        return ApiError::expired(format!(
            "The resourceVersion for the provided list is too old: {} ({})",
            too_old.requested, too_old.oldest
        ));
    };
    let mut error = ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    error.continues = Some(token(-1, after, namespace));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_the_key_it_was_made_of() {
        for (key, namespace) in [("shop/web", "shop"), ("shop/web", ""), ("node-1", "")] {
            let read = read_token(&token(7, key, namespace)).unwrap();
            assert_eq!(read.rv, 7);
            assert_eq!(start_key(&read.start, namespace), key);
        }
    }

    #[test]
    fn a_list_that_is_too_old_goes_on_behind_the_key_where_it_was() {
        let too_old = TooOld {
            requested: 3,
            oldest: 9,
        };
        let error = expired(too_old, Some("shop/web"), "shop");
        assert_eq!((error.code, error.reason), (410, "Expired"));
        let read = read_token(&error.continues.unwrap()).unwrap();
        assert_eq!(
            (read.rv, start_key(&read.start, "shop").as_str()),
            (-1, "shop/web")
        );
        assert_eq!(expired(too_old, None, "shop").continues, None);
    }

    #[test]
    fn a_token_of_nobody_is_refused() {
        for text in ["", "!", "e30", "bm90IGpzb24"] {
            assert_eq!(read_token(text).unwrap_err().code, 400, "{text}");
        }
    }
}
