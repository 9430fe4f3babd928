//! The folder `cache` of a source tree: archives, logs, sources, and what is being worked on. Invariant:
//! what has its final name is complete; what is half done lies in `work`, which only the holder of the
//! lock uses and which it empties before it begins.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use transom_host::files::{Access, FileError, FileLock, Files, Native};
use transom_model::Os;
use transom_model::package::{PackageId, Variant};
use uuid::Uuid;

use crate::archive::extension;
use crate::tree::Tree;

/// Larger files of ours are a mistake.
const SMALL: u64 = 4096;

/// The cache of one source tree, ours alone until it is dropped.
#[derive(Debug)]
pub struct Cache {
    folder: Utf8PathBuf,
    _lock: FileLock,
}

fn package(cache: &Utf8Path, id: &PackageId) -> Utf8PathBuf {
    cache.join("packages").join(id.name_str())
}

/// Where the archive of a package is in a cache, or will be.
pub(super) fn archive(cache: &Utf8Path, id: &PackageId, os: Os) -> Utf8PathBuf {
    package(cache, id).join(format!("{id}.{}", extension(os)))
}

/// The folder of the cache of a source tree.
pub(super) fn folder_of(packages: &Utf8Path) -> Utf8PathBuf {
    packages.join("cache")
}

impl Cache {
    /// Takes the cache of the source tree at `packages`, waiting at most `wait` for another build. Calls
    /// `waiting` with the id of its process before it waits.
    pub fn open(
        packages: &Utf8Path,
        wait: Duration,
        waiting: &dyn Fn(Option<u32>),
    ) -> Result<Self, FileError> {
        let files = Native;
        let folder =
            camino::absolute_utf8(folder_of(packages)).map_err(|source| FileError::Io {
                action: "find",
                path: packages.to_owned(),
                source,
            })?;
        files.create_dir_all(&folder)?;
        let path = folder.join("build.lock");
        let lock = match files.lock(&path, Duration::ZERO) {
            Err(FileError::Locked { holder, .. }) => {
                waiting(holder);
                files.lock(&path, wait)?
            }
            taken => taken?,
        };
        let cache = Self {
            folder,
            _lock: lock,
        };
        cache.clean()?;
        Ok(cache)
    }

    /// Removes what an earlier build left when it was killed.
    fn clean(&self) -> Result<(), FileError> {
        let files = Native;
        let work = self.folder.join("work");
        files.remove_tree(&work)?;
        files.create_dir_all(&work)?;
        for folder in ["unpacked", "images", "complete"] {
            let folder = self.folder.join(folder);
            files.create_dir_all(&folder)?;
            files.sweep_temporaries(&folder)?;
        }
        let packages = self.folder.join("packages");
        files.create_dir_all(&packages)?;
        for entry in files.list(&packages)? {
            files.sweep_temporaries(&entry.path)?;
        }
        Ok(())
    }

    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// Where the archive of a package is, or will be.
    pub fn archive(&self, id: &PackageId, os: Os) -> Utf8PathBuf {
        archive(&self.folder, id, os)
    }

    pub fn has_archive(&self, id: &PackageId, os: Os) -> bool {
        Native.metadata(&self.archive(id, os)).is_ok()
    }

    /// Where the log of a package's build is.
    pub fn log(&self, id: &PackageId) -> Utf8PathBuf {
        self.package(id).join("logs").join(format!("{id}.log"))
    }

    /// Where a package is unpacked for those that depend on it.
    pub(super) fn unpacked(&self, id: &PackageId) -> Utf8PathBuf {
        self.folder.join("unpacked").join(id.as_str())
    }

    fn package(&self, id: &PackageId) -> Utf8PathBuf {
        package(&self.folder, id)
    }

    /// Makes an empty folder for one piece of work.
    pub(super) fn work(&self, name: &str) -> Result<Utf8PathBuf, FileError> {
        let unique = Uuid::new_v4().simple();
        let folder = self.folder.join("work").join(format!("{name}-{unique}"));
        Native.create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Empties the log of a package and returns its path.
    pub(super) fn new_log(&self, id: &PackageId) -> Result<Utf8PathBuf, FileError> {
        let log = self.log(id);
        Native.create_dir_all(&self.package(id).join("logs"))?;
        Native.write_durable(&log, b"", Access::Public)?;
        Ok(log)
    }

    /// Gives a complete archive its name.
    pub(super) fn keep_archive(
        &self,
        id: &PackageId,
        os: Os,
        archive: &Utf8Path,
    ) -> Result<(), FileError> {
        Native.create_dir_all(&self.package(id))?;
        Native.replace(archive, &self.archive(id, os))
    }

    /// Notes which id a variant of a package was built as last.
    pub(super) fn note_latest(&self, id: &PackageId, variant: &Variant) -> Result<(), FileError> {
        let name = format!("{}latest", variant.file_prefix());
        let path = self.package(id).join(name);
        if Native
            .read(&path, SMALL)
            .is_ok_and(|text| text == id.as_str().as_bytes())
        {
            return Ok(());
        }
        Native.create_dir_all(&self.package(id))?;
        Native.write_durable(&path, id.as_str().as_bytes(), Access::Public)
    }

    /// Notes that all packages of a tree are there.
    pub fn note_complete(&self, tree: &Tree) -> Result<Utf8PathBuf, FileError> {
        let mut packages: Vec<&PackageId> = tree.packages.iter().map(|one| &one.id).collect();
        packages.sort();
        let text = json!({"bootstrap": tree.bootstrap, "packages": packages});
        let name = format!("{}complete.latest.json", tree.variant.file_prefix());
        let path = self.folder.join("complete").join(name);
        let text = format!("{text:#}\n");
        Native.write_durable(&path, text.as_bytes(), Access::Public)?;
        Ok(path)
    }
}
