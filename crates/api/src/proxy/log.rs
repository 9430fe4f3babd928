//! What a container printed.
//!
//! A pod that is on no node has printed nothing, which is an answer and no fault.

use axum::body::Body;
use http::{HeaderValue, Response, header};
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::{
    Asked, agent_of, forward,
    location::{self, End, is_set},
    transport::{self, SendError},
};
use crate::{
    field::{FieldError, Path},
    http::options::Options,
    state::Api,
    status::ApiError,
};

/// What an agent may say about a fault.
const LONGEST_FAULT: usize = 50_000;

pub(super) async fn answer(
    api: &Api,
    asked: Asked<'_>,
    pod: &Value,
) -> Result<Response<Body>, ApiError> {
    let options = &asked.options;
    let name = crate::object::name(pod).to_owned();
    let query = query(options, &name)?;
    let container = location::container(pod, options.get("container").unwrap_or_default())?;
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = http::StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let namespace = crate::object::namespace(pod);
    let separator = if query.is_empty() { "" } else { "?" };
    let target = format!("/containerLogs/{namespace}/{name}/{container}{separator}{query}");
    let mut location = agent_of(api, node).await?.with_target(target);
    if options
        .get("insecureSkipTLSVerifyBackend")
        .is_some_and(is_set)
    {
        location.end = End::UnverifiedAgent;
    }
    let request = forward::request(&asked, &location, Body::empty());
    let response = match transport::send(api, &location, request).await {
        Ok(response) => response,
        Err(SendError::Refused(error)) => return Err(error),
        Err(error) => {
            let message = format!("Get {:?}: {error}", location.address());
            return Err(ApiError::new(500, "", message));
        }
    };
    let code = response.status().as_u16();
    if !(200..=206).contains(&code) {
        return Err(fault(code, response, &name).await);
    }
    let body = forward::stream_body(response.into_body(), asked.permit, api.stop.clone());
    let mut answer = Response::new(body);
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    Ok(answer)
}

/// The agent's own words, in the form of the API.
async fn fault(code: u16, response: Response<hyper::body::Incoming>, name: &str) -> ApiError {
    let body = Limited::new(response.into_body(), LONGEST_FAULT).collect();
    let text = match tokio::time::timeout(super::FAULT_TIME, body).await {
        Ok(Ok(body)) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Ok(Err(error)) => return ApiError::internal(error.to_string()),
        Err(_) => return ApiError::internal("the node did not say what is wrong in time"),
    };
    match code {
        400 => ApiError::bad_request(text),
        404 => ApiError::new(
            404,
            "NotFound",
            format!("the server could not find the requested resource ( pods/log {name})"),
        )
        .about("", "pods/log", name),
        500 => ApiError::internal(text),
        code => ApiError::new(code, "", text).about("", "pods/log", name),
    }
}

/// The options in the words of the kubelet, which are nearly the same.
fn query(options: &Options, name: &str) -> Result<String, ApiError> {
    let mut query = Serializer::new(String::new());
    let mut faults = Vec::new();
    for flag in ["follow", "previous", "timestamps"] {
        if options.get(flag).is_some_and(is_set) {
            query.append_pair(flag, "true");
        }
    }
    for (field, least, complaint) in [
        ("sinceSeconds", 1, "must be greater than 0"),
        ("tailLines", 0, "must be greater than or equal to 0"),
        ("limitBytes", 1, "must be greater than 0"),
    ] {
        let Some(text) = options.get(field).filter(|text| !text.is_empty()) else {
            continue;
        };
        let number: i64 = text.parse().map_err(|_| {
            ApiError::bad_request(format!(
                "strconv.ParseInt: parsing {text:?}: invalid syntax"
            ))
        })?;
        if number < least {
            faults.push(FieldError::invalid(&Path::new(field), number, complaint));
        }
        query.append_pair(field, text);
    }
    if let Some(time) = options.get("sinceTime").filter(|time| !time.is_empty()) {
        let time: jiff::Timestamp = time.parse().map_err(|_| {
            ApiError::bad_request(format!("parsing time {time:?}: it is not in RFC 3339"))
        })?;
        if options
            .get("sinceSeconds")
            .is_some_and(|text| !text.is_empty())
        {
            faults.push(FieldError::forbidden(
                &Path::new(""),
                "at most one of `sinceTime` or `sinceSeconds` may be specified",
            ));
        }
        query.append_pair(
            "sinceTime",
            &time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        );
    }
    if faults.is_empty() {
        Ok(query.finish())
    } else {
        Err(ApiError::invalid("", "PodLogOptions", name, &faults))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<String, ApiError> {
        query(&Options::parse(text).unwrap(), "web")
    }

    #[test]
    fn options_of_a_log_reach_the_agent() {
        assert_eq!(
            asked(
                "container=a&follow=true&tailLines=5&timestamps=true&previous=false&limitBytes=9"
            )
            .unwrap(),
            "follow=true&timestamps=true&tailLines=5&limitBytes=9"
        );
        assert_eq!(
            asked("sinceTime=2026-01-02T03:04:05%2B01:00").unwrap(),
            "sinceTime=2026-01-02T02%3A04%3A05Z"
        );
        assert_eq!(asked("").unwrap(), "");
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        assert_eq!(
            asked("tailLines=-1").unwrap_err().message,
            "PodLogOptions \"web\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0"
        );
        assert_eq!(asked("limitBytes=0").unwrap_err().code, 422);
        assert_eq!(asked("tailLines=x").unwrap_err().code, 400);
        assert_eq!(asked("sinceTime=yesterday").unwrap_err().code, 400);
        assert_eq!(
            asked("sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z")
                .unwrap_err()
                .code,
            422
        );
    }
}
