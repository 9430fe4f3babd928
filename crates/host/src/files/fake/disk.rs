//! A file system in memory: inodes, names, and beside each the version that survives a crash.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use super::super::path;

/// As many links as Linux follows in one path.
const MOST_LINKS: u32 = 40;
/// Holds the roots (`/`, `C:\`) as its entries.
const TOP: u64 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crash {
    LosesNames,
    KeepsNames,
}

/// Spelling and inode, by the key the system compares.
pub(super) type Entries = BTreeMap<String, (String, u64)>;

#[derive(Debug, Clone)]
pub(super) enum Node {
    File {
        content: Vec<u8>,
        durable: Vec<u8>,
        mode: u32,
    },
    Dir {
        entries: Entries,
        durable: Entries,
        mode: u32,
    },
    Link {
        target: Utf8PathBuf,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) os: Os,
    nodes: BTreeMap<u64, Node>,
    next: u64,
}

impl Disk {
    pub(super) fn new(os: Os) -> Self {
        let mut disk = Self {
            os,
            nodes: BTreeMap::from([(TOP, Node::empty_dir())]),
            next: TOP + 1,
        };
        let root = match os {
            Os::Linux => "/",
            Os::Windows => r"C:\",
        };
        let inode = disk.add_node(Node::empty_dir());
        let entry = (root.to_owned(), inode);
        let roots = BTreeMap::from([(disk.fold(root), entry)]);
        disk.nodes.insert(
            TOP,
            Node::Dir {
                entries: roots.clone(),
                durable: roots,
                mode: 0o755,
            },
        );
        disk
    }

    /// A name as the system compares it.
    fn fold(&self, name: &str) -> String {
        match self.os {
            Os::Linux => name.to_owned(),
            Os::Windows => name.to_lowercase().replace('/', r"\"),
        }
    }

    /// A whole path as the system compares it.
    pub(super) fn key(&self, path: &Utf8Path) -> String {
        let names = path::names(self.os, path).join("/");
        self.fold(&format!("{}/{names}", path::root(self.os, path)))
    }

    pub(super) fn node(&self, inode: u64) -> io::Result<&Node> {
        self.nodes
            .get(&inode)
            .ok_or_else(|| ErrorKind::NotFound.into())
    }

    pub(super) fn node_mut(&mut self, inode: u64) -> io::Result<&mut Node> {
        self.nodes
            .get_mut(&inode)
            .ok_or_else(|| ErrorKind::NotFound.into())
    }

    pub(super) fn add_node(&mut self, node: Node) -> u64 {
        let inode = self.next;
        self.next += 1;
        self.nodes.insert(inode, node);
        inode
    }

    pub(super) fn entries(&self, folder: u64) -> io::Result<&Entries> {
        match self.node(folder)? {
            Node::Dir { entries, .. } => Ok(entries),
            _ => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn entries_mut(&mut self, folder: u64) -> io::Result<&mut Entries> {
        match self.node_mut(folder)? {
            Node::Dir { entries, .. } => Ok(entries),
            _ => Err(ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn child(&self, folder: u64, name: &str) -> io::Result<u64> {
        let found = self.entries(folder)?.get(&self.fold(name));
        found
            .map(|(_, inode)| *inode)
            .ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Adds a name that must be free.
    pub(super) fn add_name(&mut self, folder: u64, name: &str, inode: u64) -> io::Result<()> {
        let key = self.fold(name);
        let entries = self.entries_mut(folder)?;
        if entries.contains_key(&key) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        entries.insert(key, (name.to_owned(), inode));
        Ok(())
    }

    pub(super) fn remove_name(&mut self, folder: u64, name: &str) -> io::Result<()> {
        let key = self.fold(name);
        match self.entries_mut(folder)?.remove(&key) {
            Some(_) => Ok(()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    /// Finds what is at `path`, following links in all but its last name.
    pub(super) fn find(&self, path: &Utf8Path) -> io::Result<u64> {
        self.walk(path, false, &mut 0)
    }

    /// Finds what `path` leads to.
    pub(super) fn follow(&self, path: &Utf8Path) -> io::Result<u64> {
        self.walk(path, true, &mut 0)
    }

    /// Finds the folder of `path`, and says its last name.
    pub(super) fn place(&self, path: &Utf8Path) -> io::Result<(u64, String)> {
        let (parent, name) = path::split(self.os, path).ok_or(ErrorKind::InvalidInput)?;
        let folder = self.follow(&parent)?;
        self.entries(folder)?;
        Ok((folder, name))
    }

    fn walk(&self, path: &Utf8Path, follow_last: bool, links: &mut u32) -> io::Result<u64> {
        if !path::is_absolute(self.os, path) {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "the fake knows no current folder",
            ));
        }
        let names = path::names(self.os, path);
        let root = self.child(TOP, path::root(self.os, path))?;
        let mut at = vec![root];
        let mut here = Utf8PathBuf::from(path::root(self.os, path));
        for (index, name) in names.iter().enumerate() {
            let folder = at[at.len() - 1];
            if *name == ".." {
                self.entries(folder)?;
                if at.len() > 1 {
                    at.pop();
                    here = path::parent(self.os, &here).unwrap_or(here);
                }
                continue;
            }
            let mut inode = self.child(folder, name)?;
            let is_last = index + 1 == names.len();
            if let Node::Link { target } = self.node(inode)?
                && (!is_last || follow_last)
            {
                *links += 1;
                if *links > MOST_LINKS {
                    return Err(io::Error::other("too many links"));
                }
                let target = if path::is_absolute(self.os, target) {
                    target.clone()
                } else {
                    path::join(self.os, &here, target.as_str())
                };
                inode = self.walk(&target, true, links)?;
            }
            here = path::join(self.os, &here, name);
            at.push(inode);
        }
        Ok(at[at.len() - 1])
    }

    /// Whether `wanted` is `inode` or below it.
    pub(super) fn contains(&self, inode: u64, wanted: u64) -> bool {
        inode == wanted
            || self.entries(inode).is_ok_and(|entries| {
                entries
                    .values()
                    .any(|(_, below)| self.contains(*below, wanted))
            })
    }

    pub(super) fn sync(&mut self, inode: u64) -> io::Result<()> {
        match self.node_mut(inode)? {
            Node::File {
                content, durable, ..
            } => durable.clone_from(content),
            Node::Dir {
                entries, durable, ..
            } => durable.clone_from(entries),
            Node::Link { .. } => {}
        }
        Ok(())
    }

    pub(super) fn sync_tree(&mut self, inode: u64) -> io::Result<()> {
        self.sync(inode)?;
        if let Ok(entries) = self.entries(inode) {
            let below: Vec<u64> = entries.values().map(|(_, inode)| *inode).collect();
            for inode in below {
                self.sync_tree(inode)?;
            }
        }
        Ok(())
    }

    /// Forgets what is in a folder.
    pub(super) fn empty(&mut self, folder: u64) {
        if let Some(Node::Dir {
            entries, durable, ..
        }) = self.nodes.get_mut(&folder)
        {
            entries.clear();
            durable.clear();
        }
    }

    pub(super) fn crash(&mut self, crash: Crash) {
        for node in self.nodes.values_mut() {
            match node {
                Node::File {
                    content, durable, ..
                } => content.clone_from(durable),
                Node::Dir {
                    entries, durable, ..
                } => match crash {
                    Crash::LosesNames => entries.clone_from(durable),
                    Crash::KeepsNames => durable.clone_from(entries),
                },
                Node::Link { .. } => {}
            }
        }
    }
}

impl Node {
    pub(super) fn empty_dir() -> Self {
        Self::Dir {
            entries: Entries::new(),
            durable: Entries::new(),
            mode: 0o755,
        }
    }

    pub(super) fn empty_file(mode: u32) -> Self {
        Self::File {
            content: Vec::new(),
            durable: Vec::new(),
            mode,
        }
    }
}
