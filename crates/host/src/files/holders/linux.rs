//! Holders from `/proc`: open descriptors, mapped files, executables, current folders.

use std::fs::Metadata;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use camino::Utf8Path;

use super::{Holder, Holders};

/// What a process may hold: the object itself or, for a folder, anything below it.
struct Wanted {
    device: u64,
    inode: u64,
    below: Option<String>,
}

impl Wanted {
    fn is(&self, metadata: &Metadata) -> bool {
        metadata.dev() == self.device && metadata.ino() == self.inode
    }

    fn is_below(&self, path: &str) -> bool {
        self.below
            .as_deref()
            .is_some_and(|folder| path.starts_with(folder))
    }
}

pub(in super::super) fn holders(path: &Utf8Path) -> Holders {
    match search(path) {
        Ok((found, 0)) => Holders::Known(found),
        Ok((found, unreadable)) if found.is_empty() => Holders::Unknown {
            reason: format!("{unreadable} processes of other users may not be looked into"),
        },
        Ok((found, _)) => Holders::Known(found),
        Err(error) => Holders::Unknown {
            reason: error.to_string(),
        },
    }
}

/// The holders, and how many processes could not be looked into.
fn search(path: &Utf8Path) -> io::Result<(Vec<Holder>, usize)> {
    let metadata = std::fs::symlink_metadata(path)?;
    let below = if metadata.is_dir() {
        Some(format!("{}/", path.canonicalize_utf8()?))
    } else {
        None
    };
    let wanted = Wanted {
        device: metadata.dev(),
        inode: metadata.ino(),
        below,
    };
    let mut found = Vec::new();
    let mut unreadable = 0;
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        match process_holds(&entry.path(), &wanted) {
            Ok(true) => found.push(Holder {
                pid,
                name: process_name(&entry.path()),
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => unreadable += 1,
            // Does not hold it, or ended while we looked.
            Ok(false) | Err(_) => {}
        }
    }
    found.sort();
    Ok((found, unreadable))
}

fn process_holds(process: &Path, wanted: &Wanted) -> io::Result<bool> {
    for link in ["cwd", "exe", "root"] {
        if leads_to(&process.join(link), wanted) {
            return Ok(true);
        }
    }
    for descriptor in std::fs::read_dir(process.join("fd"))? {
        if leads_to(&descriptor?.path(), wanted) {
            return Ok(true);
        }
    }
    maps_it(&process.join("maps"), wanted)
}

fn leads_to(link: &Path, wanted: &Wanted) -> bool {
    std::fs::metadata(link).is_ok_and(|metadata| wanted.is(&metadata))
        || std::fs::read_link(link).is_ok_and(|target| {
            target
                .to_str()
                .is_some_and(|target| wanted.is_below(target))
        })
}

/// Each line: addresses, permissions, offset, `major:minor` in hexadecimal, inode, path. The path
/// decides for a folder; device numbers differ from `stat` on some file systems, so the inode alone
/// decides for a file, confirmed by a look at the path.
fn maps_it(maps: &Path, wanted: &Wanted) -> io::Result<bool> {
    let file = fs_err::File::open(maps)?;
    for line in BufReader::new(file).lines() {
        let line = line?;
        let Some(at) = line.find('/') else { continue };
        let (numbers, mapped) = line.split_at(at);
        let inode = numbers.split_whitespace().next_back();
        let same_inode = inode.and_then(|inode| inode.parse().ok()) == Some(wanted.inode);
        if wanted.is_below(mapped)
            || same_inode && std::fs::metadata(mapped).is_ok_and(|metadata| wanted.is(&metadata))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn process_name(process: &Path) -> String {
    fs_err::read_to_string(process.join("comm"))
        .map_or_else(|_| "ended".to_owned(), |name| name.trim_end().to_owned())
}
