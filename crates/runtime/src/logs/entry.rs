//! One entry of a log file, as text and as a value.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use thiserror::Error;

/// Which output of a program an entry came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl fmt::Display for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        })
    }
}

impl FromStr for Stream {
    type Err = BadEntry;

    fn from_str(text: &str) -> Result<Self, BadEntry> {
        match text {
            "stdout" => Ok(Self::Stdout),
            "stderr" => Ok(Self::Stderr),
            _ => Err(BadEntry("its stream is neither stdout nor stderr")),
        }
    }
}

/// Whether a line of the program ends with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Full,
    /// The next entry of the same stream goes on with the line.
    Partial,
}

/// An entry, its text without the end of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// As it stands in the file.
    pub written: &'a str,
    pub time: Timestamp,
    pub stream: Stream,
    pub tag: Tag,
    pub text: &'a [u8],
}

/// A line of a log file that is no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not an entry of a log: {0}")]
pub struct BadEntry(pub(super) &'static str);

impl<'a> Entry<'a> {
    /// Reads one line, given without its end.
    pub fn parse(line: &'a [u8]) -> Result<Self, BadEntry> {
        let (written, rest) = word(line).ok_or(BadEntry("it has no time"))?;
        let (stream, rest) = word(rest).ok_or(BadEntry("it has no stream"))?;
        // An entry without text may end right after its tag.
        let (tags, text) = word(rest).unwrap_or((rest, &[]));
        let written = std::str::from_utf8(written).map_err(|_| BadEntry("its time is no text"))?;
        let time = written.parse().map_err(|_| BadEntry("its time is none"))?;
        let stream = std::str::from_utf8(stream).map_err(|_| BadEntry("its stream is no text"))?;
        // Later versions may add tags after a colon; the first says whether the line ends here.
        let tag = match tags.split(|byte| *byte == b':').next() {
            Some(b"F") => Tag::Full,
            Some(b"P") => Tag::Partial,
            _ => return Err(BadEntry("its tag is neither F nor P")),
        };
        Ok(Self {
            written,
            time,
            stream: stream.parse()?,
            tag,
            text,
        })
    }
}

fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    Some((&line[..space], &line[space + 1..]))
}

/// Appends one entry with its end of line. `text` must not contain one.
pub fn render_entry(into: &mut Vec<u8>, time: Timestamp, stream: Stream, tag: Tag, text: &[u8]) {
    // Nine digits always: times of equal length sort as text.
    let printer = DateTimePrinter::new().precision(Some(9));
    into.extend_from_slice(printer.timestamp_to_string(&time).as_bytes());
    let middle: &[u8] = match (stream, tag) {
        (Stream::Stdout, Tag::Full) => b" stdout F ",
        (Stream::Stdout, Tag::Partial) => b" stdout P ",
        (Stream::Stderr, Tag::Full) => b" stderr F ",
        (Stream::Stderr, Tag::Partial) => b" stderr P ",
    };
    into.extend_from_slice(middle);
    into.extend_from_slice(text);
    into.push(b'\n');
}
