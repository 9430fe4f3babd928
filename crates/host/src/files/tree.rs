//! Copying a tree, byte by byte or as hard links. Links are copied as links; nothing is followed, so
//! nothing from outside the tree gets in.

use camino::{Utf8Path, Utf8PathBuf};

use super::error::At;
use super::staging::{self, Staging};
use super::steps::Steps;
use super::{FileError, Kind, Metadata, path};

/// How the files of a tree get to their second place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// New files with the same content.
    Copy,
    /// The same files under second names. One that cannot have another name (too many already, or
    /// on another file system) is copied.
    HardLink,
}

/// Deep enough for any package, shallow enough for the stack and for file descriptors.
const DEEPEST: usize = 128;

pub(super) fn copy(
    steps: &dyn Steps,
    from: &Utf8Path,
    to: &Utf8Path,
    how: How,
) -> Result<(), FileError> {
    let top = steps.metadata(from).at("copy", from)?;
    if top.kind != Kind::Dir {
        return Err(FileError::WrongKind {
            path: from.to_owned(),
            expected: "a folder",
        });
    }
    let (outer, inner) = (path::names(steps.os(), from), path::names(steps.os(), to));
    if inner.starts_with(&outer) {
        return Err(FileError::InvalidPath {
            path: to.to_owned(),
            reason: "it lies inside the tree to be copied",
        });
    }
    let mut copy = TreeCopy {
        steps,
        how,
        staging: staging::begin(steps, to)?,
    };
    if let Some(mode) = top.mode {
        copy.staging.set_dir_mode(Utf8Path::new(""), mode);
    }
    copy.folder(from, Utf8Path::new(""), 0)?;
    copy.staging.commit()
}

struct TreeCopy<'a> {
    steps: &'a dyn Steps,
    how: How,
    staging: Staging<'a>,
}

impl TreeCopy<'_> {
    fn folder(
        &mut self,
        source: &Utf8Path,
        below: &Utf8Path,
        depth: usize,
    ) -> Result<(), FileError> {
        if depth > DEEPEST {
            return Err(FileError::InvalidPath {
                path: source.to_owned(),
                reason: "its folders are nested too deeply",
            });
        }
        let mut names = self.steps.names(source).at("list", source)?;
        names.sort();
        for name in names {
            let from = path::join(self.steps.os(), source, &name);
            let to = join_below(below, &name);
            let metadata = self.steps.metadata(&from).at("copy", &from)?;
            match metadata.kind {
                Kind::Dir => {
                    self.staging.make_dir(&to, metadata.mode.unwrap_or(0o755))?;
                    self.folder(&from, &to, depth + 1)?;
                }
                Kind::File => self.file(&from, &to, &metadata)?,
                Kind::Link => {
                    let target = self.steps.read_link(&from).at("read", &from)?;
                    self.staging.symlink(target.as_str(), &to)?;
                }
                Kind::Other => {
                    return Err(FileError::WrongKind {
                        path: from,
                        expected: "a file, a folder or a link",
                    });
                }
            }
        }
        Ok(())
    }

    fn file(&self, from: &Utf8Path, to: &Utf8Path, metadata: &Metadata) -> Result<(), FileError> {
        let mode = metadata.mode.unwrap_or(0o644);
        match self.how {
            How::Copy => self.staging.copy_from(from, to, mode),
            How::HardLink => self.staging.link_or_copy(from, to, mode),
        }
    }
}

fn join_below(below: &Utf8Path, name: &str) -> Utf8PathBuf {
    if below.as_str().is_empty() {
        name.into()
    } else {
        format!("{below}/{name}").into()
    }
}
