//! The operations of [`Files`] on any system that knows the [`Steps`]. Nothing is decided here: each
//! operation lives in the file of its concern.

use std::io::Read;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use super::error::At;
use super::steps::{Links, Steps};
use super::{
    Access, Discarded, Entry, FileError, FileLock, Files, Holders, How, Metadata, Named, Space,
    Staging, durable, links, lock, path, removal, retry, staging, tree,
};

impl<S: Steps> Files for S {
    fn os(&self) -> Os {
        Steps::os(self)
    }

    fn read(&self, path: &Utf8Path, limit: u64) -> Result<Vec<u8>, FileError> {
        let file = retry::patiently(self, || self.open(path, Links::Follow)).at("read", path)?;
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .at("read", path)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length <= limit) {
            Ok(bytes)
        } else {
            Err(FileError::TooLarge {
                path: path.to_owned(),
                limit,
            })
        }
    }

    fn metadata(&self, path: &Utf8Path) -> Result<Metadata, FileError> {
        Steps::metadata(self, path).at("look at", path)
    }

    fn list(&self, folder: &Utf8Path) -> Result<Vec<Entry>, FileError> {
        let mut names = Steps::names(self, folder).at("list", folder)?;
        names.sort();
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            let path = path::join(Steps::os(self), folder, &name);
            match Steps::metadata(self, &path) {
                Ok(metadata) => entries.push(Entry {
                    name,
                    path,
                    metadata,
                }),
                // Removed since its name was read.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(FileError::new("look at", &path, error)),
            }
        }
        Ok(entries)
    }

    fn names(&self, folder: &Utf8Path) -> Result<Vec<Named>, FileError> {
        let mut names = self.kinds(folder).at("list", folder)?;
        names.sort();
        Ok(names)
    }

    fn read_link(&self, link: &Utf8Path) -> Result<Utf8PathBuf, FileError> {
        links::read(self, link)
    }

    fn create_dir_all(&self, folder: &Utf8Path) -> Result<(), FileError> {
        durable::create_dir_all(self, folder)
    }

    fn write_durable(
        &self,
        path: &Utf8Path,
        bytes: &[u8],
        access: Access,
    ) -> Result<(), FileError> {
        durable::write(self, path, bytes, access)
    }

    fn replace(&self, from: &Utf8Path, to: &Utf8Path) -> Result<(), FileError> {
        durable::replace(self, from, to)
    }

    fn rename_dir(&self, from: &Utf8Path, to: &Utf8Path) -> Result<(), FileError> {
        durable::rename_dir(self, from, to)
    }

    fn sync_dir(&self, folder: &Utf8Path) -> Result<(), FileError> {
        Steps::sync_dir(self, folder).at("sync", folder)
    }

    fn sweep_temporaries(&self, folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, FileError> {
        durable::sweep(self, folder)
    }

    fn stage<'a>(&'a self, destination: &Utf8Path) -> Result<Staging<'a>, FileError> {
        staging::begin(self, destination)
    }

    fn copy_tree(&self, from: &Utf8Path, to: &Utf8Path, how: How) -> Result<(), FileError> {
        tree::copy(self, from, to, how)
    }

    fn link_file(&self, original: &Utf8Path, link: &Utf8Path) -> Result<(), FileError> {
        links::link_file(self, original, link)
    }

    fn link_dir(&self, target: &Utf8Path, link: &Utf8Path) -> Result<(), FileError> {
        links::link_dir(self, target, link)
    }

    fn replace_link(&self, target: &Utf8Path, link: &Utf8Path) -> Result<(), FileError> {
        links::replace_link(self, target, link)
    }

    fn remove_file(&self, path: &Utf8Path) -> Result<(), FileError> {
        removal::remove_file(self, path)
    }

    fn remove_tree(&self, path: &Utf8Path) -> Result<(), FileError> {
        removal::remove_tree(self, path)
    }

    fn discard(&self, path: &Utf8Path) -> Result<Discarded, FileError> {
        removal::discard(self, path)
    }

    fn holders(&self, path: &Utf8Path) -> Holders {
        Steps::holders(self, path)
    }

    fn lock(&self, path: &Utf8Path, wait: Duration) -> Result<FileLock, FileError> {
        lock::acquire(self, path, wait)
    }

    fn ensure_memory_folder(&self, folder: &Utf8Path, limit: Option<u64>) -> Result<(), FileError> {
        durable::create_dir_all(self, folder)?;
        self.mount_memory(folder, limit)
            .at("keep in memory", folder)
    }

    fn pin(&self, folder: &Utf8Path, below: &Utf8Path, place: &Utf8Path) -> Result<(), FileError> {
        if let Some(parent) = path::parent(Steps::os(self), place) {
            durable::create_dir_all(self, &parent)?;
        }
        let from = path::join(Steps::os(self), folder, below.as_str());
        self.bind(folder, below, place).at("hold", &from)
    }

    fn free_space(&self, path: &Utf8Path) -> Result<Space, FileError> {
        Steps::free_space(self, path).at("measure the space of", path)
    }
}
