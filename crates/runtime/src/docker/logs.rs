//! What containers say, copied from Docker's log into ours while they run, and to the end when they have ended.
//!
//! Invariant: nothing is written twice and nothing is left out, however often the copying is interrupted: entries keep
//! the times that Docker gave them, and a new copy begins where the log ends.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use camino::Utf8Path;
use hyper::Method;
use jiff::Timestamp;
use tokio::sync::watch;

use super::Inner;
use super::client::{encode, reader};
use super::containers::state;
use super::frames::Frames;
use super::wire::Inspected;
use crate::logs::{LogWriter, Recent, Stream, Tag};
use crate::{ContainerId, ContainerState, RuntimeError};

/// Docker cuts lines into pieces of this length.
const LONGEST_PIECE: usize = 16 << 10;
/// A time as Docker writes it, and a space.
const TIME: usize = 31;
/// More than a piece and its time: what is longer is no entry of Docker's.
const LONGEST_ENTRY: usize = 1 << 20;
/// Between two attempts to copy.
const RETRY: Duration = Duration::from_secs(1);
/// How often the log of a container that has ended is asked for.
const MOST_ATTEMPTS: usize = 3;
/// How long the end of a container waits for its log.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who copies which log.
#[derive(Debug, Default)]
pub(super) struct Logs {
    followers: Mutex<HashMap<String, Follower>>,
}

#[derive(Clone, Debug)]
struct Follower {
    writer: Arc<LogWriter>,
    /// Whether all is copied that will ever be.
    is_done: watch::Receiver<bool>,
    /// Whether somebody waited for that in vain: once is enough.
    is_late: Arc<AtomicBool>,
}

impl Logs {
    fn followers(&self) -> MutexGuard<'_, HashMap<String, Follower>> {
        self.followers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forget_all_but(&self, is_there: impl Fn(&str) -> bool) {
        self.followers().retain(|id, _| is_there(id));
    }
}

impl Inner {
    /// Has the log of a container written from now on, unless it is already.
    pub(super) fn follow_log(
        self: &Arc<Self>,
        one: &Inspected,
        path: &Utf8Path,
    ) -> Result<(), RuntimeError> {
        self.follower(one, path).map(drop)
    }

    fn follower(
        self: &Arc<Self>,
        one: &Inspected,
        path: &Utf8Path,
    ) -> Result<Follower, RuntimeError> {
        if let Some(there) = self.logs.followers().get(&one.id) {
            return Ok(there.clone());
        }
        let failed = |error| RuntimeError::io(format!("open the log {path}"), error);
        let writer = Arc::new(LogWriter::open(path, Timestamp::now).map_err(failed)?);
        let (done, is_done) = watch::channel(false);
        let follower = Follower {
            writer,
            is_done,
            is_late: Arc::default(),
        };
        {
            let mut followers = self.logs.followers();
            if let Some(there) = followers.get(&one.id) {
                return Ok(there.clone());
            }
            followers.insert(one.id.clone(), follower.clone());
        }
        let (inner, writer) = (Arc::clone(self), Arc::clone(&follower.writer));
        let (id, path, is_raw) = (one.id.clone(), path.to_owned(), one.config.tty);
        tokio::spawn(async move {
            let copied = inner.copy_all(&id, &path, &writer, is_raw);
            tokio::select! {
                () = copied => {}
                () = inner.closing.cancelled() => return,
            }
            done.send_replace(true);
        });
        Ok(follower)
    }

    /// Waits until all that a container said is in its log.
    pub(super) async fn finish_log(
        self: &Arc<Self>,
        one: &Inspected,
        path: &Utf8Path,
    ) -> Result<(), RuntimeError> {
        let mut follower = self.follower(one, path)?;
        if follower.is_late.load(Ordering::Relaxed) {
            return Ok(());
        }
        let done = follower.is_done.wait_for(|is_done| *is_done);
        if tokio::time::timeout(PATIENCE, done).await.is_err() {
            follower.is_late.store(true, Ordering::Relaxed);
            tracing::warn!(container = one.id, "docker does not tell the end of a log");
        }
        Ok(())
    }

    pub(super) fn reopen_log(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        let follower = self.logs.followers().get(&id.0).cloned();
        let Some(follower) = follower else {
            let text = format!("container {id} is not running");
            return Err(RuntimeError::Invalid(text));
        };
        let reopened = follower.writer.reopen();
        reopened.map_err(|error| RuntimeError::io("begin a new log", error))
    }

    /// Copies until the container has ended and all is here.
    async fn copy_all(&self, id: &str, path: &Utf8Path, writer: &LogWriter, is_raw: bool) {
        let mut attempts = 0;
        while attempts < MOST_ATTEMPTS {
            let copied = self.copy(id, path, writer, is_raw).await;
            match self.inspect(id).await {
                Ok(None) => return,
                Ok(Some(now)) if matches!(state(&now), ContainerState::Exited(_)) => {
                    if copied.is_ok() {
                        return;
                    }
                    attempts += 1;
                }
                // Docker was away, or has told less than there is.
                Ok(Some(_)) | Err(_) => {}
            }
            if let Err(error) = copied {
                tracing::debug!(container = id, %error, "a log could not be copied");
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn copy(
        &self,
        id: &str,
        path: &Utf8Path,
        writer: &LogWriter,
        is_raw: bool,
    ) -> Result<(), RuntimeError> {
        let failed = |error| RuntimeError::io(format!("copy to the log {path}"), error);
        let recent = Recent::read(path).await;
        let recent = recent.map_err(|error| RuntimeError::Other(error.to_string()))?;
        let begin = recent.since().map_or_else(String::new, |since| {
            let (seconds, part) = (since.as_second(), since.subsec_nanosecond());
            format!("&since={seconds}.{part:09}")
        });
        let request = format!(
            "/containers/{}/logs?follow=1&stdout=1&stderr=1&timestamps=1{begin}",
            encode(id)
        );
        let answer = self.client.stream(Method::GET, &request, Bytes::new(), &[]);
        let answer = answer
            .await
            .map_err(|fault| fault.explain("container", id))?;
        let mut frames = Frames::new(reader(answer), is_raw);
        let mut entries = Entries {
            recent,
            is_raw,
            held: Vec::new(),
        };
        let write =
            |entry: Found<'_>| writer.append(entry.time, entry.stream, entry.tag, entry.text);
        while let Some(piece) = frames.next().await.map_err(failed)? {
            // Whoever closed this runtime may have opened another, which goes on where the log ends by then.
            if self.closing.is_cancelled() {
                return Ok(());
            }
            let written = entries.feed(piece.stream, &piece.bytes, piece.is_last, write);
            written.map_err(failed)?;
        }
        entries.finish(write).map_err(failed)
    }
}

/// Makes entries out of what Docker sends: a time, a space, a piece of a line.
struct Entries {
    recent: Recent,
    is_raw: bool,
    held: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
struct Found<'a> {
    time: Timestamp,
    stream: Stream,
    tag: Tag,
    text: &'a [u8],
}

impl Entries {
    fn feed(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        is_last: bool,
        mut emit: impl FnMut(Found<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.held.extend_from_slice(bytes);
        if self.held.len() > LONGEST_ENTRY {
            return Err(io::Error::other("an entry of docker's log is too long"));
        }
        if !self.is_raw {
            if is_last {
                let held = std::mem::take(&mut self.held);
                self.emit(stream, &held, &mut emit)?;
            }
            return Ok(());
        }
        // With a terminal nothing tells where an entry ends but its own length.
        let mut held = std::mem::take(&mut self.held);
        while let Some(end) = end_of_raw(&held) {
            let rest = held.split_off(end);
            self.emit(stream, &held, &mut emit)?;
            held = rest;
        }
        self.held = held;
        Ok(())
    }

    /// All was sent: what has no end of line is the end of what a terminal showed.
    fn finish(&mut self, mut emit: impl FnMut(Found<'_>) -> io::Result<()>) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return Ok(());
        }
        self.emit(Stream::Stdout, &held, &mut emit)
    }

    fn emit(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        emit: &mut impl FnMut(Found<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let space = bytes.iter().position(|byte| *byte == b' ').unwrap_or(0);
        let time = std::str::from_utf8(&bytes[..space]).ok();
        let Some(time) = time.and_then(|text| text.parse::<Timestamp>().ok()) else {
            return Err(io::Error::other("an entry of docker's log has no time"));
        };
        if self.recent.take(time, stream) {
            return Ok(());
        }
        let (text, tag) = match bytes[space + 1..].split_last() {
            Some((b'\n', text)) => (text, Tag::Full),
            _ => (&bytes[space + 1..], Tag::Partial),
        };
        // A line in the middle would tear ours.
        let mut lines = text.split(|byte| *byte == b'\n').peekable();
        while let Some(text) = lines.next() {
            let tag = if lines.peek().is_some() {
                Tag::Full
            } else {
                tag
            };
            emit(Found {
                time,
                stream,
                tag,
                text,
            })?;
        }
        Ok(())
    }
}

/// Where the first entry ends, once it is there as a whole.
fn end_of_raw(held: &[u8]) -> Option<usize> {
    let window = &held[..held.len().min(TIME + LONGEST_PIECE)];
    match window.iter().position(|byte| *byte == b'\n') {
        Some(newline) => Some(newline + 1),
        None if window.len() == TIME + LONGEST_PIECE => {
            // The end of the line may be just behind a piece that is full.
            let follows = held.get(window.len())?;
            Some(window.len() + usize::from(*follows == b'\n'))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(
        is_raw: bool,
        pieces: &[(Stream, &[u8], bool)],
    ) -> io::Result<Vec<(Stream, Tag, String)>> {
        let mut entries = Entries {
            recent: Recent::default(),
            is_raw,
            held: Vec::new(),
        };
        let mut found = Vec::new();
        for (stream, bytes, is_last) in pieces {
            entries.feed(*stream, bytes, *is_last, |entry| {
                let text = String::from_utf8_lossy(entry.text).into_owned();
                found.push((entry.stream, entry.tag, text));
                Ok(())
            })?;
        }
        entries.finish(|entry| {
            let text = String::from_utf8_lossy(entry.text).into_owned();
            found.push((entry.stream, entry.tag, text));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn frames_become_entries_whole_or_in_parts() {
        let found = fed(
            false,
            &[
                (Stream::Stdout, b"2026-01-01T00:00:00.000000001Z li", false),
                (Stream::Stdout, b"ne\n", true),
                (
                    Stream::Stderr,
                    b"2026-01-01T00:00:00.000000002Z begin",
                    true,
                ),
                (Stream::Stdout, b"2026-01-01T00:00:00.000000003Z \n", true),
            ],
        );
        assert_eq!(
            found.unwrap(),
            [
                (Stream::Stdout, Tag::Full, "line".to_owned()),
                (Stream::Stderr, Tag::Partial, "begin".to_owned()),
                (Stream::Stdout, Tag::Full, String::new()),
            ]
        );
        assert!(fed(false, &[(Stream::Stdout, b"nonsense", true)]).is_err());
        let long = vec![b'x'; LONGEST_ENTRY + 1];
        assert!(fed(false, &[(Stream::Stdout, &long, false)]).is_err());
    }

    #[test]
    fn a_terminal_has_one_stream_whose_long_lines_are_cut_by_their_length() {
        let piece = "a".repeat(LONGEST_PIECE);
        let time = "2026-01-01T00:00:00.000000001Z ";
        let text = format!("{time}short\r\n{time}{piece}{time}rest\r\n{time}$ ");
        let (first, second) = text.as_bytes().split_at(20_000.min(text.len()));
        let pieces = [
            (Stream::Stdout, first, true),
            (Stream::Stdout, second, true),
        ];
        let found = fed(true, &pieces).unwrap();
        let tags: Vec<_> = found
            .iter()
            .map(|(_, tag, text)| (*tag, text.len()))
            .collect();
        assert_eq!(
            tags,
            [
                (Tag::Full, 6),
                (Tag::Partial, LONGEST_PIECE),
                (Tag::Full, 5),
                (Tag::Partial, 2)
            ]
        );
    }
}
