//! The packages of a node: one folder each, there completely or not at all, and never changed.

use camino::Utf8Path;
use transom_host::files::{Discarded, FileError, How, Kind, Staging, path};
use transom_model::package::PackageId;

use super::{Node, NodeError, Session, generations, is_there, load, manifest};
use crate::fault::sentence;
use crate::info::PackageInfo;

/// What became of a package that was to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    Now,
    /// A package never changes, so nothing was done.
    Already,
}

/// What became of a package that was to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed {
    Now,
    /// It was not there.
    Absent,
    /// It is out of sight, and the rest of it goes when those who hold it let go.
    Later {
        why: String,
    },
}

type UnpackError = Box<dyn std::error::Error + Send + Sync>;

impl Node {
    /// The ids of all packages, sorted.
    pub fn packages(&self) -> Result<Vec<PackageId>, NodeError> {
        let names = match self.files().names(&self.places().repository) {
            Ok(names) => names,
            Err(FileError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut ids: Vec<PackageId> = names
            .into_iter()
            .filter(|entry| matches!(entry.kind, Kind::Dir | Kind::Link))
            .filter_map(|entry| entry.name.parse().ok())
            .collect();
        ids.sort();
        Ok(ids)
    }

    pub fn contains(&self, id: &PackageId) -> Result<bool, NodeError> {
        is_there(self.files(), &self.places().package(id))
    }

    /// Whether there is something to remove. What a generation needs is refused. Nothing is changed.
    pub fn plan_removal(&self, id: &PackageId) -> Result<bool, NodeError> {
        if let Some(active) = self.active()?
            && active.contents.ids().any(|other| other == id)
        {
            return Err(NodeError::PackageActive { id: id.clone() });
        }
        for generation in generations::numbers(self.files(), self.places())? {
            let manifest = manifest::read(self.files(), self.places(), generation)?;
            if manifest.is_some_and(|manifest| manifest.contents.ids().any(|other| other == id)) {
                return Err(NodeError::PackageKept {
                    id: id.clone(),
                    generation,
                });
            }
        }
        self.contains(id)
    }

    /// What a package asks of the node.
    pub fn package_info(&self, id: &PackageId) -> Result<PackageInfo, super::ActivationFault> {
        load::load_info(self.files(), self.places(), id)
    }

    /// Checks that the file system of packages has room for `needed` more bytes.
    pub fn ensure_space(&self, needed: u64) -> Result<(), NodeError> {
        let os = self.places().os;
        let mut place = self.places().repository.clone();
        // It need not be there yet; its file system is.
        while !is_there(self.files(), &place)? {
            match path::parent(os, &place) {
                Some(parent) => place = parent,
                None => break,
            }
        }
        let available = self.files().free_space(&place)?.available;
        if available < needed {
            return Err(NodeError::NotEnoughSpace {
                path: place,
                available,
                needed,
            });
        }
        Ok(())
    }
}

impl Session<'_> {
    /// Adds a package. `unpack` fills its folder, which nobody sees before all of it is there.
    pub fn add(
        &self,
        id: &PackageId,
        unpack: impl FnOnce(&mut Staging<'_>) -> Result<(), UnpackError>,
    ) -> Result<Added, NodeError> {
        self.add_at(id, |destination| {
            let mut staging = self.files.stage(destination)?;
            unpack(&mut staging)?;
            Ok(staging.commit()?)
        })
    }

    /// Adds a package that is unpacked elsewhere already, as a copy of that folder.
    pub fn add_folder(&self, id: &PackageId, folder: &Utf8Path) -> Result<Added, NodeError> {
        self.add_at(id, |destination| {
            Ok(self.files.copy_tree(folder, destination, How::Copy)?)
        })
    }

    /// Adds a package by a function that makes the folder it is given: completely and durably, or not
    /// at all, as [`extract_tar`](transom_host::files::archive::extract_tar) does.
    pub fn add_at(
        &self,
        id: &PackageId,
        make: impl FnOnce(&Utf8Path) -> Result<(), UnpackError>,
    ) -> Result<Added, NodeError> {
        let destination = self.places.package(id);
        if is_there(self.files, &destination)? {
            return Ok(Added::Already);
        }
        self.files.create_dir_all(&self.places.repository)?;
        make(&destination).map_err(|source| NodeError::Unpack {
            id: id.clone(),
            source,
        })?;
        if let Err(fault) = load::load_info(self.files, self.places, id) {
            self.discard_package(id)?;
            return Err(NodeError::NotAPackage {
                id: id.clone(),
                source: Box::new(fault),
            });
        }
        Ok(Added::Now)
    }

    /// Removes a package that no generation needs.
    pub fn remove(&self, id: &PackageId) -> Result<Removed, NodeError> {
        if self.node.plan_removal(id)? {
            self.discard_package(id)
        } else {
            Ok(Removed::Absent)
        }
    }

    pub(super) fn discard_package(&self, id: &PackageId) -> Result<Removed, NodeError> {
        match self.files.discard(&self.places.package(id))? {
            Discarded::Gone => Ok(Removed::Now),
            Discarded::Left { reason, .. } => Ok(Removed::Later {
                why: sentence(&reason),
            }),
        }
    }
}
