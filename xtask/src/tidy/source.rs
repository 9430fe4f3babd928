//! The files under the rules: everything that git knows or would add, as text. Rust files can be asked
//! for their code without comments and literals.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::lexer::{self, Split};
use crate::run;

/// A text file, its path relative to the checkout and with `/`.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Written by a program, and marked so on its first line.
    pub(crate) fn is_generated(&self) -> bool {
        self.text
            .lines()
            .next()
            .is_some_and(|line| line.contains("@generated"))
    }
}

/// All text files of a checkout.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<SourceFile>,
    /// Every path, also of files that are not text.
    pub(crate) paths: BTreeSet<String>,
}

impl Tree {
    pub(crate) fn of_checkout(root: &Path) -> Result<Self> {
        let list = run::output(Command::new("git").current_dir(root).args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ]))?;
        let mut tree = Self::default();
        for path in list.split_terminator('\0') {
            let place = root.join(path);
            // A file that was removed but not yet from the index.
            if !place.is_file() {
                continue;
            }
            tree.paths.insert(path.to_owned());
            if let Ok(text) = String::from_utf8(fs_err::read(&place)?) {
                tree.files.push(SourceFile {
                    path: path.to_owned(),
                    text,
                });
            }
        }
        Ok(tree)
    }

    pub(crate) fn rust_files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| {
            Path::new(&file.path)
                .extension()
                .is_some_and(|end| end == "rs")
        })
    }

    /// Whether a file or a folder of that path exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.paths.contains(path)
            || self.paths.iter().any(|other| other.starts_with(&folder))
    }

    #[cfg(test)]
    pub(crate) fn made_of(files: &[(&str, &str)]) -> Self {
        Self {
            files: files
                .iter()
                .map(|(path, text)| SourceFile {
                    path: (*path).into(),
                    text: (*text).into(),
                })
                .collect(),
            paths: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
        }
    }
}

/// A Rust file's code.
pub(crate) struct Code(Split);

impl Code {
    pub(crate) fn of(text: &str) -> Self {
        Self(lexer::split(text))
    }

    pub(crate) fn comments(&self) -> &str {
        &self.0.comments
    }

    /// The lines on which `phrase` stands in code and is not part of a longer word.
    pub(crate) fn lines_with(&self, phrase: &str) -> Vec<usize> {
        occurrences(&self.0.code, phrase)
            .map(|at| line_of(&self.0.code, at))
            .collect()
    }

    /// What stands between the parentheses after `opening` (which ends in one), with its line.
    pub(crate) fn arguments_of(&self, opening: &str) -> Vec<(usize, &str)> {
        let code = &self.0.code;
        occurrences(code, opening)
            .map(|at| {
                let inside = &code[at + opening.len()..];
                (line_of(code, at), &inside[..closing(inside)])
            })
            .collect()
    }

    /// Every `#[ignore]` with its line, and its reason if it has one. `text` is the original.
    pub(crate) fn ignore_reasons<'t>(&self, text: &'t str) -> Vec<(usize, Option<&'t str>)> {
        self.lines_with("#[ignore")
            .into_iter()
            .map(|line| {
                let original = text.lines().nth(line - 1).unwrap_or_default();
                let reason = original
                    .split_once("#[ignore = \"")
                    .and_then(|(_, rest)| rest.rsplit_once("\"]"))
                    .map(|(reason, _)| reason);
                (line, reason)
            })
            .collect()
    }
}

/// Where `phrase` stands without being the start, middle or end of a longer word.
pub(crate) fn occurrences(text: &str, phrase: &str) -> impl Iterator<Item = usize> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let opens_with_word = phrase.chars().next().is_some_and(is_word);
    let ends_with_word = phrase.chars().next_back().is_some_and(is_word);
    text.match_indices(phrase)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let before = text[..at].chars().next_back().is_some_and(is_word);
            let after = text[at + phrase.len()..]
                .chars()
                .next()
                .is_some_and(is_word);
            !(opens_with_word && before || ends_with_word && after)
        })
}

/// The line, counted from one, of a place in a text.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn closing(inside: &str) -> usize {
    let mut depth = 1_usize;
    for (at, character) in inside.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    inside.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_inside_a_longer_word_does_not_count() {
        let code = Code::of("unsafe_code\nunsafe {}\nmake_unsafe()\n");
        assert_eq!(code.lines_with("unsafe"), [2]);
    }

    #[test]
    fn arguments_go_to_the_matching_parenthesis() {
        let code = Code::of("\n#[cfg(all(test, not(windows)))]\nfn f(a: u8) {}");
        assert_eq!(code.arguments_of("cfg("), [(2, "all(test, not(windows))")]);
    }

    #[test]
    fn a_folder_exists_when_something_is_in_it() {
        let tree = Tree::made_of(&[("docs/guides/a.md", "")]);
        assert!(tree.has("docs/guides") && tree.has("docs/guides/a.md") && tree.has(""));
        assert!(!tree.has("docs/guide"));
    }
}
