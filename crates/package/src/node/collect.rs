//! Collecting what nothing needs any more: old generations, and packages that no generation has. What
//! somebody has open is left whole, with its holder named.

use std::collections::BTreeSet;

use serde::Serialize;
use transom_host::files::{Discarded, FileError, Holders};
use transom_model::package::PackageId;

use camino::Utf8Path;

use super::generations::{self, Note};
use super::pointer::Pointer;
use super::{Node, NodeError, Session, manifest};
use crate::fault::sentence;

/// What to collect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// How many of the newest generations stay, whatever they are.
    pub keep: usize,
    /// Whether packages that no generation has go too.
    pub packages: bool,
    /// Packages that stay all the same: those that are about to become active.
    pub spare: BTreeSet<PackageId>,
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

impl Node {
    /// What a collection would remove. Nothing is changed, and nobody is waited for.
    pub fn plan_collection(&self, collection: &Collection) -> Result<Collected, NodeError> {
        self.collect(collection, true)
    }

    fn collect(&self, collection: &Collection, dry_run: bool) -> Result<Collected, NodeError> {
        let (files, places) = (self.files(), self.places());
        let pointer = self.pointer()?.unwrap_or_else(Pointer::never);
        let mut collected = Collected::default();
        let numbers = generations::numbers(files, places)?;
        let newest = numbers.len().saturating_sub(collection.keep);
        let mut staying = numbers[newest..].to_vec();
        for number in &numbers[..newest] {
            let is_needed = pointer.active == Some(*number)
                || pointer.previous == Some(*number)
                || generations::has(files, places, *number, Note::Pinned)?;
            if is_needed {
                staying.push(*number);
                continue;
            }
            let what = format!("generation {number}");
            let folder = places.generation(*number);
            if !self.try_to_discard(&what, &folder, dry_run, &mut collected)? {
                staying.push(*number);
                continue;
            }
            if !dry_run {
                generations::forget(files, places, *number)?;
            }
            collected.generations.push(*number);
        }
        if collection.packages {
            self.collect_packages(&staying, collection, dry_run, &mut collected)?;
        }
        Ok(collected)
    }

    fn collect_packages(
        &self,
        staying: &[u64],
        collection: &Collection,
        dry_run: bool,
        collected: &mut Collected,
    ) -> Result<(), NodeError> {
        let (files, places) = (self.files(), self.places());
        let mut needed = collection.spare.clone();
        for number in staying {
            let manifest = manifest::read(files, places, *number)?;
            needed.extend(manifest.into_iter().flat_map(|manifest| manifest.ids()));
        }
        for id in self.packages()? {
            let folder = places.package(&id);
            if !needed.contains(&id)
                && self.try_to_discard(id.as_str(), &folder, dry_run, collected)?
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
        let files = self.files();
        // Linux would let us take a running program's files away from it.
        if let Holders::Known(holders) = files.holders(folder)
            && !holders.is_empty()
        {
            let holders = Holders::Known(holders);
            keep(format!("it is in use by {holders}"));
            return Ok(false);
        }
        if dry_run {
            return Ok(true);
        }
        match files.discard(folder) {
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

impl Session<'_> {
    /// Removes old generations and unused packages: never what is active, what was active before it,
    /// what is pinned, or what somebody uses.
    pub fn collect(&self, collection: &Collection) -> Result<Collected, NodeError> {
        self.node.collect(collection, false)
    }
}
