//! Where things are in a repository. Paths are those of DC/OS, so that old clients find what they ask
//! for; names that some system cannot store are written differently, always in the same way.

use std::fmt;
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use transom_model::Os;
use transom_model::package::PackageId;
use url::Url;

pub(super) const METADATA: &str = "metadata";
pub(super) const PACKAGES: &str = "packages";
pub(super) const PACKAGE_LISTS: &str = "package_lists";
pub(super) const TIMESTAMP: &str = "timestamp.json";
/// What the file name of a package list ends with.
pub(super) const LIST_SUFFIX: &str = ".package_list.json";
/// Roots that wait for signatures. Not below `metadata`, where clients look for the next root.
pub(super) const PENDING: &str = "pending";
pub(super) const PENDING_ROOT: &str = "root.json";
/// Says that the folder mirrors a part of another repository.
pub(super) const MIRROR: &str = "mirror.json";
pub(super) const LOCK: &str = ".lock";

/// How an archive is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    TarZstd,
    Zip,
    /// What DC/OS makes.
    TarXz,
}

impl Form {
    pub const ALL: [Self; 3] = [Self::TarZstd, Self::Zip, Self::TarXz];

    pub fn extension(self) -> &'static str {
        match self {
            Self::TarZstd => "tar.zst",
            Self::Zip => "zip",
            Self::TarXz => "tar.xz",
        }
    }

    /// The system that archives of this form are for, unless they say otherwise.
    pub fn usual_os(self) -> Os {
        match self {
            Self::TarZstd | Self::TarXz => Os::Linux,
            Self::Zip => Os::Windows,
        }
    }

    /// Splits a file name into what it names and its form.
    pub fn split(file_name: &str) -> Option<(&str, Self)> {
        Self::ALL.into_iter().find_map(|form| {
            let stem = file_name.strip_suffix(form.extension())?;
            Some((stem.strip_suffix('.')?, form))
        })
    }
}

/// Names a list of packages: the hash of their ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PackageListId(String);

/// The text is not the id of a package list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not the id of a package list: it has 40 digits of `0-9a-f`")]
pub struct PackageListIdError {
    text: String,
}

impl PackageListId {
    /// The id that a list of these packages has.
    pub fn of(packages: &[PackageId]) -> Self {
        Self(crate::hash::hash_texts(
            packages.iter().map(PackageId::as_str),
        ))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PackageListId {
    type Err = PackageListIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 40 && text.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(PackageListIdError {
                text: text.chars().take(80).collect(),
            })
        }
    }
}

impl fmt::Display for PackageListId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl TryFrom<String> for PackageListId {
    type Error = PackageListIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PackageListId> for String {
    fn from(id: PackageListId) -> Self {
        id.0
    }
}

/// Where an archive is, below the repository: names joined by `/`.
pub(super) fn package_path(id: &PackageId, form: Form) -> String {
    format!(
        "{PACKAGES}/{}/{}.{}",
        stored(id.name_str()),
        stored(id.as_str()),
        form.extension()
    )
}

/// Where a package list is, below the repository.
pub(super) fn package_list_path(id: &PackageListId) -> String {
    format!("{PACKAGE_LISTS}/{id}{LIST_SUFFIX}")
}

/// A name as every system can store it. `!` and two hexadecimal digits stand for a character that
/// Windows refuses: a colon, a full stop at the end, the first letter of the name of a device. No
/// identifier holds a `!`, so two names never become one.
fn stored(name: &str) -> String {
    let escaped = |letter: char| format!("!{:02x}", u32::from(letter));
    let mut stored = name.replace(':', &escaped(':'));
    if let Some(front) = stored.strip_suffix('.') {
        stored = format!("{front}{}", escaped('.'));
    }
    let mut letters = stored.chars();
    match letters.next() {
        // Only a device is left to refuse.
        Some(first) if Os::Windows.check_file_name(&stored).is_err() => {
            format!("{}{}", escaped(first), letters.as_str())
        }
        _ => stored,
    }
}

/// Undoes [`stored`], as far as the text can be the work of it.
pub(super) fn unstored(stored: &str) -> String {
    let mut parts = stored.split('!');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let letter = part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .filter(u8::is_ascii);
        match letter {
            Some(letter) => {
                name.push(char::from(letter));
                name += &part[2..];
            }
            // Then it is no identifier either.
            None => {
                name.push('!');
                name += part;
            }
        }
    }
    name
}

/// The address of a path below `base`. Web servers disagree about `+` and `@`, so these are encoded.
pub(super) fn join(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let mut text = base.path().trim_end_matches('/').to_owned();
    for name in path.split('/') {
        text.push('/');
        for byte in name.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'!') {
                text.push(char::from(byte));
            } else {
                text.push('%');
                text += &crate::hash::hex(&[byte]).to_ascii_uppercase();
            }
        }
    }
    url.set_path(&text);
    url
}

/// The path of something in a repository that is a folder.
pub(super) fn below(root: &Utf8Path, path: &str) -> Utf8PathBuf {
    let mut joined = root.to_owned();
    for name in path.split('/') {
        joined.push(name);
    }
    joined
}

/// Reads where a repository is: an address, or a folder.
pub fn location(text: &str) -> Option<Url> {
    match Url::parse(text) {
        // `C:\folder` would be an address of the scheme `c`.
        Ok(url) if url.scheme().len() > 1 => Some(url),
        _ => {
            let folder = std::path::absolute(text).ok()?;
            Url::from_directory_path(folder).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(id: &str) -> String {
        package_path(&id.parse().unwrap(), Form::Zip)
    }

    #[test]
    fn ordinary_packages_are_where_dcos_looks_for_them() {
        let id = "etcd--0c15143d32850b279197a08ac3f306cb97fb83f4";
        assert_eq!(
            package_path(&id.parse().unwrap(), Form::TarXz),
            format!("packages/etcd/{id}.tar.xz")
        );
    }

    #[test]
    fn what_windows_cannot_store_is_written_differently() {
        for (id, expected) in [
            ("a@b+c--1@2", "packages/a@b+c/a@b+c--1@2.zip"),
            ("a--1:2", "packages/a/a--1!3a2.zip"),
            ("nul--1", "packages/!6eul/nul--1.zip"),
            ("COM1.x--1", "packages/!43OM1.x/!43OM1.x--1.zip"),
            ("a.--1", "packages/a!2e/a.--1.zip"),
            ("con.--1", "packages/con!2e/!63on.--1.zip"),
        ] {
            assert_eq!(path(id), expected);
        }
    }

    #[test]
    fn addresses_hold_no_letter_that_servers_read_differently() {
        let base = Url::parse("https://packages.test/stable/").unwrap();
        let url = join(&base, &path("a@b+c--1:2"));
        assert_eq!(
            url.as_str(),
            "https://packages.test/stable/packages/a%40b%2Bc/a%40b%2Bc--1!3a2.zip"
        );
    }

    #[test]
    fn the_form_is_read_from_the_file_name() {
        assert_eq!(Form::split("a--1.tar.zst"), Some(("a--1", Form::TarZstd)));
        assert_eq!(Form::split("a--1.0.zip"), Some(("a--1.0", Form::Zip)));
        assert_eq!(Form::split("a--1.tar.gz"), None);
        assert_eq!(Form::split("a--1zip"), None);
    }

    #[test]
    fn addresses_and_folders_are_told_apart() {
        let https = location("https://packages.test/x").unwrap();
        assert_eq!(https.as_str(), "https://packages.test/x");
        assert_eq!(location("relative/folder").unwrap().scheme(), "file");
    }

    proptest! {
        #[test]
        fn any_text_can_be_read_as_a_stored_name(text in "\\PC{0,20}") {
            if !text.contains('!') {
                prop_assert_eq!(unstored(&text), text);
            }
        }

        #[test]
        fn every_id_has_a_place_of_its_own_that_both_systems_can_store(
            left in "[a-zA-Z0-9@_+][a-zA-Z0-9@._+]{0,3}--[a-zA-Z0-9@_+:.]{1,3}",
            right in "[a-zA-Z0-9@_+][a-zA-Z0-9@._+]{0,3}--[a-zA-Z0-9@_+:.]{1,3}",
        ) {
            for os in Os::ALL {
                for name in path(&left).split('/') {
                    prop_assert!(os.check_file_name(name).is_ok(), "{name}");
                }
            }
            prop_assert_eq!(path(&left) == path(&right), left == right);
            prop_assert_eq!(unstored(&stored(&left)), left);
        }
    }
}
