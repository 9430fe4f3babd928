//! Files of `EnvironmentFile=`: `NAME=value` lines with shell quotes, or for `.ps1` files lines of
//! the form `$env:NAME = "value"`. The executor reads the file; this is what its text means.

use camino::Utf8Path;
use transom_model::os::Os;

use super::command::is_variable_name;
use super::problem::{Problem, Severity};

/// Variables in order, and what was not understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvironmentFileContent {
    pub variables: Vec<(String, String)>,
    pub problems: Vec<Problem>,
}

/// Reads the text of the file at `path`, for `os`. `lookup` knows the variables set so far, which
/// PowerShell lines may refer to.
///
/// # Platform behavior
///
/// On Windows a backslash is an ordinary character, except before a double quote inside of double
/// quotes; on Linux it escapes as in a shell.
pub fn parse(
    text: &str,
    path: &Utf8Path,
    os: Os,
    lookup: impl Fn(&str) -> Option<String>,
) -> EnvironmentFileContent {
    let mut content = EnvironmentFileContent::default();
    let is_powershell = path
        .extension()
        .is_some_and(|suffix| suffix.eq_ignore_ascii_case("ps1"));
    let mut lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let pair = if is_powershell {
            powershell_pair(trimmed, &content.variables, &lookup)
        } else {
            shell_pair(trimmed, os, || lines.next().map(|(_, next)| next))
        };
        match pair {
            Ok(pair) => content.variables.push(pair),
            Err(message) => content.problems.push(Problem {
                file: Some(path.to_owned()),
                line: Some(number),
                severity: Severity::Warning,
                directive: None,
                message: format!("{message}; the line is ignored"),
                hint: None,
            }),
        }
    }
    content
}

fn name_of(written: &str) -> Result<String, String> {
    let name = written.trim();
    if is_variable_name(name) {
        Ok(name.to_owned())
    } else {
        Err("there is no name of a variable before `=`".to_owned())
    }
}

fn shell_pair<'a>(
    line: &'a str,
    os: Os,
    mut next_line: impl FnMut() -> Option<&'a str>,
) -> Result<(String, String), String> {
    let (name, rest) = line.split_once('=').ok_or("there is no `=`")?;
    let name = name_of(name)?;
    let mut value = String::new();
    let mut quote: Option<char> = None;
    // White space at the end of an unquoted part does not count.
    let mut kept = 0;
    let mut rest = rest.trim_start();
    loop {
        let mut characters = rest.chars().peekable();
        let mut continues = false;
        while let Some(character) = characters.next() {
            let is_escape = character == '\\'
                && match (os, quote) {
                    (_, Some('\'')) | (Os::Windows, None) => false,
                    (Os::Linux, None) => true,
                    (Os::Linux, Some(_)) => {
                        matches!(characters.peek(), Some('"' | '\\' | '$' | '`') | None)
                    }
                    (Os::Windows, Some(_)) => characters.peek() == Some(&'"'),
                };
            if is_escape {
                match characters.next() {
                    Some(escaped) => value.push(escaped),
                    None => continues = true,
                }
                kept = value.len();
            } else if quote == Some(character) {
                quote = None;
                kept = value.len();
            } else if quote.is_none() && matches!(character, '"' | '\'') {
                quote = Some(character);
            } else {
                value.push(character);
                if quote.is_some() || !character.is_whitespace() {
                    kept = value.len();
                }
            }
        }
        if quote.is_none() && !continues {
            value.truncate(kept);
            return Ok((name, value));
        }
        let Some(next) = next_line() else {
            return if quote.is_some() {
                Err("a quote is never closed".to_owned())
            } else {
                Ok((name, value))
            };
        };
        if !continues {
            value.push('\n');
        }
        rest = next;
    }
}

fn powershell_pair(
    line: &str,
    known: &[(String, String)],
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<(String, String), String> {
    let wrong = || "expected $env:NAME = \"value\"".to_owned();
    let after = line
        .get(..5)
        .filter(|start| start.eq_ignore_ascii_case("$env:"))
        .and_then(|_| line.get(5..))
        .ok_or_else(wrong)?;
    let (name, value) = after.split_once('=').ok_or_else(wrong)?;
    let name = name_of(name)?;
    let value = value.trim().trim_end_matches(';').trim_end();
    if let Some(literal) = value
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
    {
        return Ok((name, literal.replace("''", "'")));
    }
    let text = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .ok_or_else(wrong)?;
    let find = |wanted: &str| {
        known
            .iter()
            .rev()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.clone())
            .or_else(|| lookup(wanted))
            .unwrap_or_default()
    };
    Ok((name, expand_powershell(text, find)))
}

/// Replaces `$env:NAME` and `${env:NAME}`; a backtick takes the next character as it is.
fn expand_powershell(text: &str, find: impl Fn(&str) -> String) -> String {
    let mut value = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if character == '`' {
            let escaped = rest[1..].chars().next();
            value.extend(escaped);
            rest = &rest[1 + escaped.map_or(0, char::len_utf8)..];
        } else if let Some((name, after)) = powershell_variable(rest) {
            value.push_str(&find(name));
            rest = after;
        } else {
            value.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    value
}

fn powershell_variable(text: &str) -> Option<(&str, &str)> {
    let starts_with = |prefix: &str| {
        text.get(..prefix.len())
            .filter(|start| start.eq_ignore_ascii_case(prefix))
            .map(|_| &text[prefix.len()..])
    };
    if let Some(rest) = starts_with("${env:") {
        return rest.split_once('}');
    }
    let rest = starts_with("$env:")?;
    let end = rest
        .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .unwrap_or(rest.len());
    (end > 0).then(|| rest.split_at(end))
}
