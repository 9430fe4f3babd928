//! What a build sees of the packages it requires: their folders merged as on a node, without one. Files
//! of two packages never hide each other: that is an error here as it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{Access, Entry, FileError, Files, How, Kind, Native};
use transom_model::Os;
use transom_model::package::PackageId;

use crate::archive::{Unpack, UnpackError, unpack};
use crate::info::{self, InfoError, PackageInfo};

/// What packages have in common on a node.
const MERGED: [&str; 4] = ["bin", "etc", "include", "lib"];
const LARGEST_INFO: u64 = 4 << 20;
/// Where nodes of Linux have their packages, and scripts expect them.
pub(super) const ROOT: &str = "/opt/mesosphere";

/// Why the required packages cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum DependencyError {
    #[error("`{id}` is required and has not been built")]
    Missing { id: PackageId },
    #[error("the required package `{id}` cannot be unpacked")]
    Unpack {
        id: PackageId,
        #[source]
        source: Box<UnpackError>,
    },
    #[error("the required package `{id}` cannot be read")]
    Info {
        id: PackageId,
        #[source]
        source: InfoError,
    },
    #[error("`{path}` is in `{first}` and in `{second}`, which are both required")]
    Conflict {
        path: String,
        first: PackageId,
        second: PackageId,
    },
    #[error(transparent)]
    Files(#[from] FileError),
}

/// Unpacks a package for those that require it, unless it is already.
pub(super) fn ensure_unpacked(
    id: &PackageId,
    archive: &Utf8Path,
    destination: &Utf8Path,
) -> Result<(), DependencyError> {
    let files = Native;
    if files.metadata(destination).is_ok() {
        return Ok(());
    }
    if files.metadata(archive).is_err() {
        return Err(DependencyError::Missing { id: id.clone() });
    }
    match unpack(&files, archive, destination, &Unpack::of(id)) {
        Ok(_) => Ok(()),
        // Another build of ours was quicker; what it made is complete.
        Err(_) if files.metadata(destination).is_ok() => Ok(()),
        Err(source) => Err(DependencyError::Unpack {
            id: id.clone(),
            source: Box::new(source),
        }),
    }
}

/// Puts the root together that a build takes for a node: `packages` by id, where they are unpacked.
pub(super) fn arrange(
    folder: &Utf8Path,
    packages: &BTreeMap<PackageId, Utf8PathBuf>,
    own: &PackageId,
) -> Result<(), DependencyError> {
    let files = Native;
    let mut merge = Merge {
        os: files.os(),
        owners: BTreeMap::new(),
        folders: BTreeSet::new(),
        leaves: Vec::new(),
    };
    for (id, unpacked) in packages {
        for name in MERGED {
            let from = unpacked.join(name);
            if files
                .metadata(&from)
                .is_ok_and(|found| found.kind == Kind::Dir)
            {
                merge.enter(id, &from, name)?;
            }
        }
    }
    let mut staging = files.stage(folder)?;
    for name in MERGED.into_iter().chain(["packages"]) {
        merge.folders.insert(name.to_owned());
    }
    for id in packages.keys().chain([own]) {
        merge.folders.insert(format!("packages/{id}"));
    }
    let is_linux = files.os() == Os::Linux;
    for path in &merge.folders {
        // On Windows the packages themselves come later, under this name.
        if is_linux || !path.starts_with("packages/") {
            staging.make_dir(path.as_str().into(), 0o755)?;
        }
    }
    for (id, path, from) in &merge.leaves {
        if is_linux {
            let target = format!("{ROOT}/packages/{id}/{path}");
            staging.symlink(&target, path.as_str().into())?;
        } else {
            staging.link_from(from, path.as_str().into())?;
        }
    }
    staging.commit()?;
    if !is_linux {
        for (id, unpacked) in packages {
            let to = folder.join("packages").join(id.as_str());
            files.copy_tree(unpacked, &to, How::HardLink)?;
        }
    }
    let environment = environment(packages)?;
    files.write_durable(
        &folder.join("environment.export"),
        environment.as_bytes(),
        Access::Public,
    )?;
    Ok(())
}

struct Merge {
    os: Os,
    /// By key: who has it first.
    owners: BTreeMap<String, (PackageId, bool)>,
    folders: BTreeSet<String>,
    leaves: Vec<(PackageId, String, Utf8PathBuf)>,
}

impl Merge {
    fn enter(
        &mut self,
        id: &PackageId,
        folder: &Utf8Path,
        below: &str,
    ) -> Result<(), DependencyError> {
        self.folders.insert(below.to_owned());
        for entry in Native.list(folder)? {
            let path = format!("{below}/{}", entry.name);
            let is_dir = entry.metadata.kind == Kind::Dir;
            self.claim(id, &path, is_dir)?;
            if is_dir {
                self.enter(id, &entry.path, &path)?;
            } else {
                self.leaf(id, path, entry);
            }
        }
        Ok(())
    }

    fn leaf(&mut self, id: &PackageId, path: String, entry: Entry) {
        self.leaves.push((id.clone(), path, entry.path));
    }

    fn claim(&mut self, id: &PackageId, path: &str, is_dir: bool) -> Result<(), DependencyError> {
        let key = transom_host::files::archive::key(self.os, path);
        match self.owners.get(&key) {
            Some((_, true)) if is_dir => Ok(()),
            Some((first, _)) => Err(DependencyError::Conflict {
                path: path.to_owned(),
                first: first.clone(),
                second: id.clone(),
            }),
            None => {
                self.owners.insert(key, (id.clone(), is_dir));
                Ok(())
            }
        }
    }
}

/// What scripts read to find programs, libraries and the variables of packages.
fn environment(packages: &BTreeMap<PackageId, Utf8PathBuf>) -> Result<String, DependencyError> {
    let mut text = format!("export LD_LIBRARY_PATH={ROOT}/lib\nexport PATH={ROOT}/bin:$PATH\n");
    for (id, unpacked) in packages {
        let bytes = Native.read(&unpacked.join(info::FILE_NAME), LARGEST_INFO)?;
        let info = PackageInfo::parse(&bytes).map_err(|source| DependencyError::Info {
            id: id.clone(),
            source,
        })?;
        for (name, value) in &info.environment {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "export {name}={value}");
        }
    }
    Ok(text)
}
