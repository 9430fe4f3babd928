//! The logs of containers, from where people want and for as long as they want.

use axum::{
    body::Body,
    extract::{Path, State},
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use futures::stream;
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;
use transom_runtime::{
    Container, ContainerState,
    logs::{LogError, LogReader, ReadOptions, Stream},
};

use super::{Desk, Refusal, is_set, query};

pub(super) async fn logs(
    State(desk): State<Desk>,
    Path((namespace, pod, name)): Path<(String, String, String)>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let words = query(&uri);
    let options = options(&words, desk.site.options.clock.now())?;
    let object = desk.pod(&namespace, &pod)?;
    if crate::pods::find(&object, &name).is_none() {
        let text = format!("container {name} is not valid for pod {pod}");
        return Err(Refusal::bad(text));
    }
    let containers = desk.containers(&object, &name);
    let previous = is_set(&words, &["previous"]);
    let container = choose(&containers, previous, &pod, &name)?;
    let finished = CancellationToken::new();
    if options.follow {
        let uid = object.metadata.uid.clone().unwrap_or_default();
        tokio::spawn(watch_end(
            desk.clone(),
            uid,
            container.clone(),
            finished.clone(),
        ));
    } else {
        finished.cancel();
    }
    let guard = finished.clone().drop_guard();
    let reader = LogReader::open(&container.log_path, options, finished).await;
    let reader = match reader {
        Ok(reader) => reader,
        // It runs and has not said a word yet.
        Err(LogError::Missing { .. }) => return Ok(text(Body::empty())),
        Err(error) => {
            return Err(Refusal::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                error.to_string(),
            ));
        }
    };
    let pieces = stream::try_unfold((reader, guard), |(mut reader, guard)| async move {
        let piece = reader.next().await?;
        Ok::<_, LogError>(piece.map(|piece| (piece, (reader, guard))))
    });
    Ok(text(Body::from_stream(pieces)))
}

fn text(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/plain")], body).into_response()
}

/// The newest container that ran, or the one before it.
fn choose<'a>(
    all: &'a [Container],
    previous: bool,
    pod: &str,
    name: &str,
) -> Result<&'a Container, Refusal> {
    let ran: Vec<_> = all
        .iter()
        .filter(|one| !matches!(one.state, ContainerState::Created))
        .collect();
    if previous {
        let running = ran
            .first()
            .is_some_and(|one| matches!(one.state, ContainerState::Running { .. }));
        let found = if running || ran.len() > 1 {
            ran.get(1)
        } else {
            None
        };
        let text =
            || format!("previous terminated container \"{name}\" in pod \"{pod}\" not found");
        return found.copied().ok_or_else(|| Refusal::bad(text()));
    }
    let text =
        || format!("container \"{name}\" in pod \"{pod}\" is waiting to start: ContainerCreating");
    ran.first().copied().ok_or_else(|| Refusal::bad(text()))
}

/// Ends a follower once its container has ended or is forgotten.
async fn watch_end(desk: Desk, uid: String, container: Container, finished: CancellationToken) {
    let mut observed = desk.site.observer.subscribe(&uid);
    let ended = observed.wait_for(|sandboxes| {
        let mut all = sandboxes.iter().flat_map(|sandbox| &sandbox.containers);
        let now = all.find(|one| one.id == container.id);
        now.is_none_or(|now| matches!(now.state, ContainerState::Exited(_)))
    });
    tokio::select! {
        _ = ended => finished.cancel(),
        () = finished.cancelled() => {}
    }
}

fn options(words: &[(String, String)], now: Timestamp) -> Result<ReadOptions, Refusal> {
    let word = |name: &str| {
        words
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    };
    let number = |name: &str| -> Result<Option<u64>, Refusal> {
        let Some(value) = word(name) else {
            return Ok(None);
        };
        let parsed = value.parse::<u64>();
        parsed
            .map(Some)
            .map_err(|_| Refusal::bad(format!("invalid {name} {value:?}")))
    };
    let since = match (number("sinceSeconds")?, word("sinceTime")) {
        (Some(seconds), _) => {
            let seconds = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
            Some(now.checked_sub(seconds).unwrap_or(Timestamp::MIN))
        }
        (None, Some(time)) => Some(
            time.parse()
                .map_err(|_| Refusal::bad(format!("invalid sinceTime {time:?}")))?,
        ),
        (None, None) => None,
    };
    Ok(ReadOptions {
        follow: is_set(words, &["follow"]),
        tail: number("tailLines")?,
        since,
        timestamps: is_set(words, &["timestamps"]),
        limit_bytes: number("limitBytes")?,
        stream: match word("stream") {
            Some("Stdout") => Some(Stream::Stdout),
            Some("Stderr") => Some(Stream::Stderr),
            _ => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_query_become_wishes_and_nonsense_is_refused() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let read = |text: &str| options(&query(&format!("/x?{text}").parse().unwrap()), now);
        let wishes =
            read("follow=true&tailLines=5&sinceSeconds=60&timestamps=1&limitBytes=9&stream=Stderr")
                .unwrap();
        assert!(wishes.follow && wishes.timestamps);
        assert_eq!((wishes.tail, wishes.limit_bytes), (Some(5), Some(9)));
        assert_eq!(wishes.since, Some("2026-01-01T00:00:00Z".parse().unwrap()));
        assert_eq!(wishes.stream, Some(Stream::Stderr));
        assert!(read(&format!("sinceSeconds={}", u64::MAX)).is_ok());
        for bad in [
            "tailLines=-1",
            "tailLines=x",
            "sinceTime=yesterday",
            "limitBytes=1e3",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
