//! What is wrong with files that people wrote. Invariant: a reader collects all that it finds; nobody
//! has to run a command once per mistake.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use crate::json::{Json, SyntaxError};

/// One mistake: where, what, and the way forward.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fault {
    /// The file or folder, below the tree's folder where it is there.
    pub file: Utf8PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The value in the file, such as `sources.linux.sha1`; empty for the file as a whole.
    pub path: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A list of mistakes in the making.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    list: Vec<Fault>,
}

/// A place in one file, from which mistakes are reported.
#[derive(Debug, Clone)]
pub struct Place<'a> {
    file: &'a Utf8Path,
    path: String,
    line: Option<usize>,
}

impl Fault {
    /// A mistake of a file as a whole.
    pub fn of_file(file: impl Into<Utf8PathBuf>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line: None,
            path: String::new(),
            message: message.into(),
            hint: None,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn of_syntax(file: impl Into<Utf8PathBuf>, error: &SyntaxError) -> Self {
        Self {
            line: Some(error.line),
            ..Self::of_file(file, format!("not JSON: {error}"))
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(formatter, ":{line}")?;
        }
        if !self.path.is_empty() {
            write!(formatter, ": `{}`", self.path)?;
        }
        write!(formatter, ": {}", self.message)
    }
}

impl Faults {
    pub fn push(&mut self, fault: Fault) {
        self.list.push(fault);
    }

    pub fn extend(&mut self, other: Self) {
        self.list.extend(other.list);
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.list.iter()
    }

    /// All of them by file and line, each once.
    pub fn into_sorted(mut self) -> Vec<Fault> {
        self.list.sort();
        self.list.dedup();
        self.list
    }
}

impl<'a> Place<'a> {
    /// The file as a whole.
    pub fn file(file: &'a Utf8Path) -> Self {
        Self {
            file,
            path: String::new(),
            line: None,
        }
    }

    /// The value under `key` of the object here.
    #[must_use]
    pub fn key(&self, key: &str, value: &Json) -> Self {
        let separator = if self.path.is_empty() { "" } else { "." };
        Self {
            file: self.file,
            path: format!("{}{separator}{key}", self.path),
            line: Some(value.line),
        }
    }

    /// An item of the list here.
    #[must_use]
    pub fn item(&self, at: usize, value: &Json) -> Self {
        Self {
            file: self.file,
            path: format!("{}[{at}]", self.path),
            line: Some(value.line),
        }
    }

    /// Describes a mistake here.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        Fault {
            file: self.file.to_owned(),
            line: self.line,
            path: self.path.clone(),
            message: message.into(),
            hint: None,
        }
    }

    /// Describes a value of the wrong type here.
    pub fn wrong_type(&self, expected: &str, value: &Json) -> Fault {
        self.fault(format!("must be {expected}, and is {}", value.describe()))
    }
}

/// The one of `known` that `wrong` was probably meant to be.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Below this, two words are not alike.
    const ALIKE: f64 = 0.7;
    known
        .into_iter()
        .map(|word| (strsim::jaro_winkler(wrong, word), word))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, word)| word)
}

/// An error with its causes, in one line.
pub fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
