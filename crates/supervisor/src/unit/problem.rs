//! What is wrong with a unit file, where, and what to do about it. Nothing in a unit file is dropped
//! without one of these.

use std::fmt;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The line has no effect, or less effect than it asks for; the unit can be used.
    Warning,
    /// The unit is refused: systemd's `bad-setting`.
    Error,
}

/// One finding in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file, if the finding belongs to one.
    pub file: Option<Utf8PathBuf>,
    /// The line in `file`, counted from one; `None` when the finding is about the unit as a whole.
    pub line: Option<u32>,
    pub severity: Severity,
    /// The directive in question, such as `RestartSec`.
    pub directive: Option<String>,
    /// Lowercase, without a full stop.
    pub message: String,
    /// The way forward, when there is one.
    pub hint: Option<String>,
}

impl Problem {
    /// A finding about a unit as a whole.
    pub fn of_unit(severity: Severity, message: impl Into<String>) -> Self {
        Self {
            file: None,
            line: None,
            severity,
            directive: None,
            message: message.into(),
            hint: None,
        }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(formatter, "{file}:")?;
            if let Some(line) = self.line {
                write!(formatter, "{line}:")?;
            }
            formatter.write_str(" ")?;
        }
        if let Some(directive) = &self.directive {
            write!(formatter, "{directive}=: ")?;
        }
        formatter.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(formatter, " ({hint})")?;
        }
        Ok(())
    }
}
