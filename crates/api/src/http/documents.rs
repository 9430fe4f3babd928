//! What the server says about itself: discovery, version, health, metrics.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, header};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Incoming, negotiate, path::Target, respond};
use crate::{
    access::authentication::discovery as oidc, discovery, registry::Kinds, state::Api,
    status::ApiError,
};

pub(crate) fn answer(
    api: &Api,
    request: &Incoming,
    target: &Target,
) -> Result<Response<Body>, ApiError> {
    let kinds = api.registry.kinds();
    match target {
        Target::Groups { core } => Ok(groups(&kinds, request, *core)),
        Target::Group(group) => {
            let value = discovery::api_group(&kinds, group).ok_or_else(ApiError::no_such_path)?;
            Ok(document(request, &value))
        }
        Target::Version { group, version } => {
            let value = discovery::api_resources(&kinds, group, version)
                .ok_or_else(ApiError::no_such_path)?;
            Ok(document(request, &value))
        }
        Target::Resource(_) | Target::Other => other(api, request, &kinds),
    }
}

fn json_response(request: &Incoming, value: &Value) -> Response<Body> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    respond::response(
        200,
        "application/json",
        bytes.into(),
        request.accepts_gzip(),
    )
}

fn document(request: &Incoming, value: &Value) -> Response<Body> {
    json_response(request, value)
}

/// `/api` and `/apis`: all groups with their resources at once for those who understand that.
fn groups(kinds: &Kinds, request: &Incoming, core: bool) -> Response<Body> {
    let accept = request.header("accept").unwrap_or_default();
    let wanted = negotiate::media_ranges(accept)
        .into_iter()
        .find_map(|range| {
            if range.media != "application/json" {
                return None;
            }
            match (
                range.parameter("as"),
                range.parameter("g"),
                range.parameter("v"),
            ) {
                (None, _, _) => Some(None),
                (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) => {
                    Some(Some("v2"))
                }
                (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2beta1")) => {
                    Some(Some("v2beta1"))
                }
                _ => None,
            }
        });
    let (value, media) = match wanted.flatten() {
        Some(version) => (
            discovery::aggregated(kinds, core, version),
            format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"),
        ),
        None if core => (
            discovery::api_versions(kinds, ""),
            "application/json".to_owned(),
        ),
        None => (discovery::api_groups(kinds), "application/json".to_owned()),
    };
    let bytes = Bytes::from(value.to_string());
    tagged(request, &media, bytes)
}

/// A document that clients keep and ask for again by its hash.
fn tagged(request: &Incoming, media: &str, bytes: Bytes) -> Response<Body> {
    let hash = hash(&bytes);
    let tag = format!("\"{hash}\"");
    if request.header("if-none-match") == Some(tag.as_str()) {
        let mut response = respond::response(304, media, Bytes::new(), false);
        set(&mut response, header::ETAG.as_str(), &tag);
        return response;
    }
    let mut response = respond::response(200, media, bytes, request.accepts_gzip());
    set(&mut response, header::ETAG.as_str(), &tag);
    set(&mut response, header::VARY.as_str(), "Accept");
    set(&mut response, header::CACHE_CONTROL.as_str(), "public");
    response
}

fn set(response: &mut Response<Body>, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// A short name of some bytes.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            use std::fmt::Write as _;
            let _ = write!(text, "{byte:02X}");
            text
        })
}

fn other(api: &Api, request: &Incoming, kinds: &Kinds) -> Result<Response<Body>, ApiError> {
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        return Err(super::not_allowed());
    }
    let path = request.path.trim_end_matches('/');
    match path {
        "/version" => Ok(json_response(request, &version())),
        "/metrics" => metrics(api),
        "/.well-known/openid-configuration" => {
            let tokens = &api.guard.authenticator.tokens;
            Ok(json_response(
                request,
                &oidc::configuration(tokens.issuer(), tokens.issuer()),
            ))
        }
        "/openid/v1/jwks" => {
            let keys = api.guard.keys()?;
            let bytes = oidc::keys(&keys).to_string().into();
            Ok(respond::response(
                200,
                "application/jwk-set+json",
                bytes,
                false,
            ))
        }
        "" => Ok(json_response(request, &paths(kinds))),
        _ => Err(ApiError::no_such_path()),
    }
}

/// The version of Kubernetes whose API this is, with our own behind it.
pub(super) const VERSION: &str = concat!("v1.36.0+transom.", env!("CARGO_PKG_VERSION"));

/// The version of the API that is served, as clients compare it with their own.
fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": VERSION,
        // Clients read these as texts and compare none of them; `transom version` has our own.
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// The architecture of this program, in the words of Kubernetes.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn metrics(api: &Api) -> Result<Response<Body>, ApiError> {
    let text = api
        .telemetry
        .render(&api.cache, &api.gate)
        .map_err(|_| ApiError::internal("the metrics could not be written"))?;
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(respond::response(200, media, text.into(), false))
}

/// All paths that can be asked for.
fn paths(kinds: &Kinds) -> Value {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    for (group, versions) in kinds.groups() {
        if !group.is_empty() {
            paths.push(format!("/apis/{group}"));
        }
        for (version, _) in versions {
            paths.push(if group.is_empty() {
                format!("/api/{version}")
            } else {
                format!("/apis/{group}/{version}")
            });
        }
    }
    for path in [
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ] {
        paths.push(path.to_owned());
    }
    paths.sort();
    json!({"paths": paths})
}
