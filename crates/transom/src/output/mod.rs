//! Everything that commands say. Invariant: data goes to stdout and nothing else does; remarks go to
//! stderr; a reader that goes away ends the program quietly.

mod age;
mod color;
mod listing;
mod relay;
mod table;

pub use age::age;
pub use color::{ColorMode, Colors};
pub use listing::{Column, Document, Row, Shown};
pub use relay::Relay;
pub use table::{Cell, render_table};

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use clap::builder::styling::{AnsiColor, Style};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The form of data on stdout.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Aligned columns, for people
    #[default]
    Table,
    /// Aligned columns, more of them
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// Names only, one per line
    Name,
}

/// The output could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("could not write to stdout")]
    Write(#[source] io::Error),
    #[error("could not render JSON")]
    Json(#[source] serde_json::Error),
    #[error("could not render YAML")]
    Yaml(#[source] serde_saphyr::SerializeError),
    /// Not a failure: the reader has seen what it wanted.
    #[error("the reader of the output went away")]
    ReaderGone,
}

impl OutputError {
    /// Whether an error only says that nobody reads our output any more.
    pub fn is_reader_gone(error: &anyhow::Error) -> bool {
        error
            .chain()
            .any(|cause| matches!(cause.downcast_ref(), Some(Self::ReaderGone)))
    }
}

/// The two streams, and how to write to them.
pub struct Output {
    format: Format,
    shown: Shown,
    quiet: bool,
    stdout: Mutex<Box<dyn Write + Send>>,
    stderr: Mutex<Box<dyn Write + Send>>,
}

impl Output {
    pub fn new(
        format: Format,
        shown: Shown,
        quiet: bool,
        stdout: Box<dyn Write + Send>,
        stderr: Box<dyn Write + Send>,
    ) -> Self {
        Self {
            format,
            shown,
            quiet,
            stdout: Mutex::new(stdout),
            stderr: Mutex::new(stderr),
        }
    }

    /// The form that was asked for.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How things are shown to people.
    pub fn shown(&self) -> Shown {
        self.shown
    }

    /// Prints a list in the form that was asked for.
    pub fn list<R: Row>(&self, rows: &[R]) -> Result<(), OutputError> {
        let text = match self.format {
            Format::Table | Format::Wide => {
                if rows.is_empty() {
                    self.remark(&format!("no {} found", R::PLURAL));
                    return Ok(());
                }
                listing::render_rows(rows, self.format == Format::Wide, self.shown)
            }
            Format::Name => listing::lines(rows.iter().map(Row::name)),
            Format::Json => json(&rows)?,
            Format::Yaml => yaml(&rows)?,
        };
        self.write(&text)
    }

    /// Prints one thing in the form that was asked for.
    pub fn document<D: Document>(&self, document: &D) -> Result<(), OutputError> {
        let text = match self.format {
            Format::Table => document.text(false, self.shown),
            Format::Wide => document.text(true, self.shown),
            Format::Name => listing::lines(document.names()),
            Format::Json => json(document)?,
            Format::Yaml => yaml(document)?,
        };
        self.write(&text)
    }

    /// Prints text that has one form only: a script, a page.
    pub fn write(&self, text: &str) -> Result<(), OutputError> {
        self.write_bytes(text.as_bytes())
    }

    /// The same for bytes that somebody else made.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let mut stdout = self.stdout.lock().unwrap_or_else(PoisonError::into_inner);
        stdout
            .write_all(bytes)
            .and_then(|()| stdout.flush())
            .map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => OutputError::ReaderGone,
                _ => OutputError::Write(error),
            })
    }

    /// A remark for people, on stderr; none when quiet.
    pub fn remark(&self, text: &str) {
        if !self.quiet {
            self.say(&format!("{text}\n"));
        }
    }

    /// Something that people should know although nothing failed; none when quiet.
    pub fn warn(&self, text: &str) {
        const WARNING: Style = AnsiColor::Yellow.on_default().bold();
        if !self.quiet {
            self.say(&format!("{WARNING}warning:{WARNING:#} {text}\n"));
        }
    }

    fn say(&self, text: &str) {
        let mut stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        // There is no third stream to complain on, and a remark is worth no failure.
        let _ = stderr.write_all(text.as_bytes());
    }
}

fn json(value: &impl Serialize) -> Result<String, OutputError> {
    let text = serde_json::to_string_pretty(value).map_err(OutputError::Json)?;
    Ok(text + "\n")
}

fn yaml(value: &impl Serialize) -> Result<String, OutputError> {
    serde_saphyr::to_string(value).map_err(OutputError::Yaml)
}
