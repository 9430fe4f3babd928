//! Paths as text, for either system: a Linux machine takes apart paths of a Windows node and the other
//! way round. Nothing here asks the machine.

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

/// The separators that `os` accepts in a path.
fn is_separator(os: Os, character: char) -> bool {
    character == '/' || (os == Os::Windows && character == '\\')
}

/// The separator that `os` prints.
pub fn separator(os: Os) -> char {
    match os {
        Os::Linux => '/',
        Os::Windows => '\\',
    }
}

/// Appends one name, or a relative path, in the spelling of `os`.
pub fn join(os: Os, folder: &Utf8Path, name: &str) -> Utf8PathBuf {
    let folder = folder.as_str();
    let mut joined = String::with_capacity(folder.len() + name.len() + 1);
    joined.push_str(folder);
    if !folder.is_empty() && !folder.ends_with(|c| is_separator(os, c)) {
        joined.push(separator(os));
    }
    match os {
        Os::Linux => joined.push_str(name),
        Os::Windows => joined.extend(name.chars().map(|c| if c == '/' { '\\' } else { c })),
    }
    joined.into()
}

/// Splits off the last name. `None` for a root, an empty path, or one that ends in `..`.
pub fn split(os: Os, path: &Utf8Path) -> Option<(Utf8PathBuf, String)> {
    let text = path.as_str();
    let root = root_length(os, text);
    let end = text.trim_end_matches(|c| is_separator(os, c)).len();
    if end <= root {
        return None;
    }
    let start = text[root..end]
        .rfind(|c| is_separator(os, c))
        .map_or(root, |at| root + at + 1);
    let name = &text[start..end];
    if name == "." || name == ".." {
        return None;
    }
    let parent = text[root..start].trim_end_matches(|c| is_separator(os, c));
    let parent = match (root, parent) {
        (0, "") => ".".to_owned(),
        (_, parent) => format!("{}{parent}", &text[..root]),
    };
    Some((parent.into(), name.to_owned()))
}

/// The folder that holds `path`; `.` for a bare name.
pub fn parent(os: Os, path: &Utf8Path) -> Option<Utf8PathBuf> {
    split(os, path).map(|(parent, _)| parent)
}

/// The last name of `path`.
pub fn name(os: Os, path: &Utf8Path) -> Option<String> {
    split(os, path).map(|(_, name)| name)
}

/// The part of `path` that names a root; empty for a relative path.
pub fn root(os: Os, path: &Utf8Path) -> &str {
    let text = path.as_str();
    &text[..root_length(os, text)]
}

/// The names of `path` below its root, without empty ones and `.`.
pub fn names(os: Os, path: &Utf8Path) -> Vec<&str> {
    let text = path.as_str();
    text[root_length(os, text)..]
        .split(|c| is_separator(os, c))
        .filter(|name| !name.is_empty() && *name != ".")
        .collect()
}

/// Whether `path` names the same place whatever the current folder is.
pub fn is_absolute(os: Os, path: &Utf8Path) -> bool {
    let text = path.as_str();
    match os {
        Os::Linux => text.starts_with('/'),
        // `C:name` is relative to the current folder of that drive, `\name` to the current drive.
        Os::Windows => root_length(os, text) >= 3,
    }
}

/// How many bytes of `text` name a root: `/`, `C:\`, `\\server\share\`, `\\?\C:\`.
fn root_length(os: Os, text: &str) -> usize {
    match os {
        Os::Linux => text.len() - text.trim_start_matches('/').len(),
        Os::Windows => windows_root_length(text),
    }
}

fn windows_root_length(text: &str) -> usize {
    let separator = |c| is_separator(Os::Windows, c);
    let after = |from: usize, names: usize| {
        let mut at = from;
        for _ in 0..names {
            at += text[at..]
                .find(separator)
                .map_or(text.len() - at, |n| n + 1);
        }
        at
    };
    let drive = |from: usize| -> Option<usize> {
        let rest = text.get(from..)?;
        let mut characters = rest.chars();
        let (letter, colon) = (characters.next()?, characters.next()?);
        (letter.is_ascii_alphabetic() && colon == ':')
            .then(|| from + 2 + usize::from(characters.next().is_some_and(separator)))
    };
    if let Some(rest) = text.strip_prefix(r"\\?\").or(text.strip_prefix(r"\\.\")) {
        return match rest.get(..4) {
            Some(unc) if unc.eq_ignore_ascii_case(r"UNC\") => after(8, 2),
            _ => drive(4).unwrap_or_else(|| after(4, 1)),
        };
    }
    if text.len() > 2 && text.starts_with(separator) && text[1..].starts_with(separator) {
        return after(2, 2);
    }
    drive(0).unwrap_or_else(|| usize::from(text.starts_with(separator)))
}

/// Why a Windows path has no verbatim form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerbatimError {
    #[error("it is not absolute")]
    Relative,
    #[error("it goes above its root")]
    AboveRoot,
    #[error("it contains a zero character")]
    Zero,
}

/// Spells an absolute Windows path so that the system takes it literally: no limit of 260
/// characters, no trailing dots removed, no reserved names looked for.
pub fn verbatim(path: &Utf8Path) -> Result<String, VerbatimError> {
    let text = path.as_str();
    if text.contains('\0') {
        return Err(VerbatimError::Zero);
    }
    if text.starts_with(r"\\?\") || text.starts_with(r"\\.\") {
        return Ok(text.to_owned());
    }
    if !is_absolute(Os::Windows, path) {
        return Err(VerbatimError::Relative);
    }
    let root = windows_root_length(text);
    let mut names: Vec<&str> = Vec::new();
    for name in self::names(Os::Windows, path) {
        if name != ".." {
            names.push(name);
        } else if names.pop().is_none() {
            return Err(VerbatimError::AboveRoot);
        }
    }
    let prefix = match text[..root].replace('/', r"\") {
        unc if unc.starts_with(r"\\") => format!(r"\\?\UNC\{}", unc[2..].trim_end_matches('\\')),
        drive => format!(r"\\?\{}", drive.trim_end_matches('\\')),
    };
    Ok(format!(r"{prefix}\{}", names.join(r"\")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn splits(os: Os, path: &str, parent: &str, name: &str) {
        assert_eq!(
            split(os, path.into()),
            Some((parent.into(), name.to_owned())),
            "{path}"
        );
    }

    #[test]
    fn a_path_is_split_by_the_rules_of_its_system_not_of_ours() {
        splits(Os::Linux, "/a/b", "/a", "b");
        splits(Os::Linux, "/a", "/", "a");
        splits(Os::Linux, "a", ".", "a");
        splits(Os::Linux, "/a/b/", "/a", "b");
        splits(Os::Linux, r"/a\b", "/", r"a\b");
        splits(Os::Windows, r"C:\a\b", r"C:\a", "b");
        splits(Os::Windows, r"C:\a", r"C:\", "a");
        splits(Os::Windows, "C:/a/b c", "C:/a", "b c");
        splits(Os::Windows, r"\\server\share\a", r"\\server\share\", "a");
        splits(Os::Windows, r"\\?\C:\a", r"\\?\C:\", "a");
        splits(
            Os::Windows,
            r"\\?\UNC\server\share\ä",
            r"\\?\UNC\server\share\",
            "ä",
        );
        for root in ["/", "", "/a/..", "."] {
            assert_eq!(split(Os::Linux, root.into()), None, "{root}");
        }
        for root in [
            r"C:\",
            "C:",
            r"\\server\share",
            r"\\server\share\",
            r"\\?\C:\",
        ] {
            assert_eq!(split(Os::Windows, root.into()), None, "{root}");
        }
    }

    #[test]
    fn names_are_joined_with_the_separator_of_the_system() {
        assert_eq!(join(Os::Linux, "/a".into(), "b"), "/a/b");
        assert_eq!(join(Os::Linux, "/".into(), "b"), "/b");
        assert_eq!(join(Os::Windows, r"C:\a".into(), "b/c"), r"C:\a\b\c");
        assert_eq!(join(Os::Windows, r"C:\".into(), "b"), r"C:\b");
    }

    #[test]
    fn a_windows_path_becomes_verbatim_with_its_dots_resolved() {
        for (path, expected) in [
            (r"C:\a\b", r"\\?\C:\a\b"),
            ("c:/a/./b c/../d", r"\\?\c:\a\d"),
            (r"C:\", r"\\?\C:\"),
            (r"\\server\share\a", r"\\?\UNC\server\share\a"),
            ("//server/share/a", r"\\?\UNC\server\share\a"),
            (r"\\?\C:\a\..\b", r"\\?\C:\a\..\b"),
            (r"C:\Grüße\日本", r"\\?\C:\Grüße\日本"),
        ] {
            assert_eq!(verbatim(path.into()).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn a_path_without_a_verbatim_form_is_refused_with_its_reason() {
        for (path, reason) in [
            ("a", VerbatimError::Relative),
            (r"C:a", VerbatimError::Relative),
            (r"\a", VerbatimError::Relative),
            ("", VerbatimError::Relative),
            (r"C:\a\..\..\b", VerbatimError::AboveRoot),
            (r"\\server\share\..\x", VerbatimError::AboveRoot),
            ("C:\\a\0b", VerbatimError::Zero),
        ] {
            assert_eq!(verbatim(path.into()), Err(reason), "{path}");
        }
    }
}
