//! The files of an imaginary machine, in memory. It knows the rules of both systems and forgets in a
//! crash exactly what was not synced, so the order of steps is tested by what a crash leaves.

mod anchor;
mod disk;
mod steps;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::Utf8Path;
use transom_model::os::Os;

use self::disk::{Crash, Disk};
use super::{Holder, Space};

/// Files in memory. Clones are views of the same disk.
#[derive(Debug, Clone)]
pub struct FakeFiles {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    disk: Disk,
    /// By the lock file's inode: who holds it.
    locks: BTreeMap<u64, u32>,
    /// By inode: who has it open, and for how many more pauses of a retry.
    held: BTreeMap<u64, (Holder, Option<u32>)>,
    denied: Vec<String>,
    space: Space,
    folder_links: bool,
    /// The inodes of folders whose content is only in memory, with their limits.
    memory: BTreeMap<u64, Option<u64>>,
}

impl FakeFiles {
    /// An empty disk: `/` on Linux, `C:\` on Windows.
    pub fn new(os: Os) -> Self {
        let state = State {
            disk: Disk::new(os),
            locks: BTreeMap::new(),
            held: BTreeMap::new(),
            denied: Vec::new(),
            space: Space {
                total: 1 << 40,
                available: 1 << 39,
                inodes: None,
            },
            folder_links: true,
            memory: BTreeMap::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Another machine whose disk has the same content; nobody holds or locks anything there.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        let state = self.state();
        let copy = State {
            disk: state.disk.clone(),
            locks: BTreeMap::new(),
            held: BTreeMap::new(),
            denied: state.denied.clone(),
            space: state.space,
            folder_links: state.folder_links,
            memory: state.memory.clone(),
        };
        Self {
            state: Arc::new(Mutex::new(copy)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine loses power: content and names that were not synced are gone, and with them every
    /// lock and every open file.
    pub fn crash(&self) {
        self.crash_with(Crash::LosesNames);
    }

    /// As [`FakeFiles::crash`], on a file system that happened to write all names but no content that
    /// was not synced: the crash that leaves empty files behind careless renames.
    pub fn crash_keeping_names(&self) {
        self.crash_with(Crash::KeepsNames);
    }

    fn crash_with(&self, crash: Crash) {
        let mut state = self.state();
        state.disk.crash(crash);
        for folder in std::mem::take(&mut state.memory).into_keys() {
            state.disk.empty(folder);
        }
        state.locks.clear();
        state.held.clear();
    }

    /// The limit of a folder whose content is only in memory; `None` if it is an ordinary one.
    pub fn memory_limit(&self, folder: &Utf8Path) -> Option<Option<u64>> {
        let state = self.state();
        let inode = state.disk.find(folder).ok()?;
        state.memory.get(&inode).copied()
    }

    /// Lets the disk be full after `bytes` more.
    pub fn fill_up_to(&self, bytes: u64) {
        self.state().space.available = bytes;
    }

    /// Refuses every change at or below `path`, and every reading of it.
    pub fn deny(&self, path: &Utf8Path) {
        let mut state = self.state();
        let key = state.disk.key(path);
        state.denied.push(key);
    }

    /// A process has the file open until [`FakeFiles::let_go`]. On Windows it can then be neither
    /// removed nor replaced. Panics if there is no such file.
    pub fn hold(&self, path: &Utf8Path, pid: u32, name: &str) {
        self.hold_for(path, pid, name, None);
    }

    /// As [`FakeFiles::hold`], for the first `pauses` of a retry.
    pub fn hold_briefly(&self, path: &Utf8Path, pid: u32, name: &str, pauses: u32) {
        self.hold_for(path, pid, name, Some(pauses));
    }

    fn hold_for(&self, path: &Utf8Path, pid: u32, name: &str, pauses: Option<u32>) {
        let mut state = self.state();
        let inode = state.disk.find(path).expect("a file to hold");
        let name = name.to_owned();
        state.held.insert(inode, (Holder { pid, name }, pauses));
    }

    /// Ends what [`FakeFiles::hold`] began.
    pub fn let_go(&self, path: &Utf8Path) {
        let mut state = self.state();
        if let Ok(inode) = state.disk.find(path) {
            state.held.remove(&inode);
        }
    }

    /// Another process takes the lock of a lock file that is there. Panics if there is none.
    pub fn lock_as(&self, path: &Utf8Path, pid: u32) {
        let mut state = self.state();
        let inode = state.disk.find(path).expect("a lock file");
        state.locks.insert(inode, pid);
    }

    /// The process `pid` dies: its locks and open files are released.
    pub fn process_dies(&self, pid: u32) {
        let mut state = self.state();
        state.locks.retain(|_, holder| *holder != pid);
        state.held.retain(|_, (holder, _)| holder.pid != pid);
    }

    /// From now on folder links are claimed to be made, and are not: as Wine does.
    pub fn pretend_folder_links(&self) {
        self.state().folder_links = false;
    }
}
