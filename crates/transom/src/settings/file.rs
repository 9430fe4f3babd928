//! The configuration file. Invariant: a key that we do not know is an error with its line, and with
//! the key that was probably meant; nothing in the file is ever ignored.

use std::fmt::Write as _;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_saphyr::{MessageFormatter as _, UserMessageFormatter};

use crate::logging::{LogFilter, LogFormat};
use crate::output::{ColorMode, Format};
use crate::settings::server::ServerConfig;
use crate::suggestion;

/// No honest configuration is longer.
const LARGEST: u64 = 1 << 20;

/// Settings of the `transom` command on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "transom.yaml")]
pub struct FileConfig {
    /// Form of what commands print
    pub output: Option<Format>,
    /// When to use colours
    pub color: Option<ColorMode>,
    /// Print data and errors only
    pub quiet: Option<bool>,
    /// Show how far long operations are
    pub progress: Option<bool>,
    /// Log events on stderr
    pub log: Option<LogConfig>,
    /// The API server, `transom server`
    pub server: Option<ServerConfig>,
}

/// Log events on stderr.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogConfig {
    /// Which events are written: off, error, warn, info, debug, trace, or a filter such as
    /// `warn,transom_host=debug`
    pub level: Option<LogFilter>,
    /// Form of log events
    pub format: Option<LogFormat>,
}

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("there is no configuration file at `{path}`")]
    Missing { path: Utf8PathBuf },
    #[error("could not read the configuration file `{path}`")]
    Read {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("the configuration file `{path}` is larger than {LARGEST} bytes")]
    TooLarge { path: Utf8PathBuf },
    #[error("the configuration file `{path}` is wrong")]
    Wrong { path: Utf8PathBuf, source: Problem },
}

/// What is wrong with a file, and where: a message and the lines around the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{snippet}")]
pub struct Problem {
    pub message: String,
    /// Empty when the place is not known; otherwise begins with a line break.
    pub snippet: String,
    pub hint: Option<String>,
}

impl FileError {
    /// The way forward, where one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Wrong { source, .. } => source.hint.clone(),
            Self::Missing { .. } => {
                Some("create it, or leave out --config and TRANSOM_CONFIG".to_owned())
            }
            Self::Read { .. } | Self::TooLarge { .. } => None,
        }
    }
}

impl FileConfig {
    /// Reads the file; none when it is missing and need not exist.
    pub fn read(path: &Utf8Path, must_exist: bool) -> Result<Option<Self>, FileError> {
        let failed = |source| FileError::Read {
            path: path.to_owned(),
            source,
        };
        let size = match fs_err::metadata(path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return if must_exist {
                    let path = path.to_owned();
                    Err(FileError::Missing { path })
                } else {
                    Ok(None)
                };
            }
            Err(error) => return Err(failed(error)),
        };
        if size > LARGEST {
            let path = path.to_owned();
            return Err(FileError::TooLarge { path });
        }
        let text = fs_err::read_to_string(path).map_err(failed)?;
        let config = Self::parse(&text).map_err(|source| FileError::Wrong {
            path: path.to_owned(),
            source,
        })?;
        Ok(Some(config))
    }

    /// Reads the text of a file. An empty file says nothing, which is allowed.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let config: Option<Self> =
            serde_saphyr::from_str(text).map_err(|error| Problem::new(&error, text))?;
        Ok(config.unwrap_or_default())
    }
}

impl Problem {
    fn new(error: &serde_saphyr::Error, text: &str) -> Self {
        use serde_saphyr::Error;
        let bare = error.without_snippet();
        let (message, hint, length) = match bare {
            Error::SerdeUnknownField {
                field, expected, ..
            } => {
                let known = expected.iter().copied();
                let hint = suggestion::closest(field, known.clone()).map_or_else(
                    || format!("known keys here: {}", suggestion::list(known)),
                    |key| format!("did you mean `{key}`?"),
                );
                (format!("unknown key `{field}`"), Some(hint), field.len())
            }
            Error::SerdeUnknownVariant {
                variant, expected, ..
            } => {
                let hint = suggestion::hint(variant, expected.iter().copied());
                let message = format!("`{variant}` is not possible here");
                (message, Some(hint), variant.len())
            }
            Error::DuplicateMappingKey { key, .. } => {
                let key = key.as_deref().unwrap_or_default();
                let hint = "keep one of them".to_owned();
                (
                    format!("the key `{key}` is there twice"),
                    Some(hint),
                    key.len(),
                )
            }
            other => {
                let message = UserMessageFormatter.format_message(other).into_owned();
                (message, None, 1)
            }
        };
        let place = error.location().and_then(|location| {
            let line = usize::try_from(location.line()).ok()?;
            let column = usize::try_from(location.column()).ok()?;
            (line > 0 && column > 0).then_some((line, column))
        });
        match place {
            None => Self {
                message,
                snippet: String::new(),
                hint,
            },
            Some((line, column)) => Self {
                message: format!("line {line}, column {column}: {message}"),
                snippet: snippet(text, line, column, length),
                hint,
            },
        }
    }
}

/// The line of the problem with its two neighbours, and a mark below the place.
fn snippet(text: &str, line: usize, column: usize, length: usize) -> String {
    const AROUND: usize = 1;
    let first = line.saturating_sub(AROUND).max(1);
    let gutter = (line + AROUND).to_string().len();
    let mut snippet = String::new();
    for (index, content) in text.lines().enumerate().skip(first - 1) {
        let number = index + 1;
        if number > line + AROUND {
            break;
        }
        // Writing to a string cannot fail.
        let _ = write!(
            snippet,
            "\n{number:>gutter$} | {}",
            visible(content.trim_end())
        );
        if number == line {
            let before = visible(&content.chars().take(column - 1).collect::<String>());
            let blank = " ".repeat(unicode_width::UnicodeWidthStr::width(before.as_str()));
            let rest = content
                .trim_end()
                .chars()
                .count()
                .saturating_sub(column - 1);
            let marks = "^".repeat(length.min(rest).max(1));
            let _ = write!(snippet, "\n{:>gutter$} | {blank}{marks}", "");
        }
    }
    snippet
}

/// A file may hold anything; a terminal must not be told to obey it.
fn visible(line: &str) -> String {
    line.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let problem = FileConfig::parse(text).unwrap_err();
        match &problem.hint {
            Some(hint) => format!("{problem}\nhint: {hint}"),
            None => problem.to_string(),
        }
    }

    #[test]
    fn a_full_file_is_read() {
        let config = FileConfig::parse(
            "output: json\ncolor: never\nquiet: true\nprogress: false\nlog:\n  level: debug\n  format: json\n",
        )
        .unwrap();
        assert_eq!(config.output, Some(Format::Json));
        assert_eq!(config.log.unwrap().format, Some(LogFormat::Json));
    }

    #[test]
    fn a_file_that_says_nothing_is_allowed() {
        for text in ["", "\n", "# nothing\n", "---\n", "{}\n"] {
            assert_eq!(
                FileConfig::parse(text),
                Ok(FileConfig::default()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn an_unknown_key_names_its_line_and_what_was_meant() {
        insta::assert_snapshot!(problem("output: json\ncolour: never\nquiet: true\n"), @"
        line 2, column 1: unknown key `colour`
        1 | output: json
        2 | colour: never
          | ^^^^^^
        3 | quiet: true
        hint: did you mean `color`?
        ");
        insta::assert_snapshot!(problem("log:\n  levle: info\n"), @"
        line 2, column 3: unknown key `levle`
        1 | log:
        2 |   levle: info
          |   ^^^^^
        hint: did you mean `level`?
        ");
        insta::assert_snapshot!(problem("registry: example.com\n"), @"
        line 1, column 1: unknown key `registry`
        1 | registry: example.com
          | ^^^^^^^^
        hint: known keys here: output, color, quiet, progress, log, server
        ");
    }

    #[test]
    fn a_wrong_value_names_its_line_and_what_is_possible() {
        insta::assert_snapshot!(problem("color: sometimes\n"), @"
        line 1, column 8: `sometimes` is not possible here
        1 | color: sometimes
          |        ^^^^^^^^^
        hint: possible values: auto, always, never
        ");
        insta::assert_snapshot!(problem("quiet: 7\n"), @"
        line 1, column 8: invalid boolean
        1 | quiet: 7
          |        ^
        ");
        insta::assert_snapshot!(problem("log:\n  level: inof\n"), @"
        line 2, column 10: `inof` is not a log level: did you mean `info`?
        1 | log:
        2 |   level: inof
          |          ^
        ");
        insta::assert_snapshot!(problem("- a\n- b\n"), @"
        line 1, column 1: expected mapping start
        1 | - a
          | ^
        2 | - b
        ");
    }

    #[test]
    fn text_that_is_not_yaml_names_its_line() {
        insta::assert_snapshot!(problem("output: json\n  color: \"never\n"), @r#"
        line 1, column 9: `json color` is not possible here
        1 | output: json
          |         ^^^^
        2 |   color: "never
        hint: did you mean `json`?
        "#);
        insta::assert_snapshot!(problem("output: json\noutput: yaml\n"), @"
        line 2, column 1: the key `output` is there twice
        1 | output: json
        2 | output: yaml
          | ^^^^^^
        hint: keep one of them
        ");
    }

    #[test]
    fn control_letters_of_a_file_never_reach_the_terminal() {
        let text = problem("colour: \"\u{1b}[2J\"\n");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}
