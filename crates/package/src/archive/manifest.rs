//! The manifest of an archive: for every entry its path, kind, mode, size and digest. It is written by
//! us and read from anywhere, so reading checks that it makes sense: no path twice, nothing unknown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use transom_model::Os;
use transom_model::package::PackageId;

use super::{Digest, MANIFEST};

/// The format that is written, and the only one there is.
const VERSION: u32 = 1;

/// What an archive contains besides its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub id: PackageId,
    pub os: Os,
    /// By path: plain names joined by `/`.
    pub entries: BTreeMap<String, ManifestEntry>,
}

/// One entry of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry {
    /// The permissions.
    pub mode: u32,
    pub kind: Kind,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Dir,
    File {
        size: u64,
        sha256: Digest,
    },
    /// A symbolic link.
    Link {
        target: String,
    },
}

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("{MANIFEST} cannot be read")]
    Syntax(#[source] serde_json::Error),
    #[error("{MANIFEST} has format {found}, and only format {VERSION} is known")]
    Version { found: u32 },
    #[error("{MANIFEST} has no good entry for `{path}`: {reason}")]
    Entry { path: String, reason: &'static str },
}

/// The file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    version: u32,
    id: PackageId,
    os: Os,
    #[serde(borrow)]
    entries: Vec<Line<'a>>,
}

/// Only the version, to say so when a newer format has other fields.
#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    path: std::borrow::Cow<'a, str>,
    kind: Word,
    #[serde(borrow)]
    mode: std::borrow::Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Dir,
    File,
    Link,
}

impl Manifest {
    /// Writes the file's content: the same for the same entries.
    pub fn render(&self) -> Result<Vec<u8>, serde_json::Error> {
        let entries = self
            .entries
            .iter()
            .map(|(path, entry)| line(path, entry))
            .collect();
        let mut bytes = serde_json::to_vec_pretty(&File {
            version: VERSION,
            id: self.id.clone(),
            os: self.os,
            entries,
        })?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads the file's content.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let file: File<'_> = serde_json::from_slice(bytes).map_err(|error| {
            match serde_json::from_slice::<VersionOnly>(bytes) {
                Ok(VersionOnly { version }) if version != VERSION => {
                    ManifestError::Version { found: version }
                }
                _ => ManifestError::Syntax(error),
            }
        })?;
        if file.version != VERSION {
            return Err(ManifestError::Version {
                found: file.version,
            });
        }
        let mut entries = BTreeMap::new();
        for line in file.entries {
            let path = line.path.to_string();
            let refuse = |reason| ManifestError::Entry {
                path: path.escape_debug().take(200).collect(),
                reason,
            };
            let entry = entry(line).map_err(refuse)?;
            if path == MANIFEST {
                return Err(refuse("a manifest cannot describe itself"));
            }
            if entries.insert(path.clone(), entry).is_some() {
                return Err(refuse("it is there twice"));
            }
        }
        Ok(Self {
            id: file.id,
            os: file.os,
            entries,
        })
    }
}

fn line<'a>(path: &'a str, entry: &ManifestEntry) -> Line<'a> {
    let mut line = Line {
        path: path.into(),
        kind: Word::Dir,
        mode: format!("{:04o}", entry.mode).into(),
        size: None,
        sha256: None,
        target: None,
    };
    match &entry.kind {
        Kind::Dir => {}
        Kind::File { size, sha256 } => {
            line.kind = Word::File;
            line.size = Some(*size);
            line.sha256 = Some(*sha256);
        }
        Kind::Link { target } => {
            line.kind = Word::Link;
            line.target = Some(target.clone());
        }
    }
    line
}

fn entry(line: Line<'_>) -> Result<ManifestEntry, &'static str> {
    let mode = u32::from_str_radix(&line.mode, 8)
        .ok()
        .filter(|mode| line.mode.len() == 4 && *mode <= 0o777)
        .ok_or("its mode is not of the form 0755")?;
    let kind = match (line.kind, line.size, line.sha256, line.target) {
        (Word::Dir, None, None, None) => Kind::Dir,
        (Word::File, Some(size), Some(sha256), None) => Kind::File { size, sha256 },
        (Word::Link, None, None, Some(target)) => Kind::Link { target },
        _ => {
            return Err(
                "a file has a size and a digest, a link has a target, a folder has neither",
            );
        }
    };
    Ok(ManifestEntry { mode, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let entry = |mode, kind| ManifestEntry { mode, kind };
        Manifest {
            id: "tool--1".parse().unwrap(),
            os: Os::Linux,
            entries: BTreeMap::from([
                ("bin".to_owned(), entry(0o755, Kind::Dir)),
                (
                    "bin/tool \"ä\"".to_owned(),
                    entry(
                        0o755,
                        Kind::File {
                            size: 3,
                            sha256: Digest::of(b"abc"),
                        },
                    ),
                ),
                (
                    "bin/t".to_owned(),
                    entry(
                        0o777,
                        Kind::Link {
                            target: "tool".to_owned(),
                        },
                    ),
                ),
            ]),
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_is_written() {
        let bytes = manifest().render().unwrap();
        assert_eq!(Manifest::parse(&bytes).unwrap(), manifest());
    }

    #[test]
    fn a_manifest_that_makes_no_sense_is_refused() {
        let text = String::from_utf8(manifest().render().unwrap()).unwrap();
        for (from, to, reason) in [
            ("\"version\": 1", "\"version\": 2", "format 2"),
            ("\"id\"", "\"more\": 1, \"id\"", "cannot be read"),
            ("\"0755\"", "\"4755\"", "mode"),
            ("\"0755\"", "\"755\"", "mode"),
            ("\"0755\"", "\"rwxr\"", "mode"),
            ("\"dir\"", "\"file\"", "a file has"),
            ("\"dir\"", "\"pipe\"", "cannot be read"),
            ("\"bin/t\"", "\"bin\"", "twice"),
            ("\"bin/t\"", "\"manifest.json\"", "itself"),
            ("ba7816", "BA7816", "cannot be read"),
            ("tool--1", "tool", "cannot be read"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            let error = Manifest::parse(changed.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(reason), "{from}: {error}");
        }
    }

    #[test]
    fn a_newer_format_is_named_even_if_it_cannot_be_read() {
        let error = Manifest::parse(br#"{"version": 7, "all": "new"}"#).unwrap_err();
        assert!(error.to_string().contains("format 7"), "{error}");
    }
}
