//! Collecting what nothing needs any more: old generations, and packages that no generation has. What
//! somebody has open is left whole, with its holder named.

use std::collections::BTreeSet;

use serde::Serialize;
use transom_host::files::{Discarded, FileError, Holders};
use transom_model::package::PackageId;

use camino::Utf8Path;

use super::generations::{self, Note};
use super::pointer::Pointer;
use super::recover::sentence;
use super::{NodeError, Session, manifest};

/// What to collect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// How many of the newest generations stay, whatever they are.
    pub keep: usize,
    /// Whether packages that no generation has go too.
    pub packages: bool,
    /// Packages that stay all the same: those that are about to become active.
    pub spare: BTreeSet<PackageId>,
    /// Says what would go, and removes nothing.
    pub dry_run: bool,
}

/// What was collected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Collected {
    pub generations: Vec<u64>,
    pub packages: Vec<PackageId>,
    /// What could have gone, and is in use.
    pub in_use: Vec<Kept>,
}

/// Something that is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// `generation 7`, or a package's id.
    pub what: String,
    pub why: String,
}

impl Session<'_> {
    /// Removes old generations and unused packages: never what is active, what was active before it,
    /// what is pinned, or what somebody uses.
    pub fn collect(&self, collection: &Collection) -> Result<Collected, NodeError> {
        let pointer = self.pointer()?.unwrap_or_else(Pointer::never);
        let mut collected = Collected::default();
        let numbers = generations::numbers(self.files, self.places)?;
        let newest = numbers.len().saturating_sub(collection.keep);
        let mut staying = numbers[newest..].to_vec();
        for number in &numbers[..newest] {
            let is_needed = pointer.active == Some(*number)
                || pointer.previous == Some(*number)
                || generations::has(self.files, self.places, *number, Note::Pinned)?;
            if is_needed {
                staying.push(*number);
                continue;
            }
            let what = format!("generation {number}");
            let folder = self.places.generation(*number);
            if !self.try_to_discard(&what, &folder, collection.dry_run, &mut collected)? {
                staying.push(*number);
                continue;
            }
            if !collection.dry_run {
                generations::forget(self.files, self.places, *number)?;
            }
            collected.generations.push(*number);
        }
        if collection.packages {
            self.collect_packages(&staying, collection, &mut collected)?;
        }
        Ok(collected)
    }

    fn collect_packages(
        &self,
        staying: &[u64],
        collection: &Collection,
        collected: &mut Collected,
    ) -> Result<(), NodeError> {
        let mut needed = collection.spare.clone();
        for number in staying {
            let manifest = manifest::read(self.files, self.places, *number)?;
            needed.extend(manifest.into_iter().flat_map(|manifest| manifest.ids()));
        }
        for id in self.node.packages()? {
            let folder = self.places.package(&id);
            if !needed.contains(&id)
                && self.try_to_discard(id.as_str(), &folder, collection.dry_run, collected)?
            {
                collected.packages.push(id);
            }
        }
        Ok(())
    }

    /// Removes a folder that nobody uses, and says whether it is gone from sight.
    fn try_to_discard(
        &self,
        what: &str,
        folder: &Utf8Path,
        dry_run: bool,
        collected: &mut Collected,
    ) -> Result<bool, NodeError> {
        let mut keep = |why: String| {
            let what = what.to_owned();
            collected.in_use.push(Kept { what, why });
        };
        // Linux would let us take a running program's files away from it.
        if let Holders::Known(holders) = self.files.holders(folder)
            && !holders.is_empty()
        {
            let holders = Holders::Known(holders);
            keep(format!("it is in use by {holders}"));
            return Ok(false);
        }
        if dry_run {
            return Ok(true);
        }
        match self.files.discard(folder) {
            Ok(Discarded::Gone) => Ok(true),
            Ok(Discarded::Left { reason, .. }) => {
                keep(sentence(&reason));
                Ok(true)
            }
            Err(error @ FileError::InUse { .. }) => {
                keep(sentence(&error));
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}
