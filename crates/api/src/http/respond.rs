//! From a verb's reply to an HTTP response. Large answers are put together where nobody waits for their turn.

use std::{io::Write as _, sync::Arc};

use axum::body::Body;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderValue, Response, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    negotiate::{Encoding, Form, View},
    render, wire,
};
use crate::{
    access::limits::Permit,
    cache::Listing,
    object, pipeline,
    registry::Kind,
    state::Api,
    status::ApiError,
    verbs::{Call, Reply, ReplyBody, watch::Events},
};

/// Smaller answers are not worth compressing.
const COMPRESSED_FROM: usize = 128 << 10;

/// Lists from this size on are put together, and compressed, beside the threads that answer everybody.
const HEAVY_FROM: usize = 64 << 10;

pub(crate) async fn reply(
    api: &Api,
    call: &Call,
    reply: Reply,
    accepts_gzip: bool,
) -> Response<Body> {
    let wish = Wish {
        kind: Arc::clone(&call.kind),
        form: call.form,
        include: call.options.include_object.clone(),
        now: api.now(),
        accepts_gzip,
    };
    if !is_heavy(&reply.body) {
        return wish.fulfil(reply);
    }
    let form = call.form;
    let made = tokio::task::spawn_blocking(move || wish.fulfil(reply)).await;
    made.unwrap_or_else(|error| fault(&ApiError::internal(error.to_string()), form))
}

fn is_heavy(body: &ReplyBody) -> bool {
    match body {
        ReplyBody::List(listing, _) => {
            let size: usize = listing.items.iter().map(|item| item.json.len()).sum();
            size >= HEAVY_FROM
        }
        ReplyBody::Cached(_) | ReplyBody::Object(_) | ReplyBody::Other(_) => false,
    }
}

/// In which form a client wants its answer.
struct Wish {
    kind: Arc<Kind>,
    form: Form,
    /// How much of each object comes with its row of a table.
    include: String,
    now: Timestamp,
    accepts_gzip: bool,
}

impl Wish {
    fn fulfil(&self, reply: Reply) -> Response<Body> {
        let media = self.form.encoding.media_type();
        match self.bytes(reply.body) {
            Ok(bytes) => {
                let mut response = response(reply.code, media, bytes, self.accepts_gzip);
                warn(&mut response, &reply.warnings);
                response
            }
            Err(error) => fault(&error, self.form),
        }
    }

    /// Whether items go out as they are cached.
    fn is_plain(&self) -> bool {
        self.form == Form::JSON && self.kind.conversion.is_none()
    }

    fn bytes(&self, body: ReplyBody) -> Result<Bytes, ApiError> {
        match body {
            ReplyBody::Cached(cached) if self.is_plain() => {
                let head = object::type_head(&self.kind.api_version(), &self.kind.kind);
                let mut bytes = Vec::with_capacity(head.len() + cached.json.len());
                bytes.extend_from_slice(head.as_bytes());
                bytes.extend_from_slice(cached.json.get(1..).unwrap_or_default());
                bytes.push(b'\n');
                Ok(bytes.into())
            }
            ReplyBody::Cached(cached) => {
                let mut value = cached.value();
                pipeline::from_storage(&self.kind, &mut value);
                self.one(&value)
            }
            ReplyBody::Object(mut value) => {
                let map = object::as_map(&mut value);
                map.insert("apiVersion".to_owned(), self.kind.api_version().into());
                map.insert("kind".to_owned(), self.kind.kind.clone().into());
                self.one(&value)
            }
            ReplyBody::Other(value) => encode(self.form.encoding, &value),
            ReplyBody::List(listing, next) => self.list(&listing, next.as_deref()),
        }
    }

    fn one(&self, value: &Value) -> Result<Bytes, ApiError> {
        let form = self.form;
        match form.view {
            View::Object => encode(form.encoding, value),
            View::Partial => encode(form.encoding, &render::partial(value, form.beta)),
            View::Table => {
                let metadata = json!({"resourceVersion": value["metadata"]["resourceVersion"]});
                let table = self.table(std::slice::from_ref(value), &metadata);
                encode(form.encoding, &table)
            }
        }
    }

    fn table(&self, values: &[Value], metadata: &Value) -> Value {
        let (include, beta) = (&self.include, self.form.beta);
        render::table(&self.kind, values, metadata, include, true, self.now, beta)
    }

    fn list(&self, listing: &Listing, next: Option<&str>) -> Result<Bytes, ApiError> {
        let (kind, form) = (&self.kind, self.form);
        if self.is_plain() {
            return Ok(render::json_list(kind, listing, next));
        }
        let metadata = render::list_metadata(listing, next);
        let items: Vec<Value> = listing
            .items
            .iter()
            .map(|item| {
                let mut value = item.value();
                pipeline::from_storage(kind, &mut value);
                value
            })
            .collect();
        let value = match form.view {
            View::Table => self.table(&items, &metadata),
            View::Partial => {
                let items: Vec<Value> = items
                    .iter()
                    .map(|item| render::partial(item, form.beta))
                    .collect();
                json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": if form.beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" },
                    "metadata": metadata,
                    "items": items,
                })
            }
            View::Object => json!({
                "kind": kind.list_kind,
                "apiVersion": kind.api_version(),
                "metadata": metadata,
                "items": items,
            }),
        };
        encode(form.encoding, &value)
    }
}

fn encode(encoding: Encoding, value: &Value) -> Result<Bytes, ApiError> {
    let broken =
        |error: String| ApiError::internal(format!("the answer could not be written: {error}"));
    match encoding {
        Encoding::Json => {
            let mut bytes = serde_json::to_vec(value).map_err(|error| broken(error.to_string()))?;
            bytes.push(b'\n');
            Ok(bytes.into())
        }
        Encoding::Yaml => serde_saphyr::to_string(value)
            .map(Bytes::from)
            .map_err(|error| broken(error.to_string())),
        Encoding::Protobuf => wire::encode(value).map(Bytes::from),
    }
}

pub(crate) fn response(code: u16, media: &str, bytes: Bytes, accepts_gzip: bool) -> Response<Body> {
    let is_worth_it = accepts_gzip && bytes.len() >= COMPRESSED_FROM;
    let compressed = if is_worth_it { compress(&bytes) } else { None };
    let is_compressed = compressed.is_some();
    let mut response = Response::new(Body::from(compressed.unwrap_or(bytes)));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    let headers = response.headers_mut();
    if let Ok(media) = HeaderValue::from_str(media) {
        headers.insert(header::CONTENT_TYPE, media);
    }
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    if is_compressed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    response
}

/// `None` if it fails, which writing into memory does not: then the plain bytes are sent.
fn compress(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 6), Compression::fast());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .ok()
        .map(Bytes::from)
}

/// Warnings go to the user of a client, one header each.
fn warn(response: &mut Response<Body>, warnings: &[String]) {
    let mut seen = std::collections::HashSet::new();
    for warning in warnings.iter().filter(|warning| seen.insert(*warning)) {
        let text: String = warning
            .chars()
            .flat_map(|letter| match letter {
                '"' | '\\' => vec!['\\', letter],
                letter if letter.is_control() => vec![' '],
                letter => vec![letter],
            })
            .collect();
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

/// An error as a Status.
pub(crate) fn fault(error: &ApiError, form: Form) -> Response<Body> {
    let status = error.to_status();
    let (media, bytes) = match form.encoding {
        Encoding::Protobuf => match wire::encode(&status) {
            Ok(bytes) => (Encoding::Protobuf.media_type(), bytes.into()),
            Err(_) => ("application/json", Bytes::from(status.to_string())),
        },
        Encoding::Json | Encoding::Yaml => ("application/json", Bytes::from(status.to_string())),
    };
    let mut response = response(error.code, media, bytes, false);
    let retry = error
        .details
        .as_ref()
        .and_then(|details| details.retry_after_seconds);
    if let Some(seconds) = retry {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// A watch. Its place among those that last is given back when the stream ends.
pub(crate) fn events(call: &Call, events: Events, permit: Permit) -> Response<Body> {
    use futures::StreamExt as _;
    let body = Body::from_stream(events.map(move |bytes| {
        let _held = &permit;
        Ok::<_, std::convert::Infallible>(bytes)
    }));
    let mut response = Response::new(body);
    let media = match call.form.encoding {
        Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        Encoding::Json | Encoding::Yaml => "application/json",
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    response
}
