//! Looks at every record of a store and compares what the kinds of records say of each other. Changes
//! nothing but what opening a database does.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use camino::Utf8Path;

use super::{
    LocalOptions,
    folder::{Folder, Found},
    layout::{Head, Version},
    tables::View,
};
use crate::{LeaseId, Revision, StoreError, blocking};

/// More faults than this are counted, not told.
const FAULTS_TOLD: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub revision: Revision,
    /// The oldest revision that can still be listed.
    pub compacted: Revision,
    /// Keys that exist.
    pub entries: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Values in all revisions that are kept, and deletions.
    pub versions: u64,
    /// Changes since `compacted`.
    pub changes: u64,
    pub leases: u64,
    /// The first hundred contradictions, as sentences.
    pub faults: Vec<String>,
    pub fault_count: u64,
}

impl Report {
    pub fn is_clean(&self) -> bool {
        self.fault_count == 0
    }

    fn fault(&mut self, fault: String) {
        self.fault_count += 1;
        if self.faults.len() < FAULTS_TOLD {
            self.faults.push(fault);
        }
    }
}

/// Checks the store in a folder that nobody uses.
///
/// Contradictions are in the report; what cannot be read at all is an error.
pub async fn check(folder: &Utf8Path) -> Result<Report, StoreError> {
    let path = folder.to_owned();
    blocking(move || {
        let missing = || StoreError::Damaged {
            place: path.to_string(),
            reason: "there is no store".to_owned(),
        };
        if super::folder::is_empty(&path)? {
            return Err(missing());
        }
        let folder = Folder::take(&path)?;
        if folder.look()? != Found::Store {
            return Err(missing());
        }
        let tables = super::open_tables(&folder, &LocalOptions::default())?;
        Checking::run(&Arc::new(tables).view())
    })
    .await
}

#[derive(Default)]
struct Checking {
    report: Report,
    /// Versions that changes speak of.
    known: HashSet<(String, Revision)>,
    /// The last change of each key that has one.
    last: HashMap<String, Head>,
    leases: HashSet<LeaseId>,
    keys_of_leases: HashSet<(LeaseId, String)>,
}

impl Checking {
    fn run(view: &View) -> Result<Report, StoreError> {
        let mut checking = Self::default();
        checking.report.revision = view.revision()?;
        checking.report.compacted = view.compacted()?;
        for lease in view.leases() {
            checking.leases.insert(lease?.0);
        }
        checking.report.leases = checking.leases.len() as u64;
        for pair in view.lease_keys() {
            checking.keys_of_leases.insert(pair?);
        }
        checking.changes(view)?;
        checking.heads(view)?;
        checking.versions(view)?;
        for (lease, key) in std::mem::take(&mut checking.keys_of_leases) {
            let lease = lease.0;
            checking.fault(format!("lease {lease} has `{key}`, which is not under it"));
        }
        Ok(checking.report)
    }

    fn fault(&mut self, fault: String) {
        self.report.fault(fault);
    }

    /// Revisions follow each other without a gap, and every change has its versions.
    fn changes(&mut self, view: &View) -> Result<(), StoreError> {
        let trimmed = view.trimmed()?;
        let mut expected = (trimmed.max(Revision::EMPTY), u32::MAX);
        for change in view.changes(Revision(0)) {
            let (revision, number, change) = change?;
            let next_number = (revision == expected.0) && (number == expected.1.wrapping_add(1));
            let next_revision = revision.0 == expected.0.0 + 1 && number == 0;
            if !next_number && !next_revision {
                self.fault(format!(
                    "change {number} of revision {revision} follows change {} of {}",
                    expected.1, expected.0
                ));
            }
            expected = (revision, number);
            self.report.changes += u64::from(revision > self.report.compacted);
            for modified in [Some(revision), change.previous].into_iter().flatten() {
                self.known.insert((change.key.clone(), modified));
            }
            let head = Head {
                modified: revision,
                deleted: change.deleted,
            };
            self.last.insert(change.key, head);
        }
        if expected.0 != self.report.revision {
            self.fault(format!(
                "the newest change is of revision {}, the store is at {}",
                expected.0, self.report.revision
            ));
        }
        Ok(())
    }

    /// Every head is its key's last change, and its version is there.
    fn heads(&mut self, view: &View) -> Result<(), StoreError> {
        for head in view.heads("", None) {
            let (key, head) = head?;
            match self.last.remove(&key) {
                Some(last) if last != head => {
                    self.fault(format!("`{key}` is not what its last change made of it"));
                }
                None if head.deleted || head.modified > self.report.compacted => {
                    self.fault(format!("`{key}` was changed, but no change tells of it"));
                }
                _ => {}
            }
            self.known.insert((key.clone(), head.modified));
            if head.deleted {
                continue;
            }
            match view.expect_entry(&key, head.modified) {
                Ok(entry) => {
                    self.report.entries += 1;
                    self.report.bytes += entry.value.len() as u64;
                    if entry.created > entry.modified {
                        self.fault(format!("`{key}` was changed before it was made"));
                    }
                    self.lease(key, entry.lease);
                }
                Err(StoreError::Damaged { place, reason }) => {
                    self.fault(format!("`{place}`: {reason}"));
                }
                Err(error) => return Err(error),
            }
        }
        for key in std::mem::take(&mut self.last).into_keys() {
            self.fault(format!("`{key}` has changes, but no newest value"));
        }
        Ok(())
    }

    fn lease(&mut self, key: String, lease: Option<LeaseId>) {
        let Some(lease) = lease else { return };
        if !self.leases.contains(&lease) {
            self.fault(format!("`{key}` is under lease {}, which ended", lease.0));
        }
        let id = lease.0;
        let place = (lease, key);
        if !self.keys_of_leases.remove(&place) {
            let key = place.1;
            self.fault(format!(
                "`{key}` is under lease {id}, which has no such key"
            ));
        }
    }

    /// There is every version that something speaks of, and no other one.
    fn versions(&mut self, view: &View) -> Result<(), StoreError> {
        for pair in view.versions() {
            let (key, value) = pair?;
            let (key, revision) = Version::parse_key(&key)?;
            Version::decode(&value)?;
            self.report.versions += 1;
            let place = (key, revision);
            if !self.known.remove(&place) {
                let key = place.0;
                self.fault(format!("nothing refers to `{key}` of revision {revision}"));
            }
        }
        for (key, revision) in std::mem::take(&mut self.known) {
            self.fault(format!("`{key}` of revision {revision} is missing"));
        }
        Ok(())
    }
}
