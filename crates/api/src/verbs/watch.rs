//! `watch`: changes as they happen, in a stream that ends by itself after a while.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use tokio::time::{Instant, Interval};

use super::{Call, read::revision};
use crate::{
    cache::{ChangeKind, Recall, Start, TooOld, Watcher},
    http::{events::Encoder, options::VersionMatch},
    state::Api,
    status::ApiError,
};

/// How often a quiet watch is told how far the world has moved.
const BOOKMARKS: Duration = Duration::from_mins(1);
/// A client that wants its watch for longer comes back after this time.
const LONGEST: Duration = Duration::from_hours(24 * 365);
/// Events that are ready are sent together, up to this size.
const CHUNK: usize = 64 << 10;

/// A stream of encoded events.
pub(crate) type Events = std::pin::Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// Begins a watch. What goes wrong after the request was understood is told in the stream, as upstream does.
pub(crate) async fn watch(api: &Api, call: &Call) -> Result<Events, ApiError> {
    let options = &call.options;
    check(call)?;
    let selection = call.selection()?;
    let encoder = Encoder::new(api, call);
    let wanted = revision(&options.resource_version)?;
    let sends_everything = options
        .initial_events
        .unwrap_or(matches!(wanted, None | Some(0)));
    match wanted {
        Some(wanted) if wanted > 0 => {
            if let Err(error) = api.cache.wait_for(wanted).await {
                return Ok(Box::pin(stream::iter([encoder.error(&error)])));
            }
        }
        None => api.catch_up().await?,
        Some(_) => {}
    }
    let start = match wanted {
        _ if sends_everything => Start::Everything,
        Some(wanted) if wanted > 0 => Start::After(wanted),
        _ => Start::After(api.cache.revision()),
    };
    let cache = api.cache_of(&call.kind);
    let mut begun = cache.watch(selection.clone(), start);
    if let (Err(_), Start::After(revision)) = (&begun, start) {
        let recall = Recall {
            store: &*api.store,
            codec: &api.codec,
        };
        if recall.fill(&cache, revision).await {
            begun = cache.watch(selection, start);
        }
    }
    match begun {
        Ok(watcher) => Ok(events(api, call, watcher, encoder)),
        Err(too_old) => Ok(Box::pin(stream::iter([encoder.error(&expired(too_old))]))),
    }
}

fn check(call: &Call) -> Result<(), ApiError> {
    let options = &call.options;
    let invalid = |text: &str| {
        ApiError::new(
            422,
            "Invalid",
            format!("ListOptions.meta.k8s.io \"\" is invalid: {text}"),
        )
    };
    match (options.initial_events, options.version_match) {
        (Some(_), Some(VersionMatch::NotOlderThan))
            if options.bookmarks || options.initial_events == Some(false) =>
        {
            Ok(())
        }
        (Some(true), Some(VersionMatch::NotOlderThan)) => Err(invalid(
            "sendInitialEvents: Forbidden: sendInitialEvents requires setting allowWatchBookmarks to true",
        )),
        (Some(_), _) => Err(invalid(
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )),
        (None, Some(_)) => Err(invalid(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )),
        (None, None) => Ok(()),
    }
}

fn expired(too_old: TooOld) -> ApiError {
    ApiError::expired(format!(
        "too old resource version: {} ({})",
        too_old.requested, too_old.oldest
    ))
}

/// How long this watch lasts: what the client says, or a random time so that not all come back at once.
fn length(api: &Api, call: &Call) -> Duration {
    if let Some(seconds) = call.options.timeout_seconds {
        return Duration::from_secs(seconds).min(LONGEST);
    }
    let shortest = api.settings.watch_time;
    let share = u64::try_from(uuid::Uuid::new_v4().as_u128() % 1000).unwrap_or_default();
    shortest + shortest.mul_f64(f64::from(u32::try_from(share).unwrap_or_default()) / 1000.0)
}

struct Reader {
    watcher: Watcher,
    encoder: Encoder,
    end: Instant,
    bookmarks: Option<Interval>,
    /// The mark that all objects of the start were sent is still to come.
    owes_initial_mark: bool,
    stop: tokio_util::sync::CancellationToken,
    is_over: bool,
}

fn events(api: &Api, call: &Call, watcher: Watcher, encoder: Encoder) -> Events {
    let end = Instant::now() + length(api, call);
    let bookmarks = call.options.bookmarks.then(|| {
        let mut interval = tokio::time::interval_at(Instant::now() + BOOKMARKS, BOOKMARKS);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        interval
    });
    let owes_initial_mark = call.options.initial_events == Some(true) && call.options.bookmarks;
    let stop = api.stop.clone();
    let reader = Reader {
        watcher,
        encoder,
        end,
        bookmarks,
        owes_initial_mark,
        stop,
        is_over: false,
    };
    Box::pin(stream::unfold(reader, |mut reader| async move {
        let bytes = reader.chunk().await?;
        Some((bytes, reader))
    }))
}

impl Reader {
    /// The next bytes to send; `None` at the end.
    async fn chunk(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut chunk = self.start();
        if !chunk.is_empty() {
            return Some(chunk.into());
        }
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            () = tokio::time::sleep_until(self.end) => None,
            () = tick(&mut self.bookmarks) => Some(self.bookmark().unwrap_or_default()),
            sight = self.watcher.next() => {
                let mut sight = sight;
                loop {
                    match sight {
                        Ok(None) => return None,
                        Ok(Some(seen)) => {
                            let bytes = self.encoder.event(&seen);
                            if chunk.is_empty() && bytes.len() > CHUNK / 4 {
                                return Some(bytes);
                            }
                            chunk.extend_from_slice(&bytes);
                        }
                        Err(too_old) => {
                            self.is_over = true;
                            chunk.extend_from_slice(&self.encoder.error(&expired(too_old)));
                            return Some(chunk.into());
                        }
                    }
                    if chunk.len() >= CHUNK {
                        return Some(chunk.into());
                    }
                    match self.watcher.ready() {
                        Ok(Some(next)) => sight = Ok(Some(next)),
                        Ok(None) => return Some(chunk.into()),
                        Err(too_old) => sight = Err(too_old),
                    }
                }
            }
        }
    }

    /// Objects that were there at the start, and the mark behind them.
    fn start(&mut self) -> Vec<u8> {
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK {
            let Some(object) = self.watcher.next_initial() else {
                break;
            };
            chunk.extend_from_slice(&self.encoder.object(ChangeKind::Added, &object));
        }
        if chunk.len() < CHUNK && self.owes_initial_mark {
            self.owes_initial_mark = false;
            chunk.extend_from_slice(&self.encoder.bookmark(self.watcher.started_at, true));
        }
        chunk
    }

    fn bookmark(&mut self) -> Option<Bytes> {
        let revision = self.watcher.progress()?;
        Some(self.encoder.bookmark(revision, false))
    }
}

async fn tick(interval: &mut Option<Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// The beginning of every object of a kind.
pub(crate) fn head(kind: &crate::registry::Kind) -> Arc<str> {
    crate::object::type_head(&kind.api_version(), &kind.kind).into()
}
