//! What lies in the unit folders, read once. Nothing here opens a unit file except to see whether it
//! is a mask or a pointer to another.

use std::collections::BTreeMap;
use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use super::LoadError;
use crate::unit::name::UnitName;
use crate::unit::syntax::MAXIMUM_FILE_SIZE;

/// What a masked unit's file holds where there is no `/dev/null` to link to.
pub(crate) const MASK_TEXT: &str = "# masked by transom";

/// More files than this in all folders together is a mistake, not a machine.
const MAXIMUM_FILES: usize = 20_000;

/// Folders beside a unit that add dependencies to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LinkFolder {
    Wants,
    Requires,
    Upholds,
}

impl LinkFolder {
    pub(crate) const ALL: [Self; 3] = [Self::Wants, Self::Requires, Self::Upholds];

    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Wants => "wants",
            Self::Requires => "requires",
            Self::Upholds => "upholds",
        }
    }
}

/// One unit file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileEntry {
    pub(crate) path: Utf8PathBuf,
    /// The folder's place in the search order.
    pub(crate) folder: usize,
    pub(crate) content: Content,
}

/// What a unit file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Unit,
    /// A link to a file of the same name elsewhere.
    Linked,
    Masked,
    Alias(UnitName),
}

/// One entry of a `.wants`, `.requires` or `.upholds` folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkEntry {
    pub(crate) path: Utf8PathBuf,
    pub(crate) folder: usize,
    /// The unit whose folder it is.
    pub(crate) owner: String,
    pub(crate) kind: LinkFolder,
    pub(crate) name: UnitName,
    /// A link to nothing takes back one of a less important folder.
    pub(crate) is_masked: bool,
}

/// Everything found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    /// By name, most important folder first.
    pub(crate) files: BTreeMap<UnitName, Vec<FileEntry>>,
    pub(crate) links: Vec<LinkEntry>,
    /// `.conf` files by the name before `.d`, with the folder's place.
    pub(crate) drop_ins: BTreeMap<String, Vec<(usize, Utf8PathBuf)>>,
    /// Names that are no units, for the log.
    pub(crate) ignored: Vec<Utf8PathBuf>,
}

impl Index {
    pub(crate) fn scan(folders: &[Utf8PathBuf], os: Os) -> Result<Self, LoadError> {
        let mut index = Self::default();
        let mut count = 0;
        for (place, folder) in folders.iter().enumerate() {
            for path in list(folder)? {
                count += 1;
                index.add(&path, place, os, &mut count)?;
                if count > MAXIMUM_FILES {
                    return Err(LoadError::TooManyFiles {
                        maximum: MAXIMUM_FILES,
                    });
                }
            }
        }
        Ok(index)
    }

    fn add(
        &mut self,
        path: &Utf8Path,
        place: usize,
        os: Os,
        count: &mut usize,
    ) -> Result<(), LoadError> {
        let Some(file_name) = path.file_name() else {
            return Ok(());
        };
        if let Ok(name) = UnitName::from_file_name(file_name, os) {
            // A file that cannot be read is reported when it is asked for; the others still count.
            let content = classify(path, &name, os).unwrap_or(Content::Unit);
            let entry = FileEntry {
                path: path.to_owned(),
                folder: place,
                content,
            };
            self.files.entry(name).or_default().push(entry);
            return Ok(());
        }
        let Some((owner, suffix)) = file_name.rsplit_once('.') else {
            return Ok(());
        };
        if suffix == "d" {
            for file in list(path)?
                .into_iter()
                .filter(|file| file.extension() == Some("conf"))
            {
                *count += 1;
                self.drop_ins
                    .entry(owner.to_owned())
                    .or_default()
                    .push((place, file));
            }
        }
        let Some(kind) = LinkFolder::ALL
            .into_iter()
            .find(|kind| kind.suffix() == suffix)
        else {
            return Ok(());
        };
        for entry in list(path)? {
            *count += 1;
            match entry
                .file_name()
                .map(|name| UnitName::from_file_name(name, os))
            {
                Some(Ok(name)) => {
                    let is_masked = links_to_nothing(&entry);
                    let owner = owner.to_owned();
                    self.links.push(LinkEntry {
                        path: entry,
                        folder: place,
                        owner,
                        kind,
                        name,
                        is_masked,
                    });
                }
                _ => self.ignored.push(entry),
            }
        }
        Ok(())
    }
}

/// The entries of a folder in order; none if there is no such folder.
fn list(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, LoadError> {
    let failed = |source| LoadError::read(folder, source);
    let entries = match fs_err::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        // Names that are not UTF-8 cannot be names of units.
        if let Ok(path) = Utf8PathBuf::from_path_buf(entry.map_err(failed)?.path()) {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Says what a file in a unit folder stands for.
fn classify(path: &Utf8Path, name: &UnitName, os: Os) -> io::Result<Content> {
    if links_to_nothing(path) {
        return Ok(Content::Masked);
    }
    if let Ok(target) = fs_err::read_link(path) {
        let target_name = target
            .file_name()
            .and_then(|file_name| file_name.to_str())
            .and_then(|file_name| UnitName::from_file_name(file_name, os).ok());
        return Ok(match target_name {
            Some(other) if other != *name && !is_instance_link(name, &other) => {
                Content::Alias(other)
            }
            _ => Content::Linked,
        });
    }
    let Some(start) = read_start(path)? else {
        return Ok(Content::Unit);
    };
    let text = start.trim_start_matches('\u{feff}').trim();
    if text.is_empty() || text == MASK_TEXT {
        return Ok(Content::Masked);
    }
    Ok(match pointed_at(text, os) {
        Some(other) if other != *name && !is_instance_link(name, &other) => Content::Alias(other),
        Some(_) => Content::Linked,
        None => Content::Unit,
    })
}

/// `worker@1.service` linked to `worker@.service` is the instance itself, not another name for it.
fn is_instance_link(name: &UnitName, target: &UnitName) -> bool {
    name.template().as_ref() == Some(target)
}

pub(crate) fn links_to_nothing(path: &Utf8Path) -> bool {
    fs_err::read_link(path).is_ok_and(|target| target.as_os_str() == "/dev/null")
}

/// The unit that a pointer file names: one line that is a path, nothing else.
fn pointed_at(text: &str, os: Os) -> Option<UnitName> {
    if text.contains(['\n', '=', '[', '#']) {
        return None;
    }
    let file_name = text.rsplit(['/', '\\']).next()?;
    UnitName::from_file_name(file_name, os).ok()
}

/// The whole of a small file; `None` for a larger one, which is neither mask nor pointer.
fn read_start(path: &Utf8Path) -> io::Result<Option<String>> {
    const LONGEST: u64 = 4096;
    // Opening a pipe would wait for somebody to write into it.
    if !fs_err::metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    fs_err::File::open(path)?
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Ok(None);
    }
    Ok(String::from_utf8(bytes).ok())
}

/// The bytes of a unit file, one more than allowed at most.
pub(crate) fn read_unit_file(path: &Utf8Path) -> io::Result<Vec<u8>> {
    if !fs_err::metadata(path)?.is_file() {
        let message = format!("`{path}` is not a regular file");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut bytes = Vec::new();
    fs_err::File::open(path)?
        .take(MAXIMUM_FILE_SIZE + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
