//! Names of units. A `UnitName` that exists is valid: its type is one we run, its characters are
//! allowed, its length is at most 255, so it is always safe as a file name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use transom_model::os::Os;

/// The longest name, as in systemd.
pub const MAXIMUM_LENGTH: usize = 255;

/// Types of systemd that we do not run; names of these are recognised to explain it.
const FOREIGN_TYPES: [&str; 9] = [
    "socket",
    "mount",
    "automount",
    "swap",
    "path",
    "slice",
    "scope",
    "device",
    "snapshot",
];

/// What a unit is, by its suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitType {
    Service,
    Target,
    Timer,
}

impl UnitType {
    pub const ALL: [Self; 3] = [Self::Service, Self::Target, Self::Timer];

    /// The suffix without its dot.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Target => "target",
            Self::Timer => "timer",
        }
    }

    fn from_suffix(suffix: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.suffix() == suffix)
    }
}

/// Why a text is not the name of a unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitNameError {
    #[error("unit name is empty")]
    Empty,
    #[error("unit name is longer than {MAXIMUM_LENGTH} characters")]
    TooLong,
    #[error("unit name `{name}` has no suffix such as `.service`")]
    NoSuffix { name: String },
    #[error("`{name}`: units of type `.{suffix}` are not supported by this supervisor")]
    UnsupportedType { name: String, suffix: String },
    #[error("unit name `{name}` has the unknown suffix `.{suffix}`")]
    UnknownType { name: String, suffix: String },
    #[error("unit name `{name}` contains `{character}`, which is not allowed there")]
    Character { name: String, character: char },
    #[error("unit name `{name}` has nothing before its `{before}`")]
    NoPrefix { name: String, before: char },
    #[error("`{name}` is a template: name an instance, such as `{prefix}@name.{suffix}`")]
    Template {
        name: String,
        prefix: String,
        suffix: &'static str,
    },
    #[error("`{name}` is a path: name a unit")]
    Path { name: String },
}

/// A valid name: `web.service`, the template `worker@.service` or its instance `worker@1.service`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UnitName {
    text: String,
    unit_type: UnitType,
}

impl UnitName {
    /// Accepts a full name with suffix, as in unit files.
    pub fn new(text: &str) -> Result<Self, UnitNameError> {
        let name = || text.to_owned();
        if text.is_empty() {
            return Err(UnitNameError::Empty);
        }
        if text.len() > MAXIMUM_LENGTH {
            return Err(UnitNameError::TooLong);
        }
        let Some((stem, suffix)) = text.rsplit_once('.') else {
            return Err(UnitNameError::NoSuffix { name: name() });
        };
        let Some(unit_type) = UnitType::from_suffix(suffix) else {
            let suffix = suffix.to_owned();
            return Err(if FOREIGN_TYPES.contains(&suffix.as_str()) {
                UnitNameError::UnsupportedType {
                    name: name(),
                    suffix,
                }
            } else {
                UnitNameError::UnknownType {
                    name: name(),
                    suffix,
                }
            });
        };
        if stem.is_empty() {
            return Err(UnitNameError::NoPrefix {
                name: name(),
                before: '.',
            });
        }
        if stem.starts_with('@') {
            return Err(UnitNameError::NoPrefix {
                name: name(),
                before: '@',
            });
        }
        if let Some(character) = stem
            .chars()
            .find(|character| !is_name_character(*character))
        {
            return Err(UnitNameError::Character {
                name: name(),
                character,
            });
        }
        Ok(Self {
            text: name(),
            unit_type,
        })
    }

    /// Accepts what people type: no suffix means `.service`, and characters that names cannot hold
    /// are escaped, as `systemctl` does.
    pub fn from_command_line(text: &str) -> Result<Self, UnitNameError> {
        if text.contains('/') {
            return Err(UnitNameError::Path {
                name: text.to_owned(),
            });
        }
        match Self::new(text) {
            Err(UnitNameError::NoSuffix { .. } | UnitNameError::UnknownType { .. }) => {
                Self::new(&format!("{}.service", escape_forbidden(text)))
            }
            Err(UnitNameError::Character { .. }) => Self::new(&escape_forbidden(text)),
            other => other,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn unit_type(&self) -> UnitType {
        self.unit_type
    }

    /// The name without its suffix: `%N`'s escaped form.
    pub fn stem(&self) -> &str {
        &self.text[..self.text.len() - self.unit_type.suffix().len() - 1]
    }

    /// The part before `@`, or the whole stem.
    pub fn prefix(&self) -> &str {
        self.stem()
            .split_once('@')
            .map_or(self.stem(), |(prefix, _)| prefix)
    }

    /// The part between `@` and the suffix, if this is an instance.
    pub fn instance(&self) -> Option<&str> {
        self.stem()
            .split_once('@')
            .map(|(_, instance)| instance)
            .filter(|instance| !instance.is_empty())
    }

    pub fn is_template(&self) -> bool {
        self.stem()
            .split_once('@')
            .is_some_and(|(_, instance)| instance.is_empty())
    }

    /// The template this is an instance of.
    pub fn template(&self) -> Option<Self> {
        self.instance()?;
        Some(Self {
            text: format!("{}@.{}", self.prefix(), self.unit_type.suffix()),
            unit_type: self.unit_type,
        })
    }

    /// The instance of this template for `instance`.
    pub fn with_instance(&self, instance: &str) -> Result<Self, UnitNameError> {
        Self::new(&format!(
            "{}@{instance}.{}",
            self.prefix(),
            self.unit_type.suffix()
        ))
    }

    /// The name with another type: a timer's service, for example.
    pub fn with_type(&self, unit_type: UnitType) -> Result<Self, UnitNameError> {
        Self::new(&format!("{}.{}", self.stem(), unit_type.suffix()))
    }

    /// The name as a file's name. On Windows `\\` and `:` have a meaning in paths, so they are
    /// written `%5C` and `%3A`; no name contains a percent sign otherwise.
    pub fn file_name(&self, os: Os) -> String {
        match os {
            Os::Linux => self.text.clone(),
            Os::Windows => self.text.replace('\\', "%5C").replace(':', "%3A"),
        }
    }

    /// Undoes `file_name`.
    pub fn from_file_name(file_name: &str, os: Os) -> Result<Self, UnitNameError> {
        match os {
            Os::Linux => Self::new(file_name),
            Os::Windows => Self::new(&file_name.replace("%5C", "\\").replace("%3A", ":")),
        }
    }

    /// Names whose `.d` folders also apply, least specific first: `service`, `a-.service`,
    /// `a-b-.service`, then for instances the template, then the name itself.
    pub fn drop_in_names(&self) -> Vec<String> {
        let suffix = self.unit_type.suffix();
        let mut names = vec![suffix.to_owned()];
        let prefix = self.prefix();
        let at = if self.stem().contains('@') { "@" } else { "" };
        for (index, _) in prefix.match_indices('-') {
            // A dash at the end truncates to the name itself.
            if index + 1 < prefix.len() && index > 0 {
                names.push(format!("{}{at}.{suffix}", &prefix[..=index]));
            }
        }
        if let Some(template) = self.template() {
            names.push(template.text);
        }
        names.push(self.text.clone());
        names
    }
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || ":-_.\\@".contains(character)
}

/// Replaces only what a name cannot hold, so that names typed with care stay as they are.
fn escape_forbidden(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_name_character(character) {
            escaped.push(character);
        } else {
            push_escaped_bytes(&mut escaped, character);
        }
    }
    escaped
}

fn push_escaped_bytes(target: &mut String, character: char) {
    let mut buffer = [0; 4];
    for byte in character.encode_utf8(&mut buffer).bytes() {
        target.extend(["\\x", &format!("{byte:02x}")]);
    }
}

/// Makes any text a part of a unit name, as `systemd-escape` does: `/` becomes `-`, others `\xNN`.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, character) in text.chars().enumerate() {
        match character {
            '/' => escaped.push('-'),
            '.' if index == 0 => push_escaped_bytes(&mut escaped, '.'),
            plain if plain.is_ascii_alphanumeric() || ":_.".contains(plain) => escaped.push(plain),
            other => push_escaped_bytes(&mut escaped, other),
        }
    }
    escaped
}

/// Undoes `escape`. What is not an escape stays; escapes that are not UTF-8 together give `None`.
pub fn unescape(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut unescaped = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        match bytes[index] {
            b'-' => unescaped.push(b'/'),
            b'\\' if bytes.get(index + 1) == Some(&b'x') => {
                let digits = text.get(index + 2..index + 4)?;
                unescaped.push(u8::from_str_radix(digits, 16).ok()?);
                index += 3;
            }
            other => unescaped.push(other),
        }
        index += 1;
    }
    String::from_utf8(unescaped).ok()
}

impl FromStr for UnitName {
    type Err = UnitNameError;

    fn from_str(text: &str) -> Result<Self, UnitNameError> {
        Self::new(text)
    }
}

impl TryFrom<String> for UnitName {
    type Error = UnitNameError;

    fn try_from(text: String) -> Result<Self, UnitNameError> {
        Self::new(&text)
    }
}

impl From<UnitName> for String {
    fn from(name: UnitName) -> Self {
        name.text
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl AsRef<str> for UnitName {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// What people type where several units may be meant: `web*`, `worker@?.service`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitPattern(String);

impl UnitPattern {
    /// A pattern without suffix and without wildcard at its end means services, as in systemctl.
    pub fn new(text: &str) -> Self {
        let has_suffix = UnitType::ALL
            .iter()
            .any(|kind| text.ends_with(&format!(".{}", kind.suffix())));
        if has_suffix || is_glob(text) {
            Self(text.to_owned())
        } else {
            Self(format!("{text}.service"))
        }
    }

    pub fn matches(&self, name: &UnitName) -> bool {
        glob_matches(&self.0, name.as_str())
    }
}

/// Whether `text` holds a wildcard.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Shell-style matching: `*`, `?`, `[a-z]`, `[!a-z]`. Linear in memory, quadratic in time at worst.
pub fn glob_matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut position) = (0, 0);
    // Where to go on from when the last `*` has to swallow one character more.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if at < pattern.len() && pattern[at] == '*' {
            retry = Some((at + 1, position));
            at += 1;
            continue;
        }
        if position == text.len() {
            return at == pattern.len();
        }
        if let Some(next) = match_one(&pattern, at, text[position]) {
            at = next;
            position += 1;
        } else if let Some((after_star, from)) = retry {
            at = after_star;
            position = from + 1;
            retry = Some((after_star, position));
        } else {
            return false;
        }
    }
}

/// The pattern position after an element that matches `character`.
fn match_one(pattern: &[char], at: usize, character: char) -> Option<usize> {
    match *pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => match match_class(&pattern[at + 1..], character) {
            Some((true, length)) => Some(at + 1 + length),
            Some((false, _)) => None,
            None => (character == '[').then_some(at + 1),
        },
        literal => (literal == character).then_some(at + 1),
    }
}

/// Whether a class matches and how long it is; `None` when its bracket is never closed.
fn match_class(class: &[char], character: char) -> Option<(bool, usize)> {
    let negated = matches!(class.first(), Some('!' | '^'));
    let start = usize::from(negated);
    // A bracket right at the start is a member, not the end.
    let end = start
        + 1
        + class
            .get(start + 1..)?
            .iter()
            .position(|other| *other == ']')?;
    let mut found = false;
    let mut index = start;
    while index < end {
        if index + 2 < end && class[index + 1] == '-' {
            found |= (class[index]..=class[index + 2]).contains(&character);
            index += 3;
        } else {
            found |= class[index] == character;
            index += 1;
        }
    }
    Some((found != negated, end + 1))
}
