//! The way to what runs: logs, shells and ports of pods through their node's agent, and plain HTTP to nodes,
//! pods and services.
//!
//! The server decides who may, finds the place, and then hands bytes on. It changes nothing but links.

mod forward;
mod location;
mod log;
mod rewrite;
mod service;
mod transport;

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use http::{HeaderValue, Method, Response, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::upgrade::OnUpgrade;
use serde_json::Value;

use self::{
    location::{Location, Named},
    rewrite::Link,
    transport::SendError,
};
use crate::{
    access::limits::Permit,
    cache::Cached,
    http::{Incoming, options::Options, path::ResourcePath},
    registry::Subresource,
    state::Api,
    status::ApiError,
};

pub(crate) use self::{
    location::{agent, is_global_unicast},
    transport::send,
};

/// A connection on which nothing moves for so long is given up, as upstream does.
pub(crate) const IDLE: Duration = Duration::from_hours(4);
/// How long an agent may take to say what is wrong.
const FAULT_TIME: Duration = Duration::from_secs(10);
/// Longer pages are handed on with the links that they have.
const LONGEST_PAGE: usize = 4 << 20;

/// What is wanted of something that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connect {
    Log,
    Exec,
    Attach,
    PortForward,
    Proxy,
}

impl Connect {
    pub(crate) fn of(subresource: &Subresource) -> Option<Self> {
        match subresource.name {
            "log" => Some(Self::Log),
            "exec" => Some(Self::Exec),
            "attach" => Some(Self::Attach),
            "portforward" => Some(Self::PortForward),
            "proxy" => Some(Self::Proxy),
            _ => None,
        }
    }

    /// The verb that somebody must be permitted for a method; `None` if the method is not allowed.
    pub(crate) fn verb(self, method: &Method) -> Option<&'static str> {
        match (self, method.as_str()) {
            (Self::Log | Self::Proxy, "GET" | "HEAD") => Some("get"),
            // Whoever runs a program changes something, whatever the method is.
            (Self::Exec | Self::Attach | Self::PortForward, "GET" | "POST") => Some("create"),
            (Self::Proxy, "POST") => Some("create"),
            (Self::Proxy, "PUT") => Some("update"),
            (Self::Proxy, "PATCH") => Some("patch"),
            (Self::Proxy, "DELETE") => Some("delete"),
            // Upstream has no word for it, so only a rule for all verbs permits it.
            (Self::Proxy, "OPTIONS") => Some(""),
            _ => None,
        }
    }

    /// What a query means; an application's own is none of our business.
    pub(crate) fn options(self, query: &str) -> Result<Options, ApiError> {
        match self {
            Self::Proxy => Ok(Options::default()),
            _ => Options::parse(query),
        }
    }
}

/// A request that was permitted.
pub(crate) struct Asked<'a> {
    pub(crate) connect: Connect,
    pub(crate) request: &'a Incoming,
    pub(crate) place: &'a ResourcePath,
    pub(crate) options: Options,
    pub(crate) body: Body,
    pub(crate) upgrade: Option<OnUpgrade>,
    pub(crate) permit: Permit,
}

pub(crate) async fn answer(api: &Api, asked: Asked<'_>) -> Result<Response<Body>, ApiError> {
    let place = asked.place;
    let action = match asked.connect {
        Connect::Proxy => return proxy(api, asked).await,
        Connect::Log => {
            let pod = find(api, "pods", &place.namespace, &place.name).await?;
            return log::answer(api, asked, &pod.value()).await;
        }
        Connect::Exec => "exec",
        Connect::Attach => "attach",
        Connect::PortForward => "portforward",
    };
    let pod = find(api, "pods", &place.namespace, &place.name).await?;
    let pod = pod.value();
    let target = if action == "portforward" {
        location::port_target(&pod, &asked.options)
    } else {
        location::stream_target(&pod, action, &asked.options)?
    };
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        return Err(ApiError::bad_request(format!(
            "pod {} does not have a host assigned",
            place.name
        )));
    }
    let location = agent_of(api, node).await?.with_target(target);
    let protocol = forward::upgrade_wish(&asked.request.headers)
        .ok_or_else(|| ApiError::bad_request("Upgrade request required"))?;
    forward::upgrade(api, asked, &location, protocol).await
}

/// An object of the core group.
async fn find(
    api: &Api,
    plural: &str,
    namespace: &str,
    name: &str,
) -> Result<Arc<Cached>, ApiError> {
    let kinds = api.registry.kinds();
    let kind = kinds
        .resource("", "v1", plural)
        .ok_or_else(ApiError::no_such_path)?;
    api.find(kind, namespace, name)
        .await?
        .ok_or_else(|| ApiError::not_found("", plural, name))
}

async fn agent_of(api: &Api, node: &str) -> Result<Location, ApiError> {
    agent(&find(api, "nodes", "", node).await?.value())
}

async fn proxy(api: &Api, mut asked: Asked<'_>) -> Result<Response<Body>, ApiError> {
    let place = asked.place;
    let (prefix, rest) = split_path(&asked.request.path, place);
    let location = locate(api, place).await?;
    let query = &asked.request.query;
    let question = if query.is_empty() { "" } else { "?" };
    let location = location.with_target(format!(
        "/{}{question}{query}",
        rest.trim_start_matches('/')
    ));
    if let Some(protocol) = forward::upgrade_wish(&asked.request.headers) {
        return forward::upgrade(api, asked, &location, protocol).await;
    }
    let method = &asked.request.method;
    if rest.is_empty() && (method == Method::GET || method == Method::HEAD) {
        return Ok(moved(&format!("{}/{question}{query}", asked.request.path)));
    }
    let body = std::mem::take(&mut asked.body);
    let mut request = forward::request(&asked, &location, body);
    let headers = request.headers_mut();
    if let Ok(address) = HeaderValue::from_str(&asked.request.path) {
        headers.insert("x-forwarded-uri", address);
    }
    if let Ok(host) = HeaderValue::from_str(&asked.request.host) {
        headers.insert(header::HOST, host);
    }
    // Links in a page are rewritten, so it must be readable.
    headers.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
    let response = match send(api, &location, request).await {
        Ok(response) => response,
        Err(SendError::Refused(error)) => return Err(error),
        Err(error) => {
            return Err(ApiError::unavailable(format!(
                "error trying to reach service: {error}"
            )));
        }
    };
    let source = location.authority();
    let link = Link {
        prefix,
        source: &source,
        asked: &asked.request.host,
    };
    handed_on(api, response, &link, asked.permit).await
}

/// The path up to the proxy, and what follows.
fn split_path<'a>(path: &'a str, place: &ResourcePath) -> (&'a str, &'a str) {
    // `api`, `v1`, the resource, the name and `proxy`; and where the namespace is, two more.
    let segments = if place.namespace.is_empty() { 5 } else { 7 };
    let start = path.len() - path.trim_start_matches('/').len();
    let slashes = path.match_indices('/').filter(|(at, _)| *at >= start);
    match slashes.map(|(at, _)| at).nth(segments - 1) {
        Some(end) => path.split_at(end),
        None => (path, ""),
    }
}

async fn locate(api: &Api, place: &ResourcePath) -> Result<Location, ApiError> {
    match place.plural.as_str() {
        "nodes" => {
            let named = Named::parse(&place.name, "node")?;
            let agent = agent_of(api, named.name).await?;
            if named.port.is_empty() || named.port == agent.port.to_string() {
                return Ok(agent);
            }
            Ok(Location {
                end: named.end(),
                port: named.port_number()?,
                ..agent
            })
        }
        "services" => {
            let named = Named::parse(&place.name, "service")?;
            service::locate(api, &place.namespace, &named, &place.name).await
        }
        _ => {
            let named = Named::parse(&place.name, "pod")?;
            let pod = find(api, "pods", &place.namespace, named.name).await?;
            let pod: Value = pod.value();
            location::pod(&pod, &named)
        }
    }
}

fn moved(to: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = http::StatusCode::MOVED_PERMANENTLY;
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

/// The answer, with addresses that are right for the client.
async fn handed_on(
    api: &Api,
    mut response: Response<hyper::body::Incoming>,
    link: &Link<'_>,
    permit: Permit,
) -> Result<Response<Body>, ApiError> {
    let headers = response.headers();
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let is_page = text(header::CONTENT_TYPE)
        .is_some_and(|media| media.trim_start().starts_with("text/html"))
        && text(header::CONTENT_ENCODING).is_none_or(|coding| coding == "identity");
    let size = text(header::CONTENT_LENGTH).and_then(|size| size.parse::<usize>().ok());
    let new_place = text(header::LOCATION).and_then(|place| link.rewrite(place));
    let redirects = headers.contains_key(header::LOCATION);
    if let Some(place) = new_place
        && let Ok(place) = HeaderValue::from_str(&place)
    {
        response.headers_mut().insert(header::LOCATION, place);
    }
    // A page of unknown length may never end.
    let is_short = size.is_some_and(|size| size > 0 && size <= LONGEST_PAGE);
    if redirects || !is_page || !is_short {
        return Ok(forward::streamed(response, permit, api.stop.clone()));
    }
    page(response, link).await
}

async fn page(
    response: Response<hyper::body::Incoming>,
    link: &Link<'_>,
) -> Result<Response<Body>, ApiError> {
    let broken =
        |why: String| ApiError::unavailable(format!("error trying to reach service: {why}"));
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, LONGEST_PAGE).collect();
    let body = tokio::time::timeout(IDLE, body)
        .await
        .map_err(|_| broken("the page did not come in time".to_owned()))?
        .map_err(|error| broken(error.to_string()))?
        .to_bytes();
    let bytes = match std::str::from_utf8(&body) {
        // A HEAD has no page.
        Ok("") => body,
        Ok(text) => link.page(text).into(),
        Err(_) => body,
    };
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = parts.status;
    *answer.headers_mut() = parts.headers;
    for name in [header::TRANSFER_ENCODING, header::CONNECTION] {
        answer.headers_mut().remove(name);
    }
    if !bytes.is_empty() {
        answer
            .headers_mut()
            .insert(header::CONTENT_LENGTH, bytes.len().into());
        *answer.body_mut() = Body::from(bytes);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_behind_the_proxy_stays_as_it_was_written() {
        let node = ResourcePath::default();
        let pod = ResourcePath {
            namespace: "n".to_owned(),
            ..ResourcePath::default()
        };
        for (place, path, expected) in [
            (
                &node,
                "/api/v1/nodes/a/proxy",
                ("/api/v1/nodes/a/proxy", ""),
            ),
            (
                &node,
                "/api/v1/nodes/a/proxy/",
                ("/api/v1/nodes/a/proxy", "/"),
            ),
            (
                &pod,
                "/api/v1/namespaces/n/pods/https:p:1/proxy/a%2Fb//c/",
                ("/api/v1/namespaces/n/pods/https:p:1/proxy", "/a%2Fb//c/"),
            ),
        ] {
            assert_eq!(split_path(path, place), expected);
        }
    }

    #[test]
    fn running_a_program_is_creating_whatever_the_method() {
        let get = Method::GET;
        assert_eq!(Connect::Exec.verb(&get), Some("create"));
        assert_eq!(Connect::Log.verb(&get), Some("get"));
        assert_eq!(Connect::Log.verb(&Method::POST), None);
        assert_eq!(Connect::Proxy.verb(&Method::PATCH), Some("patch"));
        assert_eq!(Connect::Attach.verb(&Method::DELETE), None);
    }
}
