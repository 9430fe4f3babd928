//! Operating system of a node, an image or a package, as data. What a node runs is never `cfg!`: a
//! Linux machine plans, renders and tests everything meant for a Windows node.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The operating system of a node, an image or a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    Linux,
    Windows,
}

/// How one system writes paths, names and text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Separates the parts of a path when we write one.
    pub path_separator: char,
    /// All characters that separate the parts of a path when we read one.
    pub path_separators_read: &'static [char],
    /// Separates the folders of `PATH`.
    pub search_path_separator: char,
    /// What the file name of a program ends with.
    pub executable_suffix: &'static str,
    /// What the file name of a script of ours ends with.
    pub script_suffix: &'static str,
    pub line_end: &'static str,
    /// Whether `a` and `A` are two files.
    pub case_sensitive: bool,
    /// Characters that no file name may have, besides the control characters.
    pub forbidden_in_names: &'static [char],
    /// Names that mean a device whatever their extension, in upper case.
    pub reserved_names: &'static [&'static str],
}

const LINUX: Rules = Rules {
    path_separator: '/',
    path_separators_read: &['/'],
    search_path_separator: ':',
    executable_suffix: "",
    script_suffix: ".sh",
    line_end: "\n",
    case_sensitive: true,
    forbidden_in_names: &['/', '\0'],
    reserved_names: &[],
};

const WINDOWS: Rules = Rules {
    path_separator: '\\',
    path_separators_read: &['\\', '/'],
    search_path_separator: ';',
    executable_suffix: ".exe",
    script_suffix: ".ps1",
    line_end: "\r\n",
    case_sensitive: false,
    forbidden_in_names: &['<', '>', ':', '"', '/', '\\', '|', '?', '*'],
    reserved_names: &[
        "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "COM0", "COM1", "COM2", "COM3", "COM4",
        "COM5", "COM6", "COM7", "COM8", "COM9", "COM¹", "COM²", "COM³", "LPT0", "LPT1", "LPT2",
        "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9", "LPT¹", "LPT²", "LPT³",
    ],
};

impl Os {
    /// Every system, in the order in which lists show them.
    pub const ALL: [Self; 2] = [Self::Linux, Self::Windows];

    /// The spelling of Kubernetes and OCI.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Windows => "windows",
        }
    }

    /// How this system writes paths, names and text.
    pub const fn rules(self) -> &'static Rules {
        match self {
            Self::Linux => &LINUX,
            Self::Windows => &WINDOWS,
        }
    }

    /// The file name of the program `stem` on this system.
    pub fn executable(self, stem: &str) -> String {
        format!("{stem}{}", self.rules().executable_suffix)
    }

    /// Whether both names mean the same file in one folder of this system.
    pub fn same_name(self, left: &str, right: &str) -> bool {
        if self.rules().case_sensitive {
            left == right
        } else {
            left.chars()
                .flat_map(char::to_lowercase)
                .eq(right.chars().flat_map(char::to_lowercase))
        }
    }

    /// Refuses a file name that this system cannot store under exactly that name.
    pub fn check_file_name(self, name: &str) -> Result<(), FileNameError> {
        let refuse = |why| {
            Err(FileNameError {
                name: name.to_owned(),
                os: self,
                why,
            })
        };
        let rules = self.rules();
        if name.is_empty() {
            return refuse(NameFault::Empty);
        }
        if name == "." || name == ".." {
            return refuse(NameFault::Relative);
        }
        if let Some(bad) = name
            .chars()
            .find(|c| rules.forbidden_in_names.contains(c) || is_control_here(self, *c))
        {
            return refuse(NameFault::Character(bad));
        }
        // Windows drops the end of such names silently, so a second file would replace the first.
        if self == Self::Windows && name.ends_with(['.', ' ']) {
            return refuse(NameFault::Ending);
        }
        // A device is meant even with an extension or spaces behind the name: `nul .txt`.
        let stem = name.split('.').next().unwrap_or(name).trim_end();
        let upper = stem.to_uppercase();
        if let Some(device) = rules.reserved_names.iter().find(|device| **device == upper) {
            return refuse(NameFault::Device(device));
        }
        Ok(())
    }
}

fn is_control_here(os: Os, c: char) -> bool {
    os == Os::Windows && (c as u32) < 0x20
}

impl fmt::Display for Os {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text is not the name of an operating system that nodes can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an operating system of a node: use `linux` or `windows`")]
pub struct ParseOsError {
    pub text: String,
}

impl FromStr for Os {
    type Err = ParseOsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|os| os.as_str() == text)
            .ok_or_else(|| ParseOsError {
                text: text.to_owned(),
            })
    }
}

/// A file name that a system cannot store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` cannot be a file name on {os}: {why}")]
pub struct FileNameError {
    pub name: String,
    pub os: Os,
    pub why: NameFault,
}

/// What is wrong with a file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    #[error("it is empty")]
    Empty,
    #[error("it means a folder relative to another")]
    Relative,
    #[error("the character {0:?} is not allowed")]
    Character(char),
    #[error("a full stop or space at the end would be dropped")]
    Ending,
    #[error("it means the device {0}")]
    Device(&'static str),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_spelling_of_kubernetes_is_read_and_written() {
        for os in Os::ALL {
            assert_eq!(os.to_string().parse(), Ok(os));
            assert_eq!(serde_json::to_string(&os).unwrap(), format!("\"{os}\""));
        }
    }

    #[test]
    fn another_system_is_refused_by_name() {
        let error = "darwin".parse::<Os>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`darwin` is not an operating system of a node: use `linux` or `windows`"
        );
        assert!(
            "Windows".parse::<Os>().is_err(),
            "case is significant on the wire"
        );
    }

    #[test]
    fn devices_are_no_file_names_on_windows_only() {
        for name in ["nul", "NUL.txt", "con .log", "COM1", "lpt².dat"] {
            assert!(matches!(
                Os::Windows.check_file_name(name).unwrap_err().why,
                NameFault::Device(_)
            ));
            assert_eq!(Os::Linux.check_file_name(name), Ok(()));
        }
        assert_eq!(Os::Windows.check_file_name("console"), Ok(()));
        assert_eq!(Os::Windows.check_file_name("com10"), Ok(()));
    }

    #[test]
    fn names_that_a_system_would_change_are_refused() {
        let why = |os: Os, name: &str| os.check_file_name(name).unwrap_err().why;
        assert_eq!(why(Os::Windows, "a."), NameFault::Ending);
        assert_eq!(why(Os::Windows, "a "), NameFault::Ending);
        assert_eq!(why(Os::Windows, "a:b"), NameFault::Character(':'));
        assert_eq!(why(Os::Windows, "a\u{1}"), NameFault::Character('\u{1}'));
        assert_eq!(why(Os::Linux, "a/b"), NameFault::Character('/'));
        for os in Os::ALL {
            assert_eq!(why(os, ""), NameFault::Empty);
            assert_eq!(why(os, ".."), NameFault::Relative);
        }
    }

    #[test]
    fn names_differ_by_case_on_linux_only() {
        assert!(Os::Windows.same_name("Bin", "bIN"));
        assert!(!Os::Linux.same_name("Bin", "bIN"));
        assert!(Os::Windows.same_name("Ärger", "ärger"));
    }

    proptest! {
        #[test]
        fn a_checked_name_is_one_part_of_a_path(name in "\\PC{0,20}") {
            for os in Os::ALL {
                if os.check_file_name(&name).is_ok() {
                    prop_assert!(!name.contains(os.rules().path_separators_read));
                    prop_assert!(!name.is_empty());
                }
            }
        }

        #[test]
        fn what_windows_stores_linux_stores_too(name in "\\PC{0,20}") {
            if Os::Windows.check_file_name(&name).is_ok() {
                prop_assert!(Os::Linux.check_file_name(&name).is_ok());
            }
        }
    }
}
