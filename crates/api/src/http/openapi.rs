//! The documents of `OpenAPI`: made from the registry when somebody asks, kept until the kinds change.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, header};

use super::{Incoming, respond};
use crate::{
    metrics,
    openapi::{Document, Notation, OpenApi, OpenApiResource, OpenApiSubresource},
    registry::{Kind, Kinds, Verbs},
    schema::builtin_name,
    state::Api,
    status::ApiError,
};

/// The documents of the kinds that they were made for.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<Option<(Arc<Kinds>, Arc<OpenApi>)>>);

impl Documents {
    fn of(&self, kinds: &Arc<Kinds>) -> Arc<OpenApi> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*held {
            Some((known, documents)) if Arc::ptr_eq(known, kinds) => Arc::clone(documents),
            older => {
                let resources = resources(kinds);
                let documents = Arc::new(match older {
                    Some((_, documents)) => documents.changed_to(resources),
                    None => OpenApi::new(resources, super::documents::VERSION),
                });
                *held = Some((Arc::clone(kinds), Arc::clone(&documents)));
                documents
            }
        }
    }
}

fn words(verbs: Verbs) -> Vec<String> {
    verbs.iter().map(|verb| verb.as_str().to_owned()).collect()
}

fn type_name(kind: &Kind) -> String {
    match &kind.custom {
        // `example.org` and `v1` make `org.example.v1.Kind`.
        Some(_) => {
            let group: Vec<&str> = kind.group.rsplit('.').collect();
            format!("{}.{}.{}", group.join("."), kind.version, kind.kind)
        }
        None if kind.group == metrics::GROUP => {
            format!(
                "io.k8s.metrics.pkg.apis.metrics.{}.{}",
                kind.version, kind.kind
            )
        }
        None => builtin_name(&kind.group, &kind.version, &kind.kind),
    }
}

fn resources(kinds: &Kinds) -> Vec<OpenApiResource> {
    kinds
        .iter()
        .map(|kind| OpenApiResource {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            plural: kind.plural.clone(),
            namespaced: kind.namespaced,
            verbs: words(kind.verbs),
            subresources: kind
                .subresources
                .iter()
                .map(|sub| subresource(kind, sub))
                .collect(),
            type_name: type_name(kind),
            custom: kind
                .custom
                .as_ref()
                .map(|custom| Arc::clone(&custom.schema))
                .or_else(|| metrics::schema(kind).map(Arc::new)),
        })
        .collect()
}

fn subresource(kind: &Kind, sub: &crate::registry::Subresource) -> OpenApiSubresource {
    let own = (
        kind.group.as_str(),
        kind.version.as_str(),
        kind.kind.as_str(),
    );
    let (group, version, name) = sub.wire.unwrap_or(own);
    OpenApiSubresource {
        name: sub.name.to_owned(),
        verbs: words(sub.verbs),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: name.to_owned(),
        type_name: if sub.wire.is_some() {
            builtin_name(group, version, name)
        } else {
            type_name(kind)
        },
    }
}

/// Answers `/openapi/v2`, `/openapi/v3` and what is below.
pub(super) async fn answer(api: &Api, request: &Incoming) -> Result<Response<Body>, ApiError> {
    let documents = api.documents.of(&api.registry.kinds());
    let path = request.path.trim_end_matches('/');
    if path == "/openapi/v3" {
        let index = documents.index().to_string();
        return Ok(respond::response(
            200,
            "application/json",
            index.into(),
            request.accepts_gzip(),
        ));
    }
    let wanted = path.strip_prefix("/openapi/v3/").map(ToOwned::to_owned);
    let notation = match wanted {
        None if wants_protobuf(request.header("accept").unwrap_or_default()) => Notation::Protobuf,
        _ => Notation::Json,
    };
    let tag = match wanted.as_deref() {
        Some(path) => documents.hash(path).map(|hash| format!("\"{hash}\"")),
        None => Some(format!("\"{}-{notation:?}\"", documents.hash_v2())),
    };
    if tag.is_some() && request.header("if-none-match") == tag.as_deref() {
        return Ok(respond::response(
            304,
            media_type(notation),
            Bytes::new(),
            false,
        ));
    }
    let life = if wanted.is_some() {
        "public, immutable"
    } else {
        "no-cache, private"
    };
    // Writing a document for the first time takes long enough to be in the way of others.
    let built = tokio::task::spawn_blocking(move || match wanted {
        Some(path) => documents.document(&path),
        None => documents.document_v2(notation).map(Some),
    })
    .await
    .map_err(|_| ApiError::internal("the OpenAPI document could not be written"))?;
    let document = built
        .map_err(|error| ApiError::internal(error.to_string()))?
        .ok_or_else(ApiError::no_such_path)?;
    let mut response = send(request, &document, media_type(notation))?;
    let headers = response.headers_mut();
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
        headers.insert(header::ETAG, tag);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(life));
    }
    headers.append(header::VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

/// Whether protobuf comes before JSON in what a client takes. kubectl's name for it is no media type by the book.
fn wants_protobuf(accept: &str) -> bool {
    accept
        .split(',')
        .map(|media| media.split(';').next().unwrap_or_default().trim())
        .find_map(|media| match media {
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
            | "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" => Some(true),
            "application/json" | "application/*" | "*/*" => Some(false),
            _ => None,
        })
        .unwrap_or(false)
}

fn media_type(notation: Notation) -> &'static str {
    match notation {
        Notation::Json => "application/json",
        Notation::Protobuf => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    }
}

fn send(request: &Incoming, document: &Document, media: &str) -> Result<Response<Body>, ApiError> {
    if request.accepts_gzip() {
        let mut response = respond::response(200, media, document.gzip.clone().into(), false);
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        return Ok(response);
    }
    let plain = document
        .plain()
        .map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(respond::response(200, media, plain.into(), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_notation_that_a_client_names_is_taken() {
        for (accept, protobuf) in [
            ("", false),
            ("application/json", false),
            (
                "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
                true,
            ),
            (
                "text/html, application/com.github.proto-openapi.spec.v2.v1.0+protobuf;q=1, */*",
                true,
            ),
            (
                "application/json,application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
                false,
            ),
        ] {
            assert_eq!(wants_protobuf(accept), protobuf, "{accept}");
        }
    }
}
