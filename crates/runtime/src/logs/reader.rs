//! Reads a log for people: without the words around the text, from where they want, for as long as they want.
//!
//! Invariant: entries come in the order they were written, each once, also while the log is rotated under the
//! reader. Entries of files that rotation removed before they were opened are lost.

use std::collections::VecDeque;
use std::io::SeekFrom;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use camino::{Utf8Path, Utf8PathBuf};
use fs_err::tokio::File;
use jiff::{SignedDuration, Timestamp};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::sync::CancellationToken;

use super::tail::{Position, start_of_tail};
use super::{Entry, LONGEST_LINE, LogError, Stream, Tag, files};

/// How often a follower looks whether there is more. No system tells of a growing file in a way that works on all.
const LOOK: Duration = Duration::from_millis(100);
const BLOCK: usize = 32 << 10;
/// A file holds nothing younger than its rotation, but for what its writer wrote until it was told.
const SLACK: SignedDuration = SignedDuration::from_mins(1);
/// How often a reader begins again because the log was rotated while it looked.
const MOST_ATTEMPTS: usize = 10;

/// What of a log is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Go on with what is written from now on.
    pub follow: bool,
    /// Only the last lines.
    pub tail: Option<u64>,
    /// Only what was written then or later.
    pub since: Option<Timestamp>,
    /// Put its time before each line.
    pub timestamps: bool,
    /// End after this many bytes, in the middle of a line if need be.
    pub limit_bytes: Option<u64>,
    /// Only what came from this output.
    pub stream: Option<Stream>,
}

/// The reading end of a log.
#[derive(Debug)]
pub struct LogReader {
    path: Utf8PathBuf,
    options: ReadOptions,
    /// The program has ended: what is there now is all.
    finished: CancellationToken,
    /// Rotated files still to be read, oldest first.
    older: VecDeque<Utf8PathBuf>,
    /// The newest rotation that is known of.
    newest_rotation: Option<Timestamp>,
    current: Option<File>,
    /// Whether the current file is, or was when it was opened, the one at the path.
    is_live: bool,
    /// Bytes of the current file that are no whole line yet.
    held: BytesMut,
    /// The rest of a line that is too long to be an entry is skipped.
    skipping: bool,
    /// Whether the next text of the stream begins a line.
    mid_line: [bool; 2],
    left: Option<u64>,
}

impl LogReader {
    /// Opens the log at `path`. A log that is not there yet is waited for if it is to be followed; the reader ends
    /// when `finished` is cancelled and all was read.
    pub async fn open(
        path: &Utf8Path,
        options: ReadOptions,
        finished: CancellationToken,
    ) -> Result<Self, LogError> {
        let mut reader = Self {
            path: path.to_owned(),
            left: options.limit_bytes,
            options,
            finished,
            older: VecDeque::new(),
            newest_rotation: None,
            current: None,
            is_live: false,
            held: BytesMut::new(),
            skipping: false,
            mid_line: [false; 2],
        };
        for _ in 0..MOST_ATTEMPTS {
            reader.begin().await?;
            // A rotation in between would have been half seen.
            if reader.fresh_rotations().await?.is_empty() {
                break;
            }
        }
        if reader.current.is_none() && !reader.options.follow {
            return Err(LogError::Missing {
                path: path.to_owned(),
            });
        }
        Ok(reader)
    }

    /// Opens the first file that is wanted, at the place that is wanted.
    async fn begin(&mut self) -> Result<(), LogError> {
        let rotated = files::rotated(&self.path).await?;
        self.newest_rotation = rotated.last().map(|last| last.time);
        let since = self.options.since;
        let wanted = rotated
            .into_iter()
            .filter(|file| since.is_none_or(|since| file.time + SLACK >= since));
        let mut paths: Vec<Utf8PathBuf> = wanted.map(|file| file.path).collect();
        paths.push(self.path.clone());
        let start = match self.options.tail {
            Some(lines) => start_of_tail(&paths, lines).await?,
            None => Position::default(),
        };
        self.is_live = start.file + 1 == paths.len();
        paths.pop();
        self.older = paths.into_iter().skip(start.file).collect();
        let first = self.older.pop_front();
        self.current = files::open(first.as_ref().unwrap_or(&self.path)).await?;
        self.is_live &= self.current.is_some();
        if let Some(file) = &mut self.current {
            let sought = file.seek(SeekFrom::Start(start.offset)).await;
            sought.map_err(|source| self.failed(source))?;
        }
        Ok(())
    }

    fn failed(&self, source: std::io::Error) -> LogError {
        LogError::Io {
            action: "read",
            path: self.path.clone(),
            source,
        }
    }

    /// The next piece of text for whoever reads; `None` when there will be no more. The future may be dropped and
    /// `next` called again.
    pub async fn next(&mut self) -> Result<Option<Bytes>, LogError> {
        loop {
            if self.left == Some(0) {
                return Ok(None);
            }
            let text = self.take_lines();
            if !text.is_empty() {
                return Ok(Some(self.within_limit(text)));
            }
            // Asked before reading: what was written before the end is then read for sure.
            let finished = !self.options.follow || self.finished.is_cancelled();
            if self.fill().await? {
                continue;
            }
            if self.advance().await? {
                continue;
            }
            if finished {
                let rest = self.take_torn();
                return Ok((!rest.is_empty()).then(|| self.within_limit(rest)));
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.finished.cancelled() => {}
            }
        }
    }

    /// Reads more of the current file; says whether there was any.
    async fn fill(&mut self) -> Result<bool, LogError> {
        let Some(file) = &mut self.current else {
            return Ok(false);
        };
        self.held.reserve(BLOCK);
        let read = file.read_buf(&mut self.held).await;
        Ok(read.map_err(|source| self.failed(source))? > 0)
    }

    async fn fresh_rotations(&self) -> Result<Vec<files::Rotated>, LogError> {
        let mut rotated = files::rotated(&self.path).await?;
        let known = self.newest_rotation;
        rotated.retain(|file| known.is_none_or(|known| file.time > known));
        Ok(rotated)
    }

    /// The current file is read to its end: goes on to the next if there is one, and says whether anything changed.
    /// Until a file has a successor its writer may still write to it, whatever it is called by now; so it is read
    /// once more after the successor was seen.
    async fn advance(&mut self) -> Result<bool, LogError> {
        if self.older.is_empty() {
            let fresh = self.fresh_rotations().await?;
            if self.is_live && fresh.is_empty() {
                return Ok(false);
            }
            // The first file that was rotated since the live one was opened is that one.
            let successors = usize::from(self.is_live);
            let newest = fresh.last().map(|file| file.time).or(self.newest_rotation);
            if fresh.len() <= successors {
                return self.go_live(fresh.len(), newest).await;
            }
            self.newest_rotation = newest;
            self.is_live = false;
            self.older = fresh
                .into_iter()
                .skip(successors)
                .map(|file| file.path)
                .collect();
        }
        if self.fill().await? {
            return Ok(true);
        }
        while let Some(path) = self.older.pop_front() {
            if let Some(file) = files::open(&path).await? {
                self.switch_to(file, false);
                break;
            }
        }
        Ok(true)
    }

    /// Goes on with the file at the path, if that is the one that follows `known` fresh rotations.
    async fn go_live(&mut self, known: usize, newest: Option<Timestamp>) -> Result<bool, LogError> {
        let Some(file) = files::open(&self.path).await? else {
            return Ok(false);
        };
        if self.fresh_rotations().await?.len() > known || self.fill().await? {
            return Ok(true);
        }
        self.newest_rotation = newest;
        self.switch_to(file, true);
        Ok(true)
    }

    fn switch_to(&mut self, file: File, is_live: bool) {
        self.current = Some(file);
        self.is_live = is_live;
        self.held.clear();
        self.skipping = false;
    }

    /// The text of all whole lines that are held.
    fn take_lines(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
            let line = self.held.split_to(end + 1);
            if !std::mem::take(&mut self.skipping) {
                self.render(&line[..end], &mut text, true);
            }
        }
        if self.held.len() > LONGEST_LINE {
            self.held.clear();
            self.skipping = true;
        }
        text
    }

    /// The text of a last line that its writer did not end.
    fn take_torn(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let line = self.held.split();
        if !self.skipping {
            self.render(&line, &mut text, false);
        }
        text
    }

    fn render(&mut self, line: &[u8], text: &mut Vec<u8>, whole: bool) {
        // What a crash tore is no entry, and says nothing that could be shown.
        let Ok(entry) = Entry::parse(line) else {
            return;
        };
        let unwanted = self
            .options
            .stream
            .is_some_and(|stream| stream != entry.stream)
            || self.options.since.is_some_and(|since| entry.time < since);
        if unwanted {
            return;
        }
        let mid_line = &mut self.mid_line[usize::from(entry.stream == Stream::Stderr)];
        if self.options.timestamps && !*mid_line {
            text.extend_from_slice(entry.written.as_bytes());
            text.push(b' ');
        }
        text.extend_from_slice(entry.text);
        *mid_line = !whole || entry.tag == Tag::Partial;
        if !*mid_line {
            text.push(b'\n');
        }
    }

    fn within_limit(&mut self, mut text: Vec<u8>) -> Bytes {
        if let Some(left) = &mut self.left {
            let allowed = usize::try_from(*left).unwrap_or(usize::MAX);
            text.truncate(allowed);
            *left -= text.len() as u64;
        }
        text.into()
    }
}
