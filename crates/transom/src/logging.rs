//! Log events on stderr. Invariant: a filter that cannot mean anything is refused, never ignored.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::progress::Progress;
use crate::suggestion;

/// The form of log events.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for people
    #[default]
    Text,
    /// A JSON object per line
    Json,
}

/// Which events are written: a level, or a list of `target=level`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct LogFilter(String);

/// A filter that says nothing sensible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogFilterError {
    #[error("`{word}` is not a log level: {hint}")]
    Level { word: String, hint: String },
    #[error("`{part}` is not a log filter: {problem}")]
    Directive { part: String, problem: String },
}

impl LogFilter {
    const LEVELS: [&'static str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

    pub const DEFAULT: &'static str = "warn";

    /// The level for a number of `-v`.
    pub fn verbose(times: u8) -> Option<Self> {
        let level = match times {
            0 => return None,
            1 => "info",
            2 => "debug",
            _ => "trace",
        };
        Some(Self(level.to_owned()))
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

impl FromStr for LogFilter {
    type Err = LogFilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        for part in text.split(',').map(str::trim) {
            // A lone word would be taken for the name of a module, and a misspelt level with it.
            let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
            if !Self::LEVELS.contains(&level.to_lowercase().as_str()) {
                return Err(LogFilterError::Level {
                    word: level.to_owned(),
                    hint: suggestion::hint(level, Self::LEVELS),
                });
            }
        }
        match EnvFilter::builder().parse(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(LogFilterError::Directive {
                part: text.to_owned(),
                problem: error.to_string(),
            }),
        }
    }
}

impl TryFrom<String> for LogFilter {
    type Error = LogFilterError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<LogFilter> for String {
    fn from(filter: LogFilter) -> Self {
        filter.0
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Answers of servers that are failures: whoever asked says so, with more words.
const TOLD_ANYWAY: &str = ",kube_client::client::builder=off";

/// Sends log events to stderr from now on. Once per process.
pub fn start(
    filter: &LogFilter,
    format: LogFormat,
    color: bool,
    progress: &Progress,
) -> anyhow::Result<()> {
    let mut filter = filter.to_string();
    if filter == LogFilter::DEFAULT {
        filter.push_str(TOLD_ANYWAY);
    }
    let events = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::builder().parse(filter)?)
        .with_ansi(color)
        .with_writer(BesideProgress(progress.clone()));
    let started = match format {
        LogFormat::Text => events.try_init(),
        LogFormat::Json => events.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!(error).context("could not start logging"))
}

/// Writes to stderr without tearing a progress bar that is on the screen.
struct BesideProgress(Progress);

impl<'a> MakeWriter<'a> for BesideProgress {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Line(&self.0)
    }
}

struct Line<'a>(&'a Progress);

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_beside(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_lists_of_targets_are_filters() {
        for text in ["warn", "OFF", "warn,transom_host=debug", "transom=trace"] {
            assert_eq!(text.parse::<LogFilter>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_misspelt_level_is_not_taken_for_a_module() {
        let error = "inof".parse::<LogFilter>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`inof` is not a log level: did you mean `info`?"
        );
        for text in ["", "a=", "a=loud", "warn,", "=", "a=[b=info"] {
            assert!(text.parse::<LogFilter>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn each_v_says_more() {
        let levels: Vec<_> = (1..=4)
            .filter_map(LogFilter::verbose)
            .map(String::from)
            .collect();
        assert_eq!(levels, ["info", "debug", "trace", "trace"]);
        assert_eq!(LogFilter::verbose(0), None);
    }
}
