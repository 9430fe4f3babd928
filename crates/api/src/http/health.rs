//! Whether the server is well: alive while a new start would not help it, ready while it can do what it is asked.

use std::time::Duration;

use axum::body::Body;
use http::Response;

use super::{Incoming, respond};
use crate::state::Api;

/// A store that needs longer to name its revision is of no use to anybody.
const PATIENCE: Duration = Duration::from_secs(2);
/// So far may the cache be behind the store.
const DELAY: Duration = Duration::from_secs(2);
const TEXT: &str = "text/plain; charset=utf-8";

/// One thing that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// Who can be asked this answers.
    Ping,
    Store,
    Shutdown,
}

impl Check {
    fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Store => "store",
            Self::Shutdown => "shutdown",
        }
    }

    /// Why it is not well.
    async fn fault(self, endpoint: Endpoint, api: &Api) -> Option<String> {
        match (self, endpoint) {
            (Self::Ping, _) => None,
            // A server whose store is away is not helped by being started again, so that is not a question of
            // life. One whose store or feed has ended is.
            (Self::Store, Endpoint::Live) => lasting_fault(api),
            (Self::Store, _) => match lasting_fault(api) {
                None => store_fault(api).await,
                fault => fault,
            },
            (Self::Shutdown, _) => {
                let is_stopping = api.stop.is_cancelled();
                is_stopping.then(|| "the server is stopping".to_owned())
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Live,
    Ready,
    /// The older name of both.
    Health,
}

impl Endpoint {
    fn name(self) -> &'static str {
        match self {
            Self::Live => "livez",
            Self::Ready => "readyz",
            Self::Health => "healthz",
        }
    }

    fn checks(self) -> &'static [Check] {
        match self {
            Self::Live => &[Check::Ping, Check::Store],
            Self::Ready | Self::Health => &[Check::Ping, Check::Store, Check::Shutdown],
        }
    }
}

/// What a path asks for: all checks, or a single one by its name.
fn asked(path: &str) -> Option<(Endpoint, &'static [Check])> {
    let path = path.trim_end_matches('/').strip_prefix('/')?;
    let mut parts = path.splitn(2, '/');
    let name = parts.next()?;
    let all = [Endpoint::Live, Endpoint::Ready, Endpoint::Health];
    let endpoint = all.into_iter().find(|endpoint| endpoint.name() == name)?;
    let checks = endpoint.checks();
    let Some(wanted) = parts.next() else {
        return Some((endpoint, checks));
    };
    let at = checks.iter().position(|check| check.name() == wanted)?;
    Some((endpoint, &checks[at..=at]))
}

pub(super) fn is_asked(path: &str) -> bool {
    asked(path).is_some()
}

pub(super) async fn answer(api: &Api, request: &Incoming) -> Response<Body> {
    let Some((endpoint, checks)) = asked(&request.path) else {
        return respond::response(404, TEXT, "404 page not found\n".into(), false);
    };
    let query: Vec<_> = url::form_urlencoded::parse(request.query.as_bytes()).collect();
    let is_excluded = |check: Check| {
        let mut excluded = query.iter().filter(|(name, _)| name == "exclude");
        excluded.any(|(_, name)| *name == check.name())
    };
    let mut lines = String::new();
    let mut is_well = true;
    for check in checks {
        let name = check.name();
        if is_excluded(*check) {
            lines.push_str(&["[+]", name, " excluded: ok\n"].concat());
        } else if let Some(fault) = check.fault(endpoint, api).await {
            is_well = false;
            lines.push_str(&["[-]", name, " failed: ", &fault, "\n"].concat());
        } else {
            lines.push_str(&["[+]", name, " ok\n"].concat());
        }
    }
    let is_verbose = query.iter().any(|(name, _)| name == "verbose");
    if is_well && !is_verbose {
        return respond::response(200, TEXT, "ok".into(), false);
    }
    let word = if is_well { "passed" } else { "failed" };
    lines.push_str(&[endpoint.name(), " check ", word, "\n"].concat());
    let code = if is_well { 200 } else { 500 };
    respond::response(code, TEXT, lines.into(), false)
}

/// What does not pass by itself.
pub(crate) fn lasting_fault(api: &Api) -> Option<String> {
    let fault = api.store.health().fault().map(|fault| fault.to_string());
    let starved = || "the server does not hear of the store's changes any more".to_owned();
    fault.or_else(|| api.cache.is_starved().then(starved))
}

/// Asks the store, and waits until the cache has what it says.
async fn store_fault(api: &Api) -> Option<String> {
    let revision = match tokio::time::timeout(PATIENCE, api.store.revision()).await {
        Ok(Ok(revision)) => revision.0,
        Ok(Err(error)) => return Some(error.to_string()),
        Err(_) => return Some("the store does not answer".to_owned()),
    };
    match tokio::time::timeout(DELAY, api.cache.wait_for(revision)).await {
        Ok(Ok(())) => None,
        _ => Some(format!(
            "the cache is at revision {}, the store at {revision}",
            api.cache.revision()
        )),
    }
}
