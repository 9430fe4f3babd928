//! What went wrong, why, and the way forward: for people as text, for programs as JSON and an exit
//! code. Invariant: exit codes never change their meaning between releases.

use std::fmt::{self, Write as _};
use std::io;

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;
use transom_model::Os;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Success,
    Failure,
    Usage,
    NotRunning,
    NotFound,
    Denied,
    Configuration,
    /// A status that another program defines, such as one of systemctl's.
    Status(u8),
}

impl Exit {
    /// Every code of ours with its meaning, as the reference lists them.
    pub const DOCUMENTED: &'static [(Self, &'static str)] = &[
        (
            Self::Success,
            "done; also when the reader of a pipe went away",
        ),
        (
            Self::Failure,
            "it failed; also when a check found something",
        ),
        (Self::Usage, "the command line is wrong; nothing was done"),
        (
            Self::NotRunning,
            "what it needs, or asks about, is not running",
        ),
        (Self::NotFound, "the named thing does not exist"),
        (Self::Denied, "the system refused: more rights are needed"),
        (
            Self::Configuration,
            "a configuration file or a variable is wrong; nothing was done",
        ),
    ];

    /// The code for the system.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::NotRunning => 3,
            Self::NotFound => 4,
            Self::Denied => 5,
            Self::Configuration => 6,
            Self::Status(status) => status,
        }
    }

    /// The same as a word, for JSON.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Usage => "usage",
            Self::NotRunning => "not-running",
            Self::NotFound => "not-found",
            Self::Denied => "denied",
            Self::Configuration => "configuration",
            Self::Status(_) => "status",
        }
    }
}

/// Adds the way forward, or an exit code, to an error. Neither changes what the error says.
pub trait Advice<T> {
    /// Tells people what to do next.
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T>;
    /// Ends the program with `exit` instead of the general failure.
    fn exit(self, exit: Exit) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> Advice<T> for Result<T, E> {
    fn hint(self, hint: impl Into<String>) -> anyhow::Result<T> {
        self.map_err(|error| Advised::wrap(error, Some(hint.into()), None))
    }

    fn exit(self, exit: Exit) -> anyhow::Result<T> {
        self.map_err(|error| Advised::wrap(error, None, Some(exit)))
    }
}

/// An error with advice. It stands in the chain in the place of the error it carries.
#[derive(Debug)]
struct Advised {
    error: anyhow::Error,
    hint: Option<String>,
    exit: Option<Exit>,
}

impl Advised {
    fn wrap(
        error: impl Into<anyhow::Error>,
        hint: Option<String>,
        exit: Option<Exit>,
    ) -> anyhow::Error {
        anyhow::Error::new(Self {
            error: error.into(),
            hint,
            exit,
        })
    }
}

impl fmt::Display for Advised {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, formatter)
    }
}

impl std::error::Error for Advised {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// A failure, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What failed.
    pub message: String,
    /// Why, outermost first.
    pub causes: Vec<String>,
    /// The way forward.
    pub hint: Option<String>,
    pub exit: Exit,
    /// The shape of the right command line, after a wrong one.
    pub usage: Option<String>,
}

impl Failure {
    /// Reads an error's chain.
    pub fn from_error(error: &anyhow::Error, host: Os) -> Self {
        let mut found = Found::default();
        found.walk(error);
        let mut messages: Vec<String> = error.chain().map(ToString::to_string).collect();
        // Wrappers that say nothing new would only repeat the line above them.
        messages.dedup();
        let message = messages.remove(0);
        let (exit, hint) = match (found.exit, found.denied) {
            (None, true) => (
                Exit::Denied,
                found.hint.or_else(|| Some(more_rights(host).to_owned())),
            ),
            (exit, _) => (exit.unwrap_or(Exit::Failure), found.hint),
        };
        Self {
            message,
            causes: messages,
            hint,
            exit,
            usage: None,
        }
    }

    /// For people. Styles are inside; the stream takes them out where they are not wanted.
    pub fn text(&self) -> String {
        const ERROR: Style = AnsiColor::Red.on_default().bold();
        const LABEL: Style = Style::new().bold();
        const HINT: Style = AnsiColor::Cyan.on_default().bold();
        let mut text = format!("{ERROR}error:{ERROR:#} {}\n", indented(&self.message));
        for cause in &self.causes {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {LABEL}caused by:{LABEL:#} {}", indented(cause));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "  {HINT}hint:{HINT:#} {}", indented(hint));
        }
        if let Some(usage) = &self.usage {
            let _ = writeln!(text, "\n{usage}");
        }
        text
    }

    /// For programs: one line.
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            error: Body<'a>,
        }
        #[derive(Serialize)]
        struct Body<'a> {
            message: &'a str,
            causes: &'a [String],
            hint: Option<&'a str>,
            code: u8,
            kind: &'static str,
        }
        let document = Document {
            error: Body {
                message: &self.message,
                causes: &self.causes,
                hint: self.hint.as_deref(),
                code: self.exit.code(),
                kind: self.exit.kind(),
            },
        };
        // Strings and a number always serialize; were it otherwise, the text is still better.
        serde_json::to_string(&document).map_or_else(|_| self.text(), |json| json + "\n")
    }
}

/// What a chain holds beside its messages; the outermost advice wins.
#[derive(Default)]
struct Found {
    hint: Option<String>,
    exit: Option<Exit>,
    denied: bool,
}

impl Found {
    fn walk(&mut self, error: &anyhow::Error) {
        for cause in error.chain() {
            if let Some(advised) = cause.downcast_ref::<Advised>() {
                self.hint = self.hint.take().or_else(|| advised.hint.clone());
                self.exit = self.exit.or(advised.exit);
                // What it carries is its stand-in in the chain, not the next link: look inside.
                self.walk(&advised.error);
                return;
            }
            self.denied |= cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        }
    }
}

fn more_rights(host: Os) -> &'static str {
    match host {
        Os::Linux => "run it as root, for example with sudo",
        Os::Windows => "run it from a prompt that was opened as administrator",
    }
}

/// Continuation lines stand below the first one.
fn indented(text: &str) -> String {
    text.replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    fn io_error(kind: io::ErrorKind) -> anyhow::Error {
        anyhow::Error::new(io::Error::new(kind, "the disk said no"))
    }

    fn plain(failure: &Failure) -> String {
        anstream::adapter::strip_str(&failure.text()).to_string()
    }

    #[test]
    fn advice_does_not_change_what_an_error_says() {
        let error = Err::<(), _>(io_error(io::ErrorKind::Other))
            .context("could not read `a`")
            .hint("look at `a`")
            .exit(Exit::NotFound)
            .context("could not start")
            .unwrap_err();
        let failure = Failure::from_error(&error, Os::Linux);
        insta::assert_snapshot!(plain(&failure), @r"
        error: could not start
          caused by: could not read `a`
          caused by: the disk said no
          hint: look at `a`
        ");
        assert_eq!(failure.exit, Exit::NotFound);
    }

    #[test]
    fn the_outermost_hint_wins() {
        let error = Err::<(), _>(io_error(io::ErrorKind::Other))
            .hint("inner")
            .context("context")
            .hint("outer")
            .unwrap_err();
        let failure = Failure::from_error(&error, Os::Linux);
        assert_eq!(failure.hint.as_deref(), Some("outer"));
    }

    #[test]
    fn a_refusal_of_the_system_is_told_apart_and_gets_its_own_hint() {
        let error = io_error(io::ErrorKind::PermissionDenied).context("could not write `b`");
        let linux = Failure::from_error(&error, Os::Linux);
        let windows = Failure::from_error(&error, Os::Windows);
        assert_eq!(linux.exit, Exit::Denied);
        assert!(linux.hint.unwrap().contains("sudo"));
        assert!(windows.hint.unwrap().contains("administrator"));
    }

    #[test]
    fn a_repeated_message_is_said_once_and_lines_stay_together() {
        let error = anyhow::anyhow!("first\nsecond")
            .context("same")
            .context("same");
        insta::assert_snapshot!(plain(&Failure::from_error(&error, Os::Linux)), @r"
        error: same
          caused by: first
            second
        ");
    }

    #[test]
    fn json_carries_the_same_and_the_code() {
        let error = Err::<(), _>(anyhow::anyhow!("why \"so\""))
            .context("what")
            .exit(Exit::NotRunning)
            .unwrap_err();
        insta::assert_snapshot!(
            Failure::from_error(&error, Os::Linux).json(),
            @r#"{"error":{"message":"what","causes":["why \"so\""],"hint":null,"code":3,"kind":"not-running"}}"#
        );
    }

    #[test]
    fn documented_codes_are_distinct() {
        let mut codes: Vec<u8> = Exit::DOCUMENTED
            .iter()
            .map(|(exit, _)| exit.code())
            .collect();
        codes.dedup();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6]);
    }
}
