//! Writes the log of one container.
//!
//! Invariant: an entry is written by one call, and every entry begins at the begin of a line, also after a crash
//! that tore the one before.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err::{File, OpenOptions};
use jiff::Timestamp;

use super::{Splitter, Stream, Tag, render_entry};

/// The writing end of a log. Threads that carry the two outputs share it.
pub struct LogWriter {
    path: Utf8PathBuf,
    now: fn() -> Timestamp,
    state: Mutex<State>,
}

struct State {
    file: File,
    stdout: Splitter,
    stderr: Splitter,
    /// Reused, so that writing allocates nothing.
    lines: Vec<u8>,
}

impl fmt::Debug for LogWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LogWriter")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl LogWriter {
    /// Goes on with the log at `path`, or begins it. `now` gives entries their times.
    pub fn open(path: &Utf8Path, now: fn() -> Timestamp) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            now,
            state: Mutex::new(State {
                file: open(path)?,
                stdout: Splitter::default(),
                stderr: Splitter::default(),
                lines: Vec::new(),
            }),
        })
    }

    /// Writes every line that is complete now. The rest waits for more, but never for more than a piece.
    pub fn write(&self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        self.with_entries(stream, |splitter, emit| splitter.feed(bytes, emit))
    }

    /// The stream has ended: writes what has no end of line.
    pub fn finish(&self, stream: Stream) -> io::Result<()> {
        self.with_entries(stream, |splitter, emit| splitter.finish(emit))
    }

    /// Writes an entry that has its time already, because another took it from the program.
    pub fn append(&self, time: Timestamp, stream: Stream, tag: Tag, text: &[u8]) -> io::Result<()> {
        let mut guard = self.state();
        let State { file, lines, .. } = &mut *guard;
        lines.clear();
        render_entry(lines, time, stream, tag, text);
        file.write_all(lines)
    }

    /// Begins a new file at the path, because somebody has renamed the old one. If there is a file at the path,
    /// goes on with that.
    pub fn reopen(&self) -> io::Result<()> {
        let mut state = self.state();
        state.file = open(&self.path)?;
        Ok(())
    }

    fn with_entries(
        &self,
        stream: Stream,
        split: impl FnOnce(&mut Splitter, &mut dyn FnMut(Tag, &[u8])),
    ) -> io::Result<()> {
        let mut guard = self.state();
        let State {
            file,
            stdout,
            stderr,
            lines,
        } = &mut *guard;
        let splitter = match stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        let time = (self.now)();
        lines.clear();
        split(splitter, &mut |tag, text| {
            render_entry(lines, time, stream, tag, text);
        });
        if lines.is_empty() {
            return Ok(());
        }
        file.write_all(lines)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whatever panicked, the file can still be appended to.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(path: &Utf8Path) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    if is_torn(&mut file)? {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// Whether the last line has no end: its writer died over it.
fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != [b'\n'])
}
