//! What only the Go types say: which fields are pointers, so that a zero is a value and not "nothing";
//! which optional fields are written even if empty; what Go calls the type, as error messages do.
//!
//! Read from `go.txt`, which is kept by hand. One line is one type: its name, then its fields, each
//! `name` with `*` in front for a pointer, `!` for one always written, and `:v1.Name` behind it for Go's name.

use std::collections::HashMap;

use anyhow::{Context as _, Result};

const TEXT: &str = include_str!("go.txt");

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct GoField {
    pub(super) pointer: bool,
    pub(super) always: bool,
    pub(super) name: Option<String>,
}

/// Fields by type and name.
pub(super) type GoTypes = HashMap<String, HashMap<String, GoField>>;

pub(super) fn read() -> Result<GoTypes> {
    TEXT.lines().map(line).collect()
}

fn line(line: &str) -> Result<(String, HashMap<String, GoField>)> {
    let mut words = line.split_whitespace();
    let name = words.next().context("an empty line in go.txt")?;
    Ok((name.to_owned(), words.map(field).collect()))
}

fn field(word: &str) -> (String, GoField) {
    let (word, always) = match word.strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (word, false),
    };
    let (word, pointer) = match word.strip_prefix('*') {
        Some(rest) => (rest, true),
        None => (word, false),
    };
    let (word, name) = match word.split_once(':') {
        Some((word, name)) => (word, Some(name.to_owned())),
        None => (word, None),
    };
    let field = GoField {
        pointer,
        always,
        name,
    };
    (word.to_owned(), field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_around_the_name() {
        let (name, fields) = line("a.B !*plain:v1.Kind other").unwrap();

        assert_eq!(name, "a.B");
        assert_eq!(
            fields["plain"],
            GoField {
                pointer: true,
                always: true,
                name: Some("v1.Kind".to_owned())
            }
        );
        assert_eq!(fields["other"], GoField::default());
    }
}
