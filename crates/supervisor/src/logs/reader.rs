//! Reads a log, from any time on, and goes on with what is written later, across rotation.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err::File;
use jiff::Timestamp;

use super::{LogLine, generations};

/// As many files as any rotation setting may leave.
const MOST_GENERATIONS: u32 = 100;

/// Which lines are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Query {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Only the last so many.
    pub last: Option<usize>,
}

impl Query {
    fn wants(&self, line: &LogLine) -> bool {
        self.since.is_none_or(|since| line.time >= since)
            && self.until.is_none_or(|until| line.time <= until)
    }
}

/// A place in a log: everything before it has been read.
#[derive(Debug)]
pub struct LogReader {
    path: Utf8PathBuf,
    current: Option<BufReader<File>>,
    /// How far into the current file we are.
    offset: u64,
    partial: Vec<u8>,
}

impl LogReader {
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self {
            path: path.into(),
            current: None,
            offset: 0,
            partial: Vec::new(),
        }
    }

    /// What is there now. `more` then gives what came since.
    pub fn read(&mut self, query: Query) -> std::io::Result<Vec<LogLine>> {
        let mut lines = VecDeque::new();
        let mut keep = |line: LogLine| {
            if query.wants(&line) {
                lines.push_back(line);
                if query.last.is_some_and(|last| lines.len() > last) {
                    lines.pop_front();
                }
            }
        };
        let older: Vec<_> = generations(&self.path, MOST_GENERATIONS)
            .skip(1)
            .take_while(|path| path.exists())
            .collect();
        for path in older.iter().rev() {
            if let Some(file) = open(path)? {
                for line in BufReader::new(file).split(b'\n') {
                    parse(&line?).map(&mut keep);
                }
            }
        }
        self.current = None;
        self.offset = 0;
        for line in self.drain()? {
            keep(line);
        }
        Ok(lines.into())
    }

    /// What was written since the last call, also if the file was put aside meanwhile.
    pub fn more(&mut self) -> std::io::Result<Vec<LogLine>> {
        let mut lines = self.drain()?;
        if self.was_put_aside()? {
            // What we hold open has its last line by now; the new file starts afresh.
            lines.extend(self.drain()?);
            self.current = None;
            self.offset = 0;
            self.partial.clear();
            lines.extend(self.drain()?);
        }
        Ok(lines)
    }

    /// Whether the name now stands for a file that is shorter than what we have read of ours.
    fn was_put_aside(&self) -> std::io::Result<bool> {
        if self.current.is_none() {
            return Ok(false);
        }
        match fs_err::metadata(&self.path) {
            Ok(metadata) => Ok(metadata.len() < self.offset),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn drain(&mut self) -> std::io::Result<Vec<LogLine>> {
        if self.current.is_none() {
            let Some(mut file) = open(&self.path)? else {
                return Ok(Vec::new());
            };
            file.seek(SeekFrom::Start(self.offset))?;
            self.current = Some(BufReader::new(file));
        }
        let mut lines = Vec::new();
        let Some(reader) = &mut self.current else {
            return Ok(lines);
        };
        loop {
            let read = reader.read_until(b'\n', &mut self.partial)?;
            self.offset += read as u64;
            if read == 0 || self.partial.last() != Some(&b'\n') {
                return Ok(lines); // The rest of the line is still to come.
            }
            self.partial.pop();
            lines.extend(parse(&self.partial));
            self.partial.clear();
        }
    }
}

fn open(path: &Utf8Path) -> std::io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn parse(bytes: &[u8]) -> Option<LogLine> {
    LogLine::parse(std::str::from_utf8(bytes).ok()?)
}
