//! What to start: a complete description. Nothing is inherited that is not written here.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::{GroupId, Limits};

/// A program to start, and everything around it.
///
/// # Platform behavior
///
/// On Windows `SystemRoot` is added to the environment when it is not given: without it, Windows
/// programs fail in surprising ways (no sockets, no random numbers). `user`, `umask`, `nice` and
/// `arg0` exist on Linux only; a `user` that is not ourselves is an error on Windows, as is any
/// group of users; `umask` and `arg0` mean nothing there, `nice` becomes a priority class.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// An absolute path: no search happens.
    pub program: Utf8PathBuf,
    pub args: Vec<String>,
    /// Complete, but for the marker of the group.
    pub env: BTreeMap<String, String>,
    pub directory: Option<Utf8PathBuf>,
    pub stdin: Input,
    pub stdout: Output,
    pub stderr: Output,
    pub user: Option<UserSpec>,
    /// The group of users that it belongs to first; `None`: that of the user.
    #[serde(default)]
    pub user_group: Option<GroupSpec>,
    /// More groups of users, besides those that the user is a member of.
    #[serde(default)]
    pub more_user_groups: Vec<GroupSpec>,
    pub lifetime: Lifetime,
    /// Several processes may share a group; whatever is done to the tree is done to all of them.
    pub group: GroupId,
    pub limits: Limits,
    /// What the program sees as its own name, if not its path.
    pub arg0: Option<String>,
    pub umask: Option<u32>,
    pub nice: Option<i32>,
    /// How likely the kernel ends it when memory is short: -1000 (never) to 1000 (first). Where that
    /// cannot be set the program runs all the same, and `LimitReport` says so.
    #[serde(default)]
    pub out_of_memory_score: Option<i16>,
}

/// Values of variables are often secrets, and descriptions end up in logs: only names are shown.
impl fmt::Debug for Spawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Taken apart, so that a new field cannot be forgotten.
        let Self {
            program,
            args,
            env,
            directory,
            stdin,
            stdout,
            stderr,
            user,
            user_group,
            more_user_groups,
            lifetime,
            group,
            limits,
            arg0,
            umask,
            nice,
            out_of_memory_score,
        } = self;
        f.debug_struct("Spawn")
            .field("program", program)
            .field("args", args)
            .field("env", &env.keys().collect::<Vec<_>>())
            .field("directory", directory)
            .field("stdin", stdin)
            .field("stdout", stdout)
            .field("stderr", stderr)
            .field("user", user)
            .field("user_group", user_group)
            .field("more_user_groups", more_user_groups)
            .field("lifetime", lifetime)
            .field("group", group)
            .field("limits", limits)
            .field("arg0", arg0)
            .field("umask", umask)
            .field("nice", nice)
            .field("out_of_memory_score", out_of_memory_score)
            .finish()
    }
}

impl Spawn {
    /// `program` without arguments, environment, input and output, in a group of its own.
    pub fn new(program: impl Into<Utf8PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            directory: None,
            stdin: Input::Null,
            stdout: Output::Null,
            stderr: Output::Null,
            user: None,
            user_group: None,
            more_user_groups: Vec::new(),
            lifetime: Lifetime::WithOwner,
            group: GroupId::unique(),
            limits: Limits::default(),
            arg0: None,
            umask: None,
            nice: None,
            out_of_memory_score: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    Null,
    /// Our end is `Process::take_stdin`; closing it is the end of the program's input.
    Pipe,
    /// Read from its start; it must exist.
    File(Utf8PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    Null,
    Pipe,
    /// Created when missing. The same path for both outputs keeps the order of their lines.
    Append(Utf8PathBuf),
    /// Emptied, or created when missing.
    Truncate(Utf8PathBuf),
    /// Ours.
    Inherit,
}

/// What happens to the group when its owner, the process that spawned it, ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lifetime {
    /// The main process dies with its owner, however that ends.
    ///
    /// # Platform behavior
    ///
    /// On Windows the whole group dies. On Linux its descendants may stay behind; the next owner
    /// finds them with `Processes::leftovers` and ends them with `Processes::kill_group`.
    WithOwner,
    /// The group lives on, to be adopted.
    Detached,
}

/// An account: by name, or by number with an optional group number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum UserSpec {
    Name(String),
    Id { user: u32, group: Option<u32> },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is neither the name of a user, nor a number, nor `number:number`")]
pub struct InvalidUser {
    pub text: String,
}

impl FromStr for UserSpec {
    type Err = InvalidUser;

    fn from_str(text: &str) -> Result<Self, InvalidUser> {
        let invalid = || InvalidUser {
            text: text.to_owned(),
        };
        if text.is_empty() || text.contains(['\0', '\n']) {
            return Err(invalid());
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            if text.contains(':') {
                return Err(invalid());
            }
            return Ok(Self::Name(text.to_owned()));
        }
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        Ok(Self::Id {
            user: user.parse().map_err(|_| invalid())?,
            group: group.map(str::parse).transpose().map_err(|_| invalid())?,
        })
    }
}

impl TryFrom<String> for UserSpec {
    type Error = InvalidUser;

    fn try_from(text: String) -> Result<Self, InvalidUser> {
        text.parse()
    }
}

impl From<UserSpec> for String {
    fn from(user: UserSpec) -> Self {
        user.to_string()
    }
}

impl fmt::Display for UserSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Id { user, group: None } => write!(f, "{user}"),
            Self::Id {
                user,
                group: Some(group),
            } => write!(f, "{user}:{group}"),
        }
    }
}

/// A group of users: by name, or by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum GroupSpec {
    Name(String),
    Id(u32),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is neither the name of a group of users nor a number")]
pub struct InvalidGroup {
    pub text: String,
}

impl FromStr for GroupSpec {
    type Err = InvalidGroup;

    fn from_str(text: &str) -> Result<Self, InvalidGroup> {
        let invalid = || InvalidGroup {
            text: text.to_owned(),
        };
        if text.is_empty() || text.contains(['\0', '\n', ':', ',']) {
            return Err(invalid());
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return text.parse().map(Self::Id).map_err(|_| invalid());
        }
        Ok(Self::Name(text.to_owned()))
    }
}

impl TryFrom<String> for GroupSpec {
    type Error = InvalidGroup;

    fn try_from(text: String) -> Result<Self, InvalidGroup> {
        text.parse()
    }
}

impl From<GroupSpec> for String {
    fn from(group: GroupSpec) -> Self {
        group.to_string()
    }
}

impl fmt::Display for GroupSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Id(number) => write!(f, "{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_never_shown() {
        let mut spawn = Spawn::new("/bin/true");
        spawn.env.insert("DB_PASSWORD".into(), "hunter2".into());
        let shown = format!("{spawn:?} {spawn:#?}");
        assert!(shown.contains("DB_PASSWORD"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn groups_are_names_or_numbers_and_nothing_else() {
        for good in ["adm", "www-data", "0", "1000"] {
            assert_eq!(good.parse::<GroupSpec>().unwrap().to_string(), good);
        }
        for bad in ["", "1x", "4294967296", "a:b", "a,b", "a\0", "a\n"] {
            assert!(bad.parse::<GroupSpec>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn users_are_names_or_numbers_and_nothing_else() {
        for good in ["root", "www-data", "1000", "1000:100"] {
            assert_eq!(good.parse::<UserSpec>().unwrap().to_string(), good);
        }
        for bad in ["", "1000:", ":1", "1x", "1:x", "4294967296", "a:b", "a\0"] {
            assert!(bad.parse::<UserSpec>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_description_survives_serialization() {
        let mut spawn = Spawn::new("/bin/true");
        spawn.stdout = Output::Append("/var/log/x".into());
        spawn.stdin = Input::File("/etc/x".into());
        spawn.user = Some("12:34".parse().unwrap());
        spawn.user_group = Some("56".parse().unwrap());
        spawn.more_user_groups = vec!["adm".parse().unwrap()];
        let json = serde_json::to_string(&spawn).unwrap();
        assert_eq!(serde_json::from_str::<Spawn>(&json).unwrap(), spawn);
    }
}
