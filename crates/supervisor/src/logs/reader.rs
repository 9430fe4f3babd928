//! Reads a log, from any time on, and goes on with what is written later, across rotation.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read as _};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err::File;
use jiff::Timestamp;

use super::{LogLine, generations};

/// As many files as any rotation setting may leave.
const MOST_GENERATIONS: u32 = 100;

/// How much of a file's beginning tells it from all others: its first line begins with the time.
const FINGERPRINT: usize = 48;

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
    current: Option<Current>,
}

/// The file that is being written, as far as we have read it.
#[derive(Debug)]
struct Current {
    reader: BufReader<File>,
    fingerprint: Vec<u8>,
    /// A line of which the end has not been written yet.
    partial: Vec<u8>,
}

impl LogReader {
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self {
            path: path.into(),
            current: None,
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
        self.current = None;
        for path in self.older().iter().rev() {
            if let Some(mut file) = Current::open(path)? {
                file.drain(&mut keep)?;
            }
        }
        self.current = Current::open(&self.path)?;
        if let Some(current) = &mut self.current {
            current.drain(&mut keep)?;
        }
        Ok(lines.into())
    }

    /// What was written since the last call, also if the file was put aside meanwhile, even several
    /// times.
    pub fn more(&mut self) -> std::io::Result<Vec<LogLine>> {
        let mut lines = Vec::new();
        let mut keep = |line| lines.push(line);
        if let Some(current) = &mut self.current {
            current.drain(&mut keep)?;
        }
        let newest = Current::open(&self.path)?;
        let is_same = match (&self.current, &newest) {
            (Some(ours), Some(newest)) => newest.fingerprint.starts_with(&ours.fingerprint),
            (Some(_), None) => return Ok(lines), // Between two renames: look again next time.
            (None, _) => false,
        };
        if is_same {
            return Ok(lines);
        }
        if let Some(ours) = self.current.take() {
            for path in self.newer_than(&ours)?.iter().rev() {
                if let Some(mut file) = Current::open(path)? {
                    file.drain(&mut keep)?;
                }
            }
        }
        self.current = newest;
        if let Some(current) = &mut self.current {
            current.drain(&mut keep)?;
        }
        Ok(lines)
    }

    /// Files put aside, newest first.
    fn older(&self) -> Vec<Utf8PathBuf> {
        generations(&self.path, MOST_GENERATIONS)
            .skip(1)
            .take_while(|path| path.exists())
            .collect()
    }

    /// Files put aside after `ours` was, newest first.
    fn newer_than(&self, ours: &Current) -> std::io::Result<Vec<Utf8PathBuf>> {
        let mut newer = Vec::new();
        for path in self.older() {
            match Current::open(&path)? {
                Some(file) if file.fingerprint.starts_with(&ours.fingerprint) => return Ok(newer),
                _ => newer.push(path),
            }
        }
        // Ours is gone for good: everything that is left is newer.
        Ok(newer)
    }
}

impl Current {
    /// `None`: there is no such file, or nothing in it yet that would tell it from others.
    fn open(path: &Utf8Path) -> std::io::Result<Option<Self>> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut fingerprint = Vec::new();
        std::io::Read::by_ref(&mut file)
            .take(FINGERPRINT as u64)
            .read_to_end(&mut fingerprint)?;
        if fingerprint.is_empty() {
            return Ok(None);
        }
        std::io::Seek::rewind(&mut file)?;
        let reader = BufReader::new(file);
        Ok(Some(Self {
            reader,
            fingerprint,
            partial: Vec::new(),
        }))
    }

    /// Gives every complete line that has not been given yet.
    fn drain(&mut self, keep: &mut impl FnMut(LogLine)) -> std::io::Result<()> {
        loop {
            let read = self.reader.read_until(b'\n', &mut self.partial)?;
            if read == 0 || self.partial.last() != Some(&b'\n') {
                return Ok(()); // The rest of the line is still to come.
            }
            self.partial.pop();
            if let Some(line) = parse(&self.partial) {
                keep(line);
            }
            self.partial.clear();
        }
    }
}

fn parse(bytes: &[u8]) -> Option<LogLine> {
    LogLine::parse(std::str::from_utf8(bytes).ok()?)
}
