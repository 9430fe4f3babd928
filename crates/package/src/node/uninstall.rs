//! Taking a node's software away. A marker is written first: from then on every recovery goes on with
//! it until nothing of ours is left, so a crash leaves all of the software or, after that, none.

use camino::Utf8PathBuf;
use serde::Serialize;
use transom_host::files::{Access, Discarded, FileError, is_temporary, path};

use super::pointer;
use super::services::Services;
use super::{NodeError, Places, Session, is_there};
use crate::fault::sentence;

/// The unit that wants all units of packages.
const TARGET: &str = "# Made by transom.\n[Unit]\nDescription=All services of packages\n\n\
                      [Install]\nWantedBy=multi-user.target\n";

/// What an uninstallation did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Uninstalled {
    /// What is in the root and not ours; the root stays because of it.
    pub left: Vec<Utf8PathBuf>,
    pub remarks: Vec<String>,
}

impl Session<'_> {
    /// Stops the services and removes all software of the node. State directories stay.
    pub fn uninstall(self, services: &dyn Services) -> Result<Uninstalled, NodeError> {
        let known = [
            self.places.pointer(),
            self.places.generations(),
            self.places.repository.clone(),
        ];
        let mut is_node = false;
        for place in &known {
            is_node |= is_there(self.files, place)?;
        }
        if !is_node {
            return Err(NodeError::NotANode {
                path: self.places.root.clone(),
            });
        }
        let active = self.pointer()?.and_then(|pointer| pointer.active);
        if let Some(active) = active {
            let mut units = self.units_in_order(active)?;
            units.reverse();
            services
                .stop(&units)
                .map_err(|source| NodeError::NotStopped { source })?;
        }
        self.files
            .write_durable(&self.places.uninstalling(), b"", Access::Public)?;
        let mut uninstalled = self.finish_uninstall()?;
        if active.is_some()
            && let Err(error) = services.reload()
        {
            uninstalled.remarks.push(sentence(&error));
        }
        let (files, places) = (self.files, self.places);
        // On Windows a lock file that is held cannot be removed.
        self.lock.release();
        files.remove_file(&places.lock())?;
        if files.names(&places.root)?.is_empty() {
            files.remove_tree(&places.root)?;
        }
        Ok(uninstalled)
    }

    /// Writes `dcos.target`, which wants all units of packages, where it is missing.
    pub fn write_target(&self) -> Result<(), NodeError> {
        if is_there(self.files, &self.places.target())? {
            return Ok(());
        }
        self.files.create_dir_all(&self.places.unit_dir)?;
        let text = TARGET.as_bytes();
        Ok(self
            .files
            .write_durable(&self.places.target(), text, Access::Public)?)
    }

    /// Whether `dcos.target` is there and is ours.
    fn has_target(&self) -> Result<bool, NodeError> {
        match self.files.read(&self.places.target(), TARGET.len() as u64) {
            Ok(text) => Ok(text == TARGET.as_bytes()),
            Err(FileError::NotFound { .. } | FileError::TooLarge { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Everything but the lock file and the root itself.
    pub(super) fn finish_uninstall(&self) -> Result<Uninstalled, NodeError> {
        let mut report = Uninstalled::default();
        // Nothing is active from here on, so links and units are stale and go.
        if let Some(pointer) = pointer::read(self.files, self.places)? {
            let none = pointer.emptied();
            pointer::write(self.files, self.places, &none)?;
            self.derive(&none, &mut Vec::new(), &mut report.remarks)?;
        }
        if self.has_target()? {
            self.files.remove_file(&self.places.target())?;
        }
        let mut first = vec![self.places.generations()];
        if self.places.repository == self.places.in_root("packages") {
            first.push(self.places.repository.clone());
        }
        let mut last = vec![self.places.pointer(), self.places.uninstalling()];
        let lock = self.places.lock();
        for entry in self.files.names(&self.places.root)? {
            let path = path::join(self.places.os, &self.places.root, &entry.name);
            if path == lock || last.contains(&path) || first.contains(&path) {
                continue;
            }
            if is_temporary(&entry.name) || Places::is_of_root(&entry.name) {
                first.push(path);
            } else {
                report.left.push(path);
            }
        }
        first.append(&mut last);
        for path in first {
            match self.files.discard(&path) {
                Ok(Discarded::Gone) => {}
                Ok(Discarded::Left { reason, .. }) => report.remarks.push(sentence(&reason)),
                Err(error @ FileError::InUse { .. }) => {
                    report.remarks.push(sentence(&error));
                    report.left.push(path);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(report)
    }
}
