//! Lines of a unit file: sections, assignments, comments, continued lines. Meaning comes later; this
//! file only guarantees that every line is an assignment, a header, blank, or a problem.

use camino::Utf8Path;
use transom_model::os::Os;

use super::problem::{Problem, Severity};

/// The largest unit file, and the longest line, as in systemd.
pub const MAXIMUM_FILE_SIZE: u64 = 1024 * 1024;

/// One `Key=value`, with continued lines joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub section: String,
    pub key: String,
    pub value: String,
    /// The line it begins on.
    pub line: u32,
}

/// What a file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    pub assignments: Vec<Assignment>,
    /// Section headers with their lines, so that unknown ones are reported even when empty.
    pub sections: Vec<(String, u32)>,
    pub problems: Vec<Problem>,
}

/// Reads the bytes of one file for `os`.
///
/// # Platform behavior
///
/// A backslash at the end of a line continues it. For Windows this needs white space before the
/// backslash, so that `WorkingDirectory=C:\Data\` does not swallow the next line; such a line is
/// kept as it is and reported.
pub fn parse(bytes: &[u8], path: &Utf8Path, os: Os) -> Parsed {
    let mut reader = Reader {
        path,
        parsed: Parsed::default(),
        section: None,
    };
    if bytes.len() as u64 > MAXIMUM_FILE_SIZE {
        reader.problem(None, Severity::Error, "the file is larger than 1 MiB");
        return reader.parsed;
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut pending: Option<(String, u32)> = None;
    for (index, raw) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
        let Some(line) = reader.text(raw, number) else {
            continue;
        };
        let trimmed = line.trim_start();
        if trimmed.starts_with(['#', ';']) {
            // Comments may stand between continued lines, and do not end them.
            continue;
        }
        let (content, continues) = reader.continuation(line, number, os);
        let (text, start) = match pending.take() {
            Some((mut text, start)) => {
                text.push_str(content);
                (text, start)
            }
            None => (content.to_owned(), number),
        };
        if continues {
            // The backslash and the line's end together are a space.
            pending = Some((text + " ", start));
        } else {
            reader.logical_line(text.trim(), start);
        }
    }
    if let Some((text, start)) = pending {
        reader.problem(
            Some(start),
            Severity::Warning,
            "the file ends within a continued line",
        );
        reader.logical_line(text.trim(), start);
    }
    reader.parsed
}

struct Reader<'a> {
    path: &'a Utf8Path,
    parsed: Parsed,
    /// `None` before the first header.
    section: Option<String>,
}

impl Reader<'_> {
    fn problem(&mut self, line: Option<u32>, severity: Severity, message: impl Into<String>) {
        self.parsed.problems.push(Problem {
            file: Some(self.path.to_owned()),
            line,
            severity,
            directive: None,
            message: message.into(),
            hint: None,
        });
    }

    /// The line as text, unless it cannot be one.
    fn text<'b>(&mut self, raw: &'b [u8], number: u32) -> Option<&'b str> {
        if raw.contains(&0) {
            self.problem(
                Some(number),
                Severity::Error,
                "the line contains a NUL character",
            );
            return None;
        }
        let line = str::from_utf8(raw).ok();
        if line.is_none() {
            self.problem(
                Some(number),
                Severity::Warning,
                "the line is not valid UTF-8 and is ignored",
            );
        }
        line
    }

    fn continuation<'b>(&mut self, line: &'b str, number: u32, os: Os) -> (&'b str, bool) {
        let Some(before) = line.strip_suffix('\\') else {
            return (line, false);
        };
        let run = line.len() - line.trim_end_matches('\\').len();
        if run.is_multiple_of(2) && os == Os::Linux {
            // An escaped backslash is not a continuation.
            return (line, false);
        }
        if os == Os::Linux || before.is_empty() || before.ends_with(char::is_whitespace) {
            return (before, true);
        }
        self.problem(
            Some(number),
            Severity::Warning,
            "the backslash at the end is taken as part of the value; put a space before it to continue the line",
        );
        (line, false)
    }

    fn logical_line(&mut self, line: &str, number: u32) {
        if line.is_empty() {
            return;
        }
        if let Some(header) = line.strip_prefix('[') {
            match header
                .strip_suffix(']')
                .filter(|name| !name.is_empty() && !name.contains(['[', ']']))
            {
                Some(name) => {
                    self.section = Some(name.to_owned());
                    self.parsed.sections.push((name.to_owned(), number));
                }
                None => {
                    self.problem(
                        Some(number),
                        Severity::Error,
                        format!("`{line}` is not a section header"),
                    );
                }
            }
            return;
        }
        let Some((key, value)) = line.split_once('=') else {
            self.problem(
                Some(number),
                Severity::Warning,
                format!(
                    "`{}` is neither a section, an assignment nor a comment and is ignored",
                    shortened(line)
                ),
            );
            return;
        };
        let Some(section) = self.section.clone() else {
            self.problem(
                Some(number),
                Severity::Warning,
                format!(
                    "`{}=` stands before any section and is ignored",
                    shortened(key.trim())
                ),
            );
            return;
        };
        if key.trim().is_empty() {
            self.problem(
                Some(number),
                Severity::Warning,
                "there is no name before `=`; the line is ignored",
            );
            return;
        }
        self.parsed.assignments.push(Assignment {
            section,
            key: key.trim_end().to_owned(),
            value: value.trim_start().to_owned(),
            line: number,
        });
    }
}

/// Enough of a line to recognise it in a message.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(LONGEST).collect();
    short.push('…');
    short
}

/// Writes assignments as a file that `parse` reads back to the same assignments, lines aside.
pub fn render(assignments: &[Assignment]) -> String {
    let mut text = String::new();
    let mut section: Option<&str> = None;
    for assignment in assignments {
        if section != Some(&assignment.section) {
            if section.is_some() {
                text.push('\n');
            }
            text.extend(["[", &assignment.section, "]\n"]);
            section = Some(&assignment.section);
        }
        text.extend([&assignment.key, "=", &assignment.value]);
        if assignment.value.ends_with('\\') {
            // Continued by an empty line, the backslash before stays a part of the value.
            text.push_str(" \\\n");
        }
        text.push('\n');
    }
    text
}
