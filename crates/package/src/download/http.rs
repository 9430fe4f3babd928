//! One attempt over HTTP. A server may ignore ranges, change its file, lie about lengths or fall
//! silent: each of these ends the attempt, and none of them mixes bytes of two contents.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use url::Url;

use super::attempt::{Attempt, Interruption};
use super::part::{Part, State};
use super::{DownloadError, Downloader, Event, Listener, Request};

/// So much is gathered before it goes to the disk.
const CHUNK: usize = 1 << 20;

/// Why nothing could be read.
pub(super) enum Stop {
    Retry(Interruption),
    Fail(DownloadError),
}

impl From<DownloadError> for Stop {
    fn from(error: DownloadError) -> Self {
        Self::Fail(error)
    }
}

/// What a good answer promises.
struct Promise {
    /// The position of its first byte.
    start: u64,
    total: Option<u64>,
    state: Option<State>,
}

/// What to do with an answer.
enum Verdict {
    Take(Promise),
    /// The part has all bytes already.
    HaveAll,
    /// The part is of no use any more.
    StartAgain,
}

impl Downloader {
    /// Asks for what is missing and appends what comes.
    pub(super) async fn attempt(
        &self,
        request: &Request,
        part: Part,
        listener: Listener<'_>,
    ) -> Attempt {
        let response = match self.ask(&request.url, &part).await {
            Ok(response) => response,
            Err(Stop::Retry(interruption)) => return Attempt::Interrupted(part, interruption),
            Err(Stop::Fail(error)) => return Attempt::Failed(error),
        };
        match self.receive(request, part, response, listener).await {
            Ok(attempt) => attempt,
            Err(error) => Attempt::Failed(error),
        }
    }

    async fn ask(&self, url: &Url, part: &Part) -> Result<Response, Stop> {
        let mut builder = self
            .client
            .get(url.clone())
            .header(header::ACCEPT_ENCODING, "identity");
        if let Some(state) = part.resumable(url) {
            builder = builder
                .header(header::RANGE, format!("bytes={}-", part.length()))
                .header(header::IF_RANGE, state.validator.as_str());
        }
        let response = send(url, builder).await?;
        match response.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                Ok(response)
            }
            status => Err(refusal(url, status, response.headers())),
        }
    }

    async fn receive(
        &self,
        request: &Request,
        part: Part,
        response: Response,
        listener: Listener<'_>,
    ) -> Result<Attempt, DownloadError> {
        let promise = match judge(request, &part, &response) {
            Verdict::Take(promise) => promise,
            Verdict::HaveAll => return Ok(Attempt::Complete(part)),
            Verdict::StartAgain => {
                let part = part.restart().await?.remember(None).await?;
                return Ok(Attempt::Interrupted(part, Interruption::Changed));
            }
        };
        self.check_promise(request, &part, &promise).await?;
        let mut part = part;
        if promise.start == 0 {
            part = part
                .restart()
                .await?
                .remember(promise.state.clone())
                .await?;
        }
        let received = take_body(request, part, &promise, response, listener).await?;
        Ok(match received {
            (mut part, Some(interruption)) => {
                part.mark_resumed();
                Attempt::Interrupted(part, interruption)
            }
            (part, None) => Attempt::Complete(part),
        })
    }

    /// Refuses beforehand what could not end well.
    async fn check_promise(
        &self,
        request: &Request,
        part: &Part,
        promise: &Promise,
    ) -> Result<(), DownloadError> {
        let Some(total) = promise.total else {
            return Ok(());
        };
        if total > request.limit {
            return Err(DownloadError::too_large(&request.url, request.limit));
        }
        if let Some(expected) = request.length.filter(|expected| *expected != total) {
            return Err(DownloadError::announced_length(
                &request.url,
                expected,
                total,
            ));
        }
        self.check_space(request, part, total, promise.start).await
    }
}

/// Reads at most `limit` bytes into memory.
pub(super) async fn read(client: &reqwest::Client, url: &Url, limit: u64) -> Result<Vec<u8>, Stop> {
    let builder = client
        .get(url.clone())
        .header(header::ACCEPT_ENCODING, "identity");
    let response = send(url, builder).await?;
    if response.status() != StatusCode::OK {
        return Err(refusal(url, response.status(), response.headers()));
    }
    let announced = response.content_length();
    if announced.is_some_and(|length| length > limit) {
        return Err(DownloadError::too_large(url, limit).into());
    }
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| {
            let source = error.without_url();
            Stop::Retry(Interruption::Connection { source })
        })?;
        if bytes.len() as u64 + chunk.len() as u64 > limit {
            return Err(DownloadError::too_large(url, limit).into());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

async fn send(url: &Url, builder: reqwest::RequestBuilder) -> Result<Response, Stop> {
    builder.send().await.map_err(|error| {
        // The error would show the address with its secrets.
        let error = error.without_url();
        if error.is_redirect() {
            Stop::Fail(DownloadError::Redirect {
                url: super::shown(url),
                source: Box::new(error),
            })
        } else {
            Stop::Retry(Interruption::Connection { source: error })
        }
    })
}

/// Some refusals pass, others do not.
fn refusal(url: &Url, status: StatusCode, headers: &HeaderMap) -> Stop {
    match status.as_u16() {
        408 | 429 | 500 | 502 | 503 | 504 => Stop::Retry(Interruption::Status {
            status: status.as_u16(),
            asked_pause: asked_pause(headers),
        }),
        404 | 410 => Stop::Fail(DownloadError::not_found(url)),
        status => Stop::Fail(DownloadError::Refused {
            url: super::shown(url),
            status,
        }),
    }
}

/// `Retry-After` in seconds. A date would need the server's clock to be right.
fn asked_pause(headers: &HeaderMap) -> Option<Duration> {
    let seconds = text(headers.get(header::RETRY_AFTER))?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

fn judge(request: &Request, part: &Part, response: &Response) -> Verdict {
    let range = content_range(response.headers());
    match response.status() {
        StatusCode::PARTIAL_CONTENT => match range {
            Some((Some(start), total))
                if start == part.length()
                    && start > 0
                    && total.is_none_or(|total| total >= start) =>
            {
                let known = part.resumable(&request.url).and_then(|s| s.total);
                if total.is_some() && known.is_some() && total != known {
                    return Verdict::StartAgain;
                }
                Verdict::Take(Promise {
                    start,
                    total: total.or(known),
                    state: None,
                })
            }
            _ => Verdict::StartAgain,
        },
        StatusCode::RANGE_NOT_SATISFIABLE => match range {
            Some((None, Some(total))) if total == part.length() && total > 0 => Verdict::HaveAll,
            _ => Verdict::StartAgain,
        },
        _ => {
            let total = response.content_length();
            Verdict::Take(Promise {
                start: 0,
                total,
                state: validator(response.headers())
                    .map(|validator| State::new(&request.url, validator, total)),
            })
        }
    }
}

/// `bytes 5-9/10`, `bytes 5-9/*` or `bytes */10`: the start and the total, where told.
fn content_range(headers: &HeaderMap) -> Option<(Option<u64>, Option<u64>)> {
    let text = text(headers.get(header::CONTENT_RANGE))?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let start = match range {
        "*" => None,
        range => Some(range.split_once('-')?.0.parse().ok()?),
    };
    let total = match total {
        "*" => None,
        total => Some(total.parse().ok()?),
    };
    Some((start, total))
}

/// What tells one content from another: a strong entity tag, or else the date.
fn validator(headers: &HeaderMap) -> Option<String> {
    text(headers.get(header::ETAG))
        .filter(|tag| !tag.starts_with("W/"))
        .or_else(|| text(headers.get(header::LAST_MODIFIED)))
        .map(str::to_owned)
}

fn text(value: Option<&HeaderValue>) -> Option<&str> {
    value?.to_str().ok()
}

/// Appends the body. An interruption keeps what came before it.
async fn take_body(
    request: &Request,
    mut part: Part,
    promise: &Promise,
    response: Response,
    listener: Listener<'_>,
) -> Result<(Part, Option<Interruption>), DownloadError> {
    let mut body = response.bytes_stream();
    let mut gathered = Vec::new();
    let mut interruption = None;
    let mut ended = false;
    while !ended {
        match body.next().await {
            Some(Ok(chunk)) => gathered.extend_from_slice(&chunk),
            Some(Err(error)) => {
                let source = error.without_url();
                interruption = Some(Interruption::Connection { source });
                ended = true;
            }
            None => ended = true,
        }
        if part.length() + gathered.len() as u64 > request.limit {
            return Err(DownloadError::too_large(&request.url, request.limit));
        }
        if gathered.len() >= CHUNK || ended && !gathered.is_empty() {
            part = part.append(std::mem::take(&mut gathered)).await?;
            listener(Event::Progress {
                done: part.length(),
                total: promise.total,
            });
        }
    }
    let found = part.length();
    let short = promise.total.filter(|announced| *announced > found);
    let interruption =
        interruption.or_else(|| short.map(|announced| Interruption::Short { announced, found }));
    Ok((part, interruption))
}
