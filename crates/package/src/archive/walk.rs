//! What goes into an archive: all that is in a folder, sorted, with normal modes, by the rules of the
//! system that will use it. What that system could not have is refused here, before it is packed.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::archive::{Refusal, check_link, entry_path, key};
use transom_host::files::{self, FileError, Files};
use transom_model::Os;

use super::{BUILD_INFO, MANIFEST, SBOM};
use crate::info;

/// Longer paths are refused, as they are when an archive is unpacked.
pub(super) const LONGEST_PATH: usize = 4096;
const PROGRAM_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;
const LINK_MODE: u32 = 0o777;

/// What we put into an archive ourselves.
const OURS: [&str; 4] = [MANIFEST, SBOM, BUILD_INFO, info::FILE_NAME];

/// Something to be packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) mode: u32,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Dir,
    /// A file on disk.
    File(Utf8PathBuf),
    /// A file that is made while packing.
    Bytes(Vec<u8>),
    Link(String),
}

/// Why a folder cannot become a package.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    #[error("the folder of the package cannot be read")]
    Read(#[source] FileError),
    #[error("`{path}` cannot be in a package for {os}: {reason}")]
    Refused {
        path: String,
        os: Os,
        reason: Refusal,
    },
    #[error("`{path}` is a name that is kept for what packing adds")]
    Reserved { path: String },
    #[error("the link `{path}` leads to `{target}`, which is not in the package")]
    LinkLeadsOut { path: String, target: String },
}

/// Lists `folder`. A link whose target begins with `home`, the place where the package will be, is
/// turned into one that does not depend on that place.
pub(super) fn walk(
    files: &dyn Files,
    folder: &Utf8Path,
    os: Os,
    home: Option<&Utf8Path>,
) -> Result<BTreeMap<String, Item>, WalkError> {
    let mut walk = Walk {
        files,
        os,
        home,
        items: BTreeMap::new(),
        keys: BTreeMap::new(),
    };
    walk.enter(folder, "")?;
    Ok(walk.items)
}

struct Walk<'a> {
    files: &'a dyn Files,
    os: Os,
    home: Option<&'a Utf8Path>,
    items: BTreeMap<String, Item>,
    /// By the key of the target system, how each path is spelled.
    keys: BTreeMap<String, String>,
}

impl Walk<'_> {
    fn enter(&mut self, folder: &Utf8Path, below: &str) -> Result<(), WalkError> {
        for entry in self.files.list(folder).map_err(WalkError::Read)? {
            let path = if below.is_empty() {
                entry.name
            } else {
                format!("{below}/{}", entry.name)
            };
            self.claim(&path)?;
            let content = match entry.metadata.kind {
                files::Kind::Dir => Content::Dir,
                files::Kind::File => Content::File(entry.path.clone()),
                files::Kind::Link => self.link(&entry.path, &path)?,
                files::Kind::Other => return Err(self.refuse(&path, Refusal::NotContent)),
            };
            let mode = self.mode(&content, entry.metadata.mode);
            let is_dir = content == Content::Dir;
            self.items.insert(path.clone(), Item { mode, content });
            if is_dir {
                self.enter(&entry.path, &path)?;
            }
        }
        Ok(())
    }

    fn claim(&mut self, path: &str) -> Result<(), WalkError> {
        if OURS.contains(&path) {
            return Err(WalkError::Reserved {
                path: path.to_owned(),
            });
        }
        match entry_path(self.os, path.as_bytes(), LONGEST_PATH) {
            // A name with a `\` means another path on Windows.
            Ok(read) if read == path => {}
            Ok(_) => return Err(self.refuse(path, Refusal::ForbiddenCharacter)),
            Err(reason) => return Err(self.refuse(path, reason)),
        }
        if self
            .keys
            .insert(key(self.os, path), path.to_owned())
            .is_some()
        {
            return Err(self.refuse(path, Refusal::DuplicateButForCase));
        }
        Ok(())
    }

    fn link(&self, link: &Utf8Path, path: &str) -> Result<Content, WalkError> {
        if self.os == Os::Windows {
            return Err(self.refuse(path, Refusal::LinkNotPossible));
        }
        let target = self.files.read_link(link).map_err(WalkError::Read)?;
        let inside = self
            .home
            .and_then(|home| target.strip_prefix(home).ok())
            .map(|below| format!("{}{below}", "../".repeat(path.matches('/').count())))
            .map(|inside| {
                if inside.is_empty() {
                    ".".to_owned()
                } else {
                    inside
                }
            });
        let target = inside.unwrap_or_else(|| target.to_string());
        match check_link(path, &target) {
            Ok(()) => Ok(Content::Link(target)),
            Err(_) => Err(WalkError::LinkLeadsOut {
                path: path.to_owned(),
                target,
            }),
        }
    }

    /// Windows has no modes, and a machine of either system must write the same.
    fn mode(&self, content: &Content, found: Option<u32>) -> u32 {
        match content {
            Content::Dir => PROGRAM_MODE,
            Content::Link(_) => LINK_MODE,
            Content::File(_)
                if self.os == Os::Linux && found.is_some_and(|mode| mode & 0o100 != 0) =>
            {
                PROGRAM_MODE
            }
            Content::File(_) | Content::Bytes(_) => FILE_MODE,
        }
    }

    fn refuse(&self, path: &str, reason: Refusal) -> WalkError {
        WalkError::Refused {
            path: path.escape_debug().take(200).collect(),
            os: self.os,
            reason,
        }
    }
}

impl Item {
    /// A file that packing adds.
    pub(super) fn bytes(bytes: Vec<u8>) -> Self {
        Self {
            mode: FILE_MODE,
            content: Content::Bytes(bytes),
        }
    }
}
