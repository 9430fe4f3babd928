//! One line of a log file.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Whose words a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    Output,
    Error,
    /// Ours: "Started …", "Scheduled restart …".
    Supervisor,
}

impl Stream {
    fn letter(self) -> char {
        match self {
            Self::Output => 'o',
            Self::Error => 'e',
            Self::Supervisor => 's',
        }
    }

    fn from_letter(letter: &str) -> Option<Self> {
        match letter {
            "o" => Some(Self::Output),
            "e" => Some(Self::Error),
            "s" => Some(Self::Supervisor),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    pub time: Timestamp,
    pub stream: Stream,
    /// The process that wrote it; `None` for our own lines.
    pub pid: Option<u32>,
    pub text: String,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pid = self.pid.unwrap_or(0);
        write!(
            f,
            "{:.6} {} {pid} {}",
            self.time,
            self.stream.letter(),
            self.text
        )
    }
}

impl LogLine {
    /// Reads back what `Display` wrote. A line of another origin, or one cut short by a crash, is
    /// `None`.
    pub fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(4, ' ');
        let time = parts.next()?.parse().ok()?;
        let stream = Stream::from_letter(parts.next()?)?;
        let pid: u32 = parts.next()?.parse().ok()?;
        let text = parts.next()?.to_owned();
        Some(Self {
            time,
            stream,
            pid: (pid != 0).then_some(pid),
            text,
        })
    }
}
