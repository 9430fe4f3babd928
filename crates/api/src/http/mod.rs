//! Requests in, responses out: paths, queries, forms, and the way to the verb.

mod backup;
pub(crate) mod body;
mod documents;
pub(crate) mod events;
pub(crate) mod health;
pub mod negotiate;
pub(crate) mod openapi;
pub mod options;
pub mod path;
pub(crate) mod render;
mod respond;
mod wire;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{Router, body::Body, extract::State};
use bytes::Bytes;
use futures::FutureExt as _;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::upgrade::OnUpgrade;

use self::{
    negotiate::Form,
    options::Options,
    path::{ResourcePath, Target},
};
use crate::{
    access::{
        authentication::User,
        limits::{Class, Permit},
    },
    guard, metrics,
    proxy::{self, Asked, Connect},
    registry::{Kind, Verb},
    server::Peer,
    state::Api,
    status::ApiError,
    telemetry::Subject,
    verbs::{self, Call},
};

/// The whole API as a service: for a listener, or for a client in the same process.
pub fn router(api: Api) -> Router {
    Router::new().fallback(handle).with_state(api)
}

/// The same for a client in this process, which is trusted to be `user`.
pub fn router_as(api: Api, user: User) -> Router {
    router(api).layer(axum::Extension(user))
}

async fn handle(State(api): State<Api>, request: Request<Body>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let upgrade = parts.extensions.remove::<OnUpgrade>();
    let form = negotiate::choose(header_text(&parts.headers, header::ACCEPT.as_str()), true)
        .unwrap_or(Form::JSON);
    let peer = parts.extensions.get::<Peer>().cloned();
    let user = parts.extensions.get::<User>().cloned();
    let request = Incoming {
        peer,
        user,
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        host: host(&parts.uri, &parts.headers),
        headers: parts.headers,
    };
    let started = Instant::now();
    let mut subject = Subject::default();
    let answered = unbroken(Box::pin(answer(
        &api,
        &request,
        body,
        upgrade,
        &mut subject,
    )))
    .await;
    let response = match answered {
        Ok(response) => response,
        Err(error) => respond::fault(
            &error,
            Form {
                view: negotiate::View::Object,
                ..form
            },
        ),
    };
    api.telemetry
        .request(&subject, response.status().as_u16(), started.elapsed());
    response
}

/// A fault of ours costs one request its answer, and no connection: other requests share it.
async fn unbroken<T>(work: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| {
            tracing::error!("a request broke off; the panic is above");
            Err(ApiError::internal(
                "this server made a mistake with the request; its log has more",
            ))
        })
}

/// A request without its body.
pub(crate) struct Incoming {
    pub(crate) peer: Option<Peer>,
    /// Somebody in the same process says who they are.
    user: Option<User>,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    /// What the client calls this server.
    pub(crate) host: String,
    pub(crate) headers: HeaderMap,
}

/// HTTP/2 has the host in the address, HTTP/1 in a header.
fn host(uri: &http::Uri, headers: &HeaderMap) -> String {
    uri.authority()
        .map(http::uri::Authority::as_str)
        .or_else(|| header_text(headers, header::HOST.as_str()))
        .unwrap_or_default()
        .to_owned()
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

impl Incoming {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header_text(&self.headers, name)
    }

    fn accepts_gzip(&self) -> bool {
        self.header("accept-encoding")
            .is_some_and(|value| value.contains("gzip"))
    }
}

async fn answer(
    api: &Api,
    request: &Incoming,
    body: Body,
    upgrade: Option<OnUpgrade>,
    subject: &mut Subject,
) -> Result<Response<Body>, ApiError> {
    let user = match &request.user {
        Some(user) => user.clone(),
        None => {
            let guard = &api.guard;
            guard.user(
                api,
                request.peer.as_ref(),
                &request.headers,
                &request.path,
                api.now(),
            )?
        }
    };
    let place = match path::parse(&request.path) {
        Some(Target::Resource(place)) => place,
        target => return plain(api, request, target.as_ref(), user).await,
    };
    let mut kinds = api.registry.kinds();
    if kinds
        .resource(&place.group, &place.version, &place.plural)
        .is_none()
    {
        // It may have been defined by a request that was answered before this one was sent.
        api.catch_up().await?;
        kinds = api.registry.kinds();
    }
    let Some(kind) = kinds.resource(&place.group, &place.version, &place.plural) else {
        return Err(absent(api, request, &place, user));
    };
    if let Some(connect) = kind.subresource(&place.subresource).and_then(Connect::of) {
        let wish = Wish {
            kind,
            place: &place,
            connect,
            user,
        };
        return connected(api, request, wish, body, upgrade, subject).await;
    }
    let options = Options::parse(&request.query)?;
    let verb = match verb(kind, &place, &options, &request.method) {
        Ok(verb) => verb,
        Err(error) if error.code == 404 => return Err(absent(api, request, &place, user)),
        Err(error) => return Err(error),
    };
    let attributes = guard::attributes(user.clone(), kind, &place, verb, &options.field_selector);
    *subject = Subject {
        verb: verb.as_str(),
        group: kind.group.clone(),
        resource: kind.plural.clone(),
        subresource: place.subresource.clone(),
    };
    let class = Class::of(&user, &attributes.target, verb == Verb::Watch);
    let permit = api.gate.enter(&user.name, class).await?;
    api.guard.require(&attributes)?;
    options.check(verb)?;
    let form = negotiate::choose(
        request.header("accept"),
        kind.type_id.is_some() && kind.custom.is_none(),
    )?;
    let bytes = read_body(api, body).await?;
    let call = Call {
        kind: Arc::clone(kind),
        path: place,
        options,
        form,
        user,
        user_agent: request.header("user-agent").unwrap_or_default().to_owned(),
        content_type: request
            .header("content-type")
            .unwrap_or_default()
            .to_owned(),
        body: bytes,
    };
    run(api, request, &call, verb, permit).await
}

/// What is no resource: documents about the server, its health, a backup.
async fn plain(
    api: &Api,
    request: &Incoming,
    target: Option<&Target>,
    user: User,
) -> Result<Response<Body>, ApiError> {
    let attributes = guard::path_attributes(user, &request.method, &request.path);
    let is_health = health::is_asked(&request.path) && request.method == Method::GET;
    // Whoever looks whether the server is well must hear so when it has much to do, too.
    let permit = if is_health {
        None
    } else {
        let user = &attributes.user;
        let class = Class::of(user, &attributes.target, false);
        Some(api.gate.enter(&user.name, class).await?)
    };
    if !api.guard.authenticator.anonymous.allow(&request.path) {
        api.guard.require(&attributes)?;
    }
    if is_health {
        return Ok(health::answer(api, request).await);
    }
    if request.path == "/transom/backup" {
        // It has a place of its own, for as long as it is sent.
        drop(permit);
        return backup::answer(api, request, &attributes.user).await;
    }
    if request.path.starts_with("/openapi/") {
        return openapi::answer(api, request).await;
    }
    let target = target.ok_or_else(ApiError::no_such_path)?;
    documents::answer(api, request, target)
}

/// The answer about a resource that there is not: whoever may not ask learns no more than that.
fn absent(api: &Api, request: &Incoming, place: &ResourcePath, user: User) -> ApiError {
    let is_watch = Options::parse(&request.query).is_ok_and(|options| options.watch);
    let Some(verb) = method_verb(&request.method, !place.name.is_empty(), is_watch) else {
        return ApiError::no_such_path();
    };
    let attributes = guard::unknown_attributes(user, place, verb);
    let refused = api.guard.require(&attributes).err();
    refused.unwrap_or_else(ApiError::no_such_path)
}

/// Somebody wants to reach something that runs.
struct Wish<'a> {
    kind: &'a Kind,
    place: &'a ResourcePath,
    connect: Connect,
    user: User,
}

async fn connected(
    api: &Api,
    request: &Incoming,
    wish: Wish<'_>,
    body: Body,
    upgrade: Option<OnUpgrade>,
    subject: &mut Subject,
) -> Result<Response<Body>, ApiError> {
    let Wish {
        kind,
        place,
        connect,
        user,
    } = wish;
    let verb = connect.verb(&request.method).ok_or_else(not_allowed)?;
    if place.name.is_empty() || kind.namespaced == place.namespace.is_empty() {
        return Err(ApiError::no_such_path());
    }
    let options = connect.options(&request.query)?;
    *subject = Subject {
        verb: "connect",
        group: kind.group.clone(),
        resource: kind.plural.clone(),
        subresource: place.subresource.clone(),
    };
    let attributes = guard::connect_attributes(user.clone(), kind, place, verb);
    let permit = api.gate.enter(&user.name, Class::Lasting).await?;
    api.guard.require(&attributes)?;
    let asked = Asked {
        connect,
        request,
        place,
        options,
        body,
        upgrade,
        permit,
    };
    proxy::answer(api, asked).await
}

/// All of a body. Whoever sends it must get on with it: they have a place that others wait for.
async fn read_body(api: &Api, body: Body) -> Result<Bytes, ApiError> {
    let limited = Limited::new(body, api.settings.body_limit);
    let collected = tokio::time::timeout(api.settings.body_time, limited.collect())
        .await
        .map_err(|_| {
            ApiError::new(
                408,
                "Timeout",
                "the body of the request did not come in time",
            )
        })?;
    let body = collected.map_err(|error| body_fault(api, &*error))?;
    Ok(body.to_bytes())
}

fn body_fault(api: &Api, error: &(dyn std::error::Error + Send + Sync + 'static)) -> ApiError {
    if error.is::<http_body_util::LengthLimitError>() {
        return ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "Request entity too large: limit is {}",
                api.settings.body_limit
            ),
        );
    }
    ApiError::bad_request("the body of the request ended early")
}

async fn run(
    api: &Api,
    request: &Incoming,
    call: &Call,
    verb: Verb,
    permit: Permit,
) -> Result<Response<Body>, ApiError> {
    let is_sub = !call.path.subresource.is_empty();
    let reply = match verb {
        Verb::Watch => {
            let events = verbs::watch::watch(api, call).await?;
            return Ok(respond::events(call, events, permit));
        }
        _ if is_sub
            && !matches!(
                call.path.subresource.as_str(),
                "status" | "approval" | "finalize" | "ephemeralcontainers" | "resize"
            ) =>
        {
            verbs::subresource::run(api, call, verb).await?
        }
        Verb::Create if call.kind.ephemeral => verbs::review::create(api, call)?,
        Verb::Get if call.kind.group == metrics::GROUP => metrics::get(api, call).await?,
        Verb::List if call.kind.group == metrics::GROUP => metrics::list(api, call).await?,
        Verb::Get => verbs::read::get(api, call).await?,
        Verb::List => verbs::read::list(api, call).await?,
        Verb::Create => verbs::create::create(api, call).await?,
        Verb::Update => verbs::update::update(api, call).await?,
        Verb::Patch => verbs::patch::patch(api, call).await?,
        Verb::Delete => verbs::delete::delete(api, call).await?,
        Verb::DeleteCollection => verbs::delete::delete_collection(api, call).await?,
    };
    Ok(respond::reply(api, call, reply, request.accepts_gzip()).await)
}

/// What a method means, on one object or on many.
fn method_verb(method: &Method, is_one: bool, is_watch: bool) -> Option<Verb> {
    Some(match (method.as_str(), is_one) {
        ("GET" | "HEAD", _) if is_watch => Verb::Watch,
        ("GET" | "HEAD", true) => Verb::Get,
        ("GET" | "HEAD", false) => Verb::List,
        ("POST", _) => Verb::Create,
        ("PUT", true) => Verb::Update,
        ("PATCH", true) => Verb::Patch,
        ("DELETE", true) => Verb::Delete,
        ("DELETE", false) => Verb::DeleteCollection,
        _ => return None,
    })
}

/// What a method on a path means.
fn verb(
    kind: &Kind,
    place: &ResourcePath,
    options: &Options,
    method: &Method,
) -> Result<Verb, ApiError> {
    let is_one = !place.name.is_empty();
    let verb = method_verb(method, is_one, options.watch).ok_or_else(not_allowed)?;
    if place.subresource.is_empty() {
        let is_allowed = kind.verbs.contains(&verb)
            && (verb != Verb::Create || !is_one)
            // A namespaced object has no path outside of its namespace.
            && (!kind.namespaced || !place.namespace.is_empty() || matches!(verb, Verb::List | Verb::Watch))
            && (kind.namespaced || place.namespace.is_empty());
        return if is_allowed {
            Ok(verb)
        } else {
            Err(not_allowed())
        };
    }
    let subresource = kind
        .subresource(&place.subresource)
        .ok_or_else(ApiError::no_such_path)?;
    if subresource.verbs.contains(&verb) {
        Ok(verb)
    } else {
        Err(not_allowed())
    }
}

fn not_allowed() -> ApiError {
    let mut error = ApiError::new(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    );
    error.details = Some(Box::default());
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer_like_others() {
        let broken = unbroken(async {
            let nothing: Option<u8> = std::hint::black_box(None);
            Ok(nothing.expect("on purpose"))
        });
        let error = broken.await.unwrap_err();
        assert_eq!((error.code, error.reason), (500, "InternalError"));
        assert_eq!(unbroken(async { Ok(7) }).await, Ok(7));
    }
}
