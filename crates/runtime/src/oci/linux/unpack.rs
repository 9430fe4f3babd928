//! Layers on a Linux disk, in the form that overlayfs stacks. Invariant: every name is reached from the
//! descriptor of the folder, and no link in a layer leads out of it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use camino::Utf8Path;
use rustix::fs::{
    AtFlags, CWD, Dev, FileType, Gid, Mode, OFlags, RawMode, ResolveFlags, Timespec, Timestamps,
    Uid, XattrFlags,
};
use rustix::io::Errno;

use crate::images::{Entry, EntryKind, Style, Tree, Unpacker};

const OPAQUE: &str = "trusted.overlay.opaque";
/// Folders inside folders: more is an attack.
const DEEPEST: usize = 512;

/// Unpacks as root: owners, devices and attributes are kept.
#[derive(Debug)]
pub struct LinuxUnpacker;

impl Unpacker for LinuxUnpacker {
    fn begin(&self, folder: &Utf8Path, style: Style) -> io::Result<Box<dyn Tree>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, folder.as_str(), flags, Mode::empty())?;
        rustix::fs::fchmod(&root, Mode::from_raw_mode(0o755))?;
        Ok(Box::new(LinuxTree {
            root,
            style,
            folders: Vec::new(),
            last: None,
        }))
    }

    fn remove(&self, folder: &Utf8Path) -> io::Result<()> {
        match fs_err::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
struct LinuxTree {
    root: OwnedFd,
    style: Style,
    /// Times of folders are set last: filling a folder changes its time.
    folders: Vec<(Vec<u8>, i64)>,
    /// The folder of the last entry: entries mostly come folder by folder.
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl Tree for LinuxTree {
    fn add(&mut self, entry: &Entry, content: &mut dyn Read) -> io::Result<()> {
        if entry.path.is_empty() {
            return self.add_root(entry);
        }
        let (parent, name) = split(&entry.path);
        let folder = self.enter(parent)?;
        let name = OsStr::from_bytes(name);
        match &entry.kind {
            EntryKind::Folder => self.add_folder(&folder, name, entry)?,
            EntryKind::Opaque => self.make_opaque(&entry.path)?,
            EntryKind::Removed => self.add_removal(&folder, name)?,
            EntryKind::HardLink(target) => {
                let (parent, existing) = split(target);
                let source = self.enter(parent)?;
                remove_entry(&folder, name)?;
                rustix::fs::linkat(
                    &source,
                    OsStr::from_bytes(existing),
                    &folder,
                    name,
                    AtFlags::empty(),
                )?;
            }
            EntryKind::File => {
                remove_entry(&folder, name)?;
                add_file(&folder, name, entry, content)?;
            }
            EntryKind::Link(target) => {
                remove_entry(&folder, name)?;
                rustix::fs::symlinkat(OsStr::from_bytes(target), &folder, name)?;
                own(&folder, name, entry)?;
            }
            EntryKind::Character { major, minor } => {
                make_node(
                    &folder,
                    name,
                    entry,
                    FileType::CharacterDevice,
                    rustix::fs::makedev(*major, *minor),
                )?;
            }
            EntryKind::Block { major, minor } => {
                make_node(
                    &folder,
                    name,
                    entry,
                    FileType::BlockDevice,
                    rustix::fs::makedev(*major, *minor),
                )?;
            }
            EntryKind::Pipe => make_node(&folder, name, entry, FileType::Fifo, 0)?,
        }
        self.last = Some((parent.to_vec(), folder));
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> io::Result<()> {
        self.last = None;
        for (path, modified) in self.folders.drain(..).rev() {
            match rustix::fs::openat2(
                &self.root,
                OsStr::from_bytes(&path),
                FOLDER,
                Mode::empty(),
                INSIDE,
            ) {
                Ok(folder) => rustix::fs::futimens(&folder, &times(modified))?,
                // A later entry took its place.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.style == Style::Overlay {
            // One call for thousands of files.
            rustix::fs::syncfs(&self.root)?;
        }
        Ok(())
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
/// Links are followed as the container would: its root is the folder.
const INSIDE: ResolveFlags = ResolveFlags::IN_ROOT.union(ResolveFlags::NO_MAGICLINKS);

impl LinuxTree {
    fn add_root(&mut self, entry: &Entry) -> io::Result<()> {
        match entry.kind {
            EntryKind::Folder => {
                rustix::fs::fchown(
                    &self.root,
                    Some(Uid::from_raw(entry.user)),
                    Some(Gid::from_raw(entry.group)),
                )?;
                rustix::fs::fchmod(&self.root, Mode::from_raw_mode(entry.mode as RawMode))?;
                Ok(())
            }
            EntryKind::Opaque => self.make_opaque(b""),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the root of a layer is no folder",
            )),
        }
    }

    /// Opens a folder of the layer, making it and those above it if no entry did.
    fn enter(&mut self, path: &[u8]) -> io::Result<OwnedFd> {
        match self.last.take() {
            Some((last, folder)) if last == path => return Ok(folder),
            _ => {}
        }
        if path.is_empty() {
            return self.root.as_fd().try_clone_to_owned();
        }
        match rustix::fs::openat2(
            &self.root,
            OsStr::from_bytes(path),
            FOLDER,
            Mode::empty(),
            INSIDE,
        ) {
            Err(Errno::NOENT) => {}
            opened => return Ok(opened?),
        }
        let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        if names.len() > DEEPEST {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "folders are nested too deeply",
            ));
        }
        let mut sofar = OsString::new();
        let mut folder = self.root.as_fd().try_clone_to_owned()?;
        for name in names {
            if !sofar.is_empty() {
                sofar.push("/");
            }
            sofar.push(OsString::from_vec(name.to_vec()));
            folder = match rustix::fs::openat2(&self.root, &sofar, FOLDER, Mode::empty(), INSIDE) {
                Err(Errno::NOENT) => {
                    let name = OsStr::from_bytes(name);
                    rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o755))?;
                    rustix::fs::openat(&folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?
                }
                opened => opened?,
            };
        }
        Ok(folder)
    }

    fn add_folder(&mut self, parent: &OwnedFd, name: &OsStr, entry: &Entry) -> io::Result<()> {
        let made = rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o700));
        let flags = FOLDER | OFlags::NOFOLLOW;
        let folder = match made {
            Ok(()) => rustix::fs::openat(parent, name, flags, Mode::empty())?,
            Err(Errno::EXIST) => match rustix::fs::openat(parent, name, flags, Mode::empty()) {
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    remove_entry(parent, name)?;
                    rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o700))?;
                    rustix::fs::openat(parent, name, flags, Mode::empty())?
                }
                opened => opened?,
            },
            Err(error) => return Err(error.into()),
        };
        finish(folder.as_fd(), entry)?;
        self.folders.push((entry.path.clone(), entry.modified));
        Ok(())
    }

    fn add_removal(&self, folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
        remove_entry(folder, name)?;
        if self.style == Style::Overlay {
            rustix::fs::mknodat(folder, name, FileType::CharacterDevice, Mode::empty(), 0)?;
        }
        Ok(())
    }

    fn make_opaque(&mut self, path: &[u8]) -> io::Result<()> {
        self.last = None;
        let folder = self.enter(path)?;
        match self.style {
            Style::Overlay => rustix::fs::fsetxattr(&folder, OPAQUE, b"y", XattrFlags::empty())?,
            Style::Flat => {
                for entry in rustix::fs::Dir::read_from(&folder)? {
                    let entry = entry?;
                    let name = entry.file_name().to_bytes();
                    if name != b"." && name != b".." {
                        remove_entry(&folder, OsStr::from_bytes(name))?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

fn times(modified: i64) -> Timestamps {
    let time = Timespec {
        tv_sec: modified,
        tv_nsec: 0,
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

fn add_file(
    folder: &OwnedFd,
    name: &OsStr,
    entry: &Entry,
    content: &mut dyn Read,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o600))?;
    let mut file = std::fs::File::from(file);
    io::copy(content, &mut file)?;
    file.flush()?;
    finish(file.as_fd(), entry)?;
    Ok(rustix::fs::futimens(&file, &times(entry.modified))?)
}

/// Owner before mode: changing the owner takes away the bits that give its rights to others.
fn finish(file: BorrowedFd<'_>, entry: &Entry) -> io::Result<()> {
    rustix::fs::fchown(
        file,
        Some(Uid::from_raw(entry.user)),
        Some(Gid::from_raw(entry.group)),
    )?;
    rustix::fs::fchmod(file, Mode::from_raw_mode(entry.mode as RawMode))?;
    for (name, value) in &entry.attributes {
        match rustix::fs::fsetxattr(file, OsStr::from_bytes(name), value, XattrFlags::empty()) {
            // A file system without attributes of users: nobody relies on them.
            Err(Errno::OPNOTSUPP) if name.starts_with(b"user.") => {}
            set => set?,
        }
    }
    Ok(())
}

fn own(folder: &OwnedFd, name: &OsStr, entry: &Entry) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(entry.user), Gid::from_raw(entry.group));
    rustix::fs::chownat(
        folder,
        name,
        Some(user),
        Some(group),
        AtFlags::SYMLINK_NOFOLLOW,
    )?;
    rustix::fs::utimensat(
        folder,
        name,
        &times(entry.modified),
        AtFlags::SYMLINK_NOFOLLOW,
    )?;
    Ok(())
}

fn make_node(
    folder: &OwnedFd,
    name: &OsStr,
    entry: &Entry,
    kind: FileType,
    device: Dev,
) -> io::Result<()> {
    remove_entry(folder, name)?;
    rustix::fs::mknodat(
        folder,
        name,
        kind,
        Mode::from_raw_mode(entry.mode as RawMode),
        device,
    )?;
    rustix::fs::chmodat(
        folder,
        name,
        Mode::from_raw_mode(entry.mode as RawMode),
        AtFlags::empty(),
    )?;
    own(folder, name, entry)
}

/// Removes what is at a name with all below it, following nothing.
fn remove_entry(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    remove_folder(folder, name, 0)
}

fn remove_folder(parent: &OwnedFd, name: &OsStr, depth: usize) -> io::Result<()> {
    if depth > DEEPEST {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "folders are nested too deeply",
        ));
    }
    let folder = rustix::fs::openat(parent, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    for entry in rustix::fs::Dir::read_from(&folder)? {
        let entry = entry?;
        let inner = entry.file_name().to_bytes();
        if inner == b"." || inner == b".." {
            continue;
        }
        let inner = OsStr::from_bytes(inner);
        match rustix::fs::unlinkat(&folder, inner, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => remove_folder(&folder, inner, depth + 1)?,
            removed => removed?,
        }
    }
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}
