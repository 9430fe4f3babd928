//! A command as data: what an executor would run. Arguments are a list, never one string, so no
//! shell stands between the plan and the program.

use std::fmt;

/// A command that an executor would run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlannedCommand {
    pub program: String,
    pub arguments: Vec<String>,
    /// What the command reads from its standard input.
    pub input: Option<String>,
    /// Whether the plan goes on when the command fails, because its effect may be there already.
    pub may_fail: bool,
}

impl PlannedCommand {
    pub fn new(program: impl Into<String>, arguments: Vec<String>) -> Self {
        Self {
            program: program.into(),
            arguments,
            input: None,
            may_fail: false,
        }
    }

    #[must_use]
    pub fn with_input(self, input: String) -> Self {
        Self {
            input: Some(input),
            ..self
        }
    }

    #[must_use]
    pub fn may_fail(self) -> Self {
        Self {
            may_fail: true,
            ..self
        }
    }

    /// A PowerShell command; `script` quotes what is not its own with [`powershell_quoted`].
    pub fn powershell(script: &str) -> Self {
        let arguments = ["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"]
            .into_iter()
            .map(ToOwned::to_owned)
            .chain([format!("$ErrorActionPreference = 'Stop'; {script}")])
            .collect();
        Self::new("powershell.exe", arguments)
    }
}

/// For people: quoted where a reader could mistake where an argument ends.
impl fmt::Display for PlannedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        for argument in &self.arguments {
            if argument.is_empty() || argument.contains(|c: char| c.is_whitespace() || c == '"') {
                write!(f, " {argument:?}")?;
            } else {
                write!(f, " {argument}")?;
            }
        }
        if let Some(input) = &self.input {
            write!(f, " <<END\n{}\nEND", input.trim_end())?;
        }
        if self.may_fail {
            f.write_str(" (may fail)")?;
        }
        Ok(())
    }
}

/// Text as a PowerShell string in which nothing is expanded.
pub fn powershell_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for c in text.chars() {
        quoted.push(c);
        if is_powershell_quote(c) {
            quoted.push(c);
        }
    }
    quoted.push('\'');
    quoted
}

/// PowerShell lets typographic single quotes end a string too.
const fn is_powershell_quote(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a single-quoted string the way PowerShell does; returns it and what is left.
    fn read_as_powershell(source: &str) -> Option<(String, &str)> {
        let mut characters = source.char_indices().peekable();
        if !is_powershell_quote(characters.next()?.1) {
            return None;
        }
        let mut text = String::new();
        while let Some((at, c)) = characters.next() {
            if !is_powershell_quote(c) {
                text.push(c);
                continue;
            }
            match characters.peek() {
                Some((_, next)) if is_powershell_quote(*next) => {
                    text.push(c);
                    characters.next();
                }
                _ => return Some((text, &source[at + c.len_utf8()..])),
            }
        }
        None
    }

    proptest! {
        #[test]
        fn no_text_leaves_its_powershell_quotes(text in "[\\PC'‘’‚‛;$`\"\n]{0,40}") {
            let quoted = powershell_quoted(&text);
            prop_assert_eq!(read_as_powershell(&quoted), Some((text, "")));
        }
    }

    #[test]
    fn a_typographic_quote_cannot_end_a_string() {
        assert_eq!(powershell_quoted("a’; calc"), "'a’’; calc'");
    }

    #[test]
    fn a_command_shows_where_its_arguments_end() {
        let command =
            PlannedCommand::new("netsh.exe", vec!["interface=vEthernet (nat)".to_owned()]);
        assert_eq!(
            command.may_fail().to_string(),
            "netsh.exe \"interface=vEthernet (nat)\" (may fail)"
        );
    }
}
