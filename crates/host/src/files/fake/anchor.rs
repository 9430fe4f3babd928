//! Anchored work on the imaginary machine: names are found from the anchor's inode, and no link is
//! followed on the way.

use std::io::{self, ErrorKind};

use camino::Utf8Path;
use transom_model::os::Os;

use super::super::steps::{Anchor, NewFile};
use super::disk::Node;
use super::steps::FakeFile;
use super::{FakeFiles, State};

#[derive(Debug)]
pub(super) struct FakeAnchor {
    files: FakeFiles,
    folder: u64,
}

impl FakeAnchor {
    pub(super) fn new(files: FakeFiles, folder: u64) -> Self {
        Self { files, folder }
    }

    fn enter(&self, state: &State, below: &Utf8Path) -> io::Result<u64> {
        let names = below.as_str().split('/').filter(|name| !name.is_empty());
        let mut folder = self.folder;
        for name in names {
            folder = state.disk.child(folder, name)?;
            state.disk.entries(folder)?;
        }
        Ok(folder)
    }

    fn reach<'a>(&self, state: &State, below: &'a Utf8Path) -> io::Result<(u64, &'a str)> {
        let (folder, name) = below
            .as_str()
            .rsplit_once('/')
            .unwrap_or(("", below.as_str()));
        Ok((self.enter(state, folder.into())?, name))
    }

    fn add(&self, below: &Utf8Path, node: Node) -> io::Result<u64> {
        let mut state = self.files.state();
        let (folder, name) = self.reach(&state, below)?;
        let inode = state.disk.add_node(node);
        state.disk.add_name(folder, name, inode)?;
        Ok(inode)
    }
}

impl Anchor for FakeAnchor {
    fn make_dir(&self, below: &Utf8Path) -> io::Result<()> {
        self.add(below, Node::empty_dir()).map(drop)
    }

    fn create_file(&self, below: &Utf8Path, mode: u32) -> io::Result<Box<dyn NewFile>> {
        let inode = self.add(below, Node::empty_file(mode & 0o777))?;
        Ok(Box::new(FakeFile {
            files: self.files.clone(),
            inode,
        }))
    }

    fn symlink(&self, target: &str, below: &Utf8Path) -> io::Result<()> {
        if self.files.state().disk.os == Os::Windows {
            return Err(ErrorKind::Unsupported.into());
        }
        let target = target.into();
        self.add(below, Node::Link { target }).map(drop)
    }

    fn link_within(&self, existing: &Utf8Path, below: &Utf8Path) -> io::Result<()> {
        let mut state = self.files.state();
        let (folder, name) = self.reach(&state, existing)?;
        let inode = state.disk.child(folder, name)?;
        let (folder, name) = self.reach(&state, below)?;
        state.disk.add_name(folder, name, inode)
    }

    fn link_from(&self, original: &Utf8Path, below: &Utf8Path) -> io::Result<()> {
        let mut state = self.files.state();
        let inode = state.disk.find(original)?;
        let (folder, name) = self.reach(&state, below)?;
        state.disk.add_name(folder, name, inode)
    }

    fn set_dir_mode(&self, below: &Utf8Path, new: u32) -> io::Result<()> {
        let mut state = self.files.state();
        let inode = self.enter(&state, below)?;
        if let Node::Dir { mode, .. } = state.disk.node_mut(inode)? {
            *mode = new & 0o777;
        }
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.files.state().disk.sync_tree(self.folder)
    }
}
