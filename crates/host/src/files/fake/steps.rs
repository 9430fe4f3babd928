//! The steps on the imaginary machine, with the refusals of the system it stands for.

use std::io::{self, Cursor, ErrorKind, Read};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use super::super::steps::{Anchor, Links, LockGuard, NewFile, RemovalFailure, Steps};
use super::super::{Access, Holder, Holders, Kind, Metadata, Named, Space, fault, path, retry};
use super::anchor::FakeAnchor;
use super::disk::Node;
use super::{FakeFiles, State};

/// Enough for another thread to go on, too little to slow a test down.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

impl State {
    fn permit(&self, path: &Utf8Path) -> io::Result<()> {
        let key = self.disk.key(path);
        let below = |denied: &String| {
            key.strip_prefix(denied.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if self.denied.iter().any(below) {
            return Err(ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }

    /// Windows neither removes nor renames what somebody has open, or a folder above it.
    fn permit_moving(&self, inode: u64) -> io::Result<()> {
        let is_held = || {
            self.held
                .keys()
                .any(|held| self.disk.contains(inode, *held))
        };
        if self.disk.os == Os::Windows && is_held() {
            return Err(io::Error::new(ErrorKind::ResourceBusy, "sharing violation"));
        }
        Ok(())
    }

    pub(super) fn append(&mut self, inode: u64, bytes: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.space.available).unwrap_or(usize::MAX);
        let fits = bytes.len().min(room);
        self.space.available -= fits as u64;
        if let Node::File { content, .. } = self.disk.node_mut(inode)? {
            content.extend_from_slice(&bytes[..fits]);
        }
        if fits < bytes.len() {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn describe(&self, inode: u64) -> io::Result<Metadata> {
        let (kind, length, mode) = match self.disk.node(inode)? {
            Node::File { content, mode, .. } => (Kind::File, content.len() as u64, *mode),
            Node::Dir { mode, .. } => (Kind::Dir, 0, *mode),
            Node::Link { .. } => (Kind::Link, 0, 0o777),
        };
        let on_linux = self.disk.os == Os::Linux;
        Ok(Metadata {
            kind,
            length,
            mode: on_linux.then_some(mode),
            read_only: on_linux && mode & 0o222 == 0,
        })
    }

    fn unlink(&mut self, path: &Utf8Path) -> io::Result<()> {
        self.permit(path)?;
        let (folder, name) = self.disk.place(path)?;
        let inode = self.disk.child(folder, &name)?;
        if matches!(self.disk.node(inode)?, Node::Dir { .. }) {
            return Err(ErrorKind::IsADirectory.into());
        }
        self.permit_moving(inode)?;
        self.disk.remove_name(folder, &name)
    }

    fn rename(&mut self, from: &Utf8Path, to: &Utf8Path, over: bool) -> io::Result<()> {
        self.permit(from)?;
        self.permit(to)?;
        let (old_folder, old_name) = self.disk.place(from)?;
        let inode = self.disk.child(old_folder, &old_name)?;
        let (new_folder, new_name) = self.disk.place(to)?;
        self.permit_moving(inode)?;
        if self.disk.contains(inode, new_folder) {
            return Err(ErrorKind::InvalidInput.into());
        }
        match self.disk.child(new_folder, &new_name) {
            // The same file: nothing to do, as on both systems.
            Ok(existing) if existing == inode && over => return Ok(()),
            Ok(_) if !over => return Err(ErrorKind::AlreadyExists.into()),
            Ok(existing) => {
                if matches!(self.disk.node(existing)?, Node::Dir { .. }) {
                    return Err(ErrorKind::IsADirectory.into());
                }
                self.permit_moving(existing)?;
                self.disk.remove_name(new_folder, &new_name)?;
            }
            Err(_) => {}
        }
        self.disk.remove_name(old_folder, &old_name)?;
        self.disk.add_name(new_folder, &new_name, inode)
    }
}

impl Steps for FakeFiles {
    fn os(&self) -> Os {
        self.state().disk.os
    }

    fn metadata(&self, path: &Utf8Path) -> io::Result<Metadata> {
        let state = self.state();
        state.describe(state.disk.find(path)?)
    }

    fn is_dir(&self, path: &Utf8Path) -> io::Result<bool> {
        let state = self.state();
        let inode = state.disk.follow(path)?;
        Ok(matches!(state.disk.node(inode)?, Node::Dir { .. }))
    }

    fn open(&self, path: &Utf8Path, links: Links) -> io::Result<Box<dyn Read>> {
        let state = self.state();
        state.permit(path)?;
        let inode = match links {
            Links::Follow => state.disk.follow(path)?,
            Links::Refuse => state.disk.find(path)?,
        };
        match state.disk.node(inode)? {
            Node::File { content, .. } => Ok(Box::new(Cursor::new(content.clone()))),
            Node::Dir { .. } => Err(ErrorKind::IsADirectory.into()),
            Node::Link { .. } => Err(io::Error::other("it is a link")),
        }
    }

    fn names(&self, folder: &Utf8Path) -> io::Result<Vec<String>> {
        let state = self.state();
        state.permit(folder)?;
        let entries = state.disk.entries(state.disk.follow(folder)?)?;
        Ok(entries.values().map(|(name, _)| name.clone()).collect())
    }

    fn kinds(&self, folder: &Utf8Path) -> io::Result<Vec<Named>> {
        let state = self.state();
        state.permit(folder)?;
        let entries = state.disk.entries(state.disk.follow(folder)?)?;
        let describe = |(name, inode): &(String, u64)| {
            Ok(Named {
                name: name.clone(),
                kind: state.describe(*inode)?.kind,
            })
        };
        entries.values().map(describe).collect()
    }

    fn read_link(&self, path: &Utf8Path) -> io::Result<Utf8PathBuf> {
        let state = self.state();
        match state.disk.node(state.disk.find(path)?)? {
            Node::Link { target } => Ok(target.clone()),
            _ => Err(ErrorKind::InvalidInput.into()),
        }
    }

    fn make_dir(&self, path: &Utf8Path) -> io::Result<()> {
        let mut state = self.state();
        state.permit(path)?;
        let (folder, name) = state.disk.place(path)?;
        let inode = state.disk.add_node(Node::empty_dir());
        state.disk.add_name(folder, &name, inode)
    }

    fn create_new(&self, path: &Utf8Path, access: Access) -> io::Result<Box<dyn NewFile>> {
        let mut state = self.state();
        state.permit(path)?;
        let (folder, name) = state.disk.place(path)?;
        let inode = state.disk.add_node(Node::empty_file(access.mode()));
        state.disk.add_name(folder, &name, inode)?;
        Ok(Box::new(FakeFile {
            files: self.clone(),
            inode,
        }))
    }

    fn rename_over(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        self.state().rename(from, to, true)
    }

    fn rename_new(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        self.state().rename(from, to, false)
    }

    fn sync_dir(&self, folder: &Utf8Path) -> io::Result<()> {
        let mut state = self.state();
        let inode = state.disk.follow(folder)?;
        state.disk.entries(inode)?;
        state.disk.sync(inode)
    }

    fn hard_link(&self, original: &Utf8Path, link: &Utf8Path) -> io::Result<()> {
        let mut state = self.state();
        state.permit(link)?;
        let inode = state.disk.find(original)?;
        let (folder, name) = state.disk.place(link)?;
        state.disk.add_name(folder, &name, inode)
    }

    fn link_dir(&self, target: &Utf8Path, link: &Utf8Path) -> io::Result<()> {
        let mut state = self.state();
        state.permit(link)?;
        let (folder, name) = state.disk.place(link)?;
        if !state.folder_links {
            return Ok(());
        }
        let target = target.to_owned();
        let inode = state.disk.add_node(Node::Link { target });
        state.disk.add_name(folder, &name, inode)
    }

    fn unlink(&self, path: &Utf8Path) -> io::Result<()> {
        self.state().unlink(path)
    }

    fn remove_dir_tree(&self, path: &Utf8Path) -> Result<(), RemovalFailure> {
        let fail = |source| RemovalFailure {
            path: path.to_owned(),
            source,
        };
        for name in Steps::names(self, path).map_err(fail)? {
            let below = path::join(Steps::os(self), path, &name);
            let is_dir = matches!(Steps::metadata(self, &below).map_err(fail)?.kind, Kind::Dir);
            if is_dir {
                self.remove_dir_tree(&below)?;
                continue;
            }
            let removed = retry::patiently(self, || {
                fault::point("files.remove.entry")?;
                self.state().unlink(&below)
            });
            removed.map_err(|source| RemovalFailure {
                path: below,
                source,
            })?;
        }
        fault::point("files.remove.entry").map_err(fail)?;
        let mut state = self.state();
        state.permit(path).map_err(fail)?;
        let (folder, name) = state.disk.place(path).map_err(fail)?;
        state.disk.remove_name(folder, &name).map_err(fail)
    }

    fn anchor(&self, path: &Utf8Path) -> io::Result<Box<dyn Anchor>> {
        self.make_dir(path)?;
        let inode = self.state().disk.find(path)?;
        Ok(Box::new(FakeAnchor::new(self.clone(), inode)))
    }

    fn holders(&self, path: &Utf8Path) -> Holders {
        let state = self.state();
        let Ok(inode) = state.disk.find(path) else {
            return Holders::Unknown {
                reason: "it does not exist".to_owned(),
            };
        };
        let mut found: Vec<Holder> = state
            .held
            .iter()
            .filter(|(held, _)| state.disk.contains(inode, **held))
            .map(|(_, (holder, _))| holder.clone())
            .collect();
        found.sort();
        Holders::Known(found)
    }

    fn try_lock(&self, path: &Utf8Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        let mut state = self.state();
        state.permit(path)?;
        let (folder, name) = state.disk.place(path)?;
        let inode = if let Ok(inode) = state.disk.child(folder, &name) {
            inode
        } else {
            let inode = state.disk.add_node(Node::empty_file(0o644));
            state.disk.add_name(folder, &name, inode)?;
            inode
        };
        if state.locks.contains_key(&inode) {
            return Ok(None);
        }
        state.locks.insert(inode, std::process::id());
        Ok(Some(Box::new(FakeLock {
            files: self.clone(),
            inode,
        })))
    }

    fn lock_holder(&self, path: &Utf8Path) -> Option<u32> {
        let state = self.state();
        let inode = state.disk.find(path).ok()?;
        state.locks.get(&inode).copied()
    }

    fn mount_memory(&self, folder: &Utf8Path, limit: Option<u64>) -> io::Result<()> {
        let mut state = self.state();
        if state.disk.os == Os::Windows {
            return Err(io::Error::new(
                ErrorKind::Unsupported,
                "Windows has no folders in memory",
            ));
        }
        state.permit(folder)?;
        let inode = state.disk.follow(folder)?;
        if state.disk.entries(inode)?.is_empty() {
            state.memory.entry(inode).or_insert(limit);
        }
        Ok(())
    }

    fn bind(&self, _: &Utf8Path, _: &Utf8Path, _: &Utf8Path) -> io::Result<()> {
        Err(io::Error::new(
            ErrorKind::Unsupported,
            "the fake shows no folder at another place",
        ))
    }

    fn free_space(&self, path: &Utf8Path) -> io::Result<Space> {
        let state = self.state();
        state.disk.follow(path)?;
        Ok(state.space)
    }

    /// Long waits are short here; those who hold a file briefly let go after their number of pauses.
    fn pause(&self, duration: Duration) {
        std::thread::sleep(duration.min(LONGEST_PAUSE));
        let mut state = self.state();
        state.held.retain(|_, (_, pauses)| match pauses {
            Some(0 | 1) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        });
    }
}

/// A file being written.
#[derive(Debug)]
pub(super) struct FakeFile {
    pub(super) files: FakeFiles,
    pub(super) inode: u64,
}

impl NewFile for FakeFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.files.state().append(self.inode, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.files.state().disk.sync(self.inode)
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct FakeLock {
    files: FakeFiles,
    inode: u64,
}

impl LockGuard for FakeLock {}

impl Drop for FakeLock {
    fn drop(&mut self) {
        self.files.state().locks.remove(&self.inode);
    }
}
