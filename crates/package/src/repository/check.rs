//! Looks through a whole repository: every signature, digest and expiry, and what lies about that no
//! metadata names. Only looks; all problems are reported, not the first.

use std::collections::{BTreeSet, HashSet};

use camino::Utf8Path;
use jiff::Timestamp;
use transom_host::files::{FileError, Files as _, Kind, Native};
use transom_model::package::PackageId;

use super::client::parse_list;
use super::editor::{folder_url, read};
use super::entry::{Entry, LARGEST_LIST};
use super::metadata::Held;
use super::names::{METADATA, MIRROR, PACKAGE_LISTS, PACKAGES, TIMESTAMP, below};
use super::trust::Trusted;
use super::{EditError, RepositoryError};
use crate::download::{DigestError, Downloader, digest_file};
use crate::fault::sentence;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Problem {
    /// Where, below the repository.
    pub path: String,
    pub message: String,
}

/// What a repository is like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub packages: usize,
    pub lists: usize,
    pub bytes: u64,
    /// Archives that a mirror does not have.
    pub absent: usize,
    pub problems: Vec<Problem>,
}

/// Looks through a repository that is a folder. `looked` is called before each archive.
pub async fn check(
    folder: &Utf8Path,
    downloader: &Downloader,
    now: Timestamp,
    looked: &(dyn Fn(&Entry) + Send + Sync),
) -> Result<Report, EditError> {
    let base = folder_url(folder)?;
    let trusted = match read(downloader, &base).await {
        Ok(trusted) => trusted,
        Err(error @ (RepositoryError::NoRepository { .. } | RepositoryError::Location { .. })) => {
            return Err(error.into());
        }
        Err(error) => {
            let mut report = Report::default();
            report.add(METADATA, &sentence(&error));
            return Ok(report);
        }
    };
    let mut report = Report::default();
    report.look_at_expiry(&trusted, now);
    let mirror = Native.metadata(&folder.join(MIRROR)).is_ok();
    for entry in &trusted.entries {
        looked(entry);
        report.look_at_entry(folder, entry, mirror);
    }
    report.look_at_lists(folder, &trusted.entries);
    for orphan in orphans(folder, &trusted)? {
        report.add(&orphan, "nothing names this file");
    }
    report.problems.sort();
    Ok(report)
}

impl Report {
    fn add(&mut self, path: &str, message: &str) {
        self.problems.push(Problem {
            path: path.to_owned(),
            message: message.to_owned(),
        });
    }

    fn look_at_expiry(&mut self, trusted: &Trusted, now: Timestamp) {
        fn of<T: tough::schema::Role>(held: &Held<T>, now: Timestamp) -> Option<RepositoryError> {
            held.check_not_expired(now).err()
        }
        let expired = [
            of(&trusted.root, now),
            of(&trusted.targets, now),
            of(&trusted.snapshot, now),
            of(&trusted.timestamp, now),
        ];
        for error in expired.into_iter().flatten() {
            self.add(METADATA, &error.to_string());
        }
    }

    fn look_at_entry(&mut self, folder: &Utf8Path, entry: &Entry, mirror: bool) {
        match entry {
            Entry::Package(_) => self.packages += 1,
            Entry::List(_) => self.lists += 1,
        }
        let path = entry.path();
        match digest_file(&below(folder, &path)) {
            Ok(found) if found.sha256 != entry.sha256() => {
                let message = format!(
                    "it has the digest {}, and {} was signed",
                    found.sha256,
                    entry.sha256()
                );
                self.add(&path, &message);
            }
            Ok(found) => self.bytes += found.length,
            Err(DigestError::Missing { .. }) if mirror => self.absent += 1,
            Err(DigestError::Missing { .. }) => self.add(&path, "it is missing"),
            Err(error) => self.add(&path, &sentence(&error)),
        }
    }

    fn look_at_lists(&mut self, folder: &Utf8Path, entries: &[Entry]) {
        let there: HashSet<&PackageId> = entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Package(package) => Some(&package.id),
                Entry::List(_) => None,
            })
            .collect();
        for entry in entries {
            let Entry::List(_) = entry else { continue };
            let path = entry.path();
            // One that cannot be read was reported above.
            let Ok(bytes) = Native.read(&below(folder, &path), LARGEST_LIST) else {
                continue;
            };
            match parse_list(&path, &bytes) {
                Ok(packages) => {
                    for id in packages.iter().filter(|id| !there.contains(id)) {
                        let message = format!("it names `{id}`, which is not in the repository");
                        self.add(&path, &message);
                    }
                }
                Err(error) => self.add(&path, &sentence(&error)),
            }
        }
    }
}

/// Files below `packages`, `package_lists` and `metadata` that no metadata names, sorted. Metadata that
/// was good once is named by its successors.
pub(super) fn orphans(folder: &Utf8Path, trusted: &Trusted) -> Result<BTreeSet<String>, EditError> {
    let named: HashSet<String> = trusted.entries.iter().map(Entry::path).collect();
    let mut orphans = BTreeSet::new();
    for name in names(folder, PACKAGES)? {
        let inner = format!("{PACKAGES}/{name}");
        if is_dir(folder, &inner)? {
            for file in names(folder, &inner)? {
                orphans.insert(format!("{inner}/{file}"));
            }
        } else {
            orphans.insert(inner);
        }
    }
    for name in names(folder, PACKAGE_LISTS)? {
        orphans.insert(format!("{PACKAGE_LISTS}/{name}"));
    }
    orphans.retain(|path| !named.contains(path));
    for name in names(folder, METADATA)? {
        if !is_known(&name, trusted) {
            orphans.insert(format!("{METADATA}/{name}"));
        }
    }
    Ok(orphans)
}

/// Whether a file of metadata is the current one, or was.
fn is_known(name: &str, trusted: &Trusted) -> bool {
    if name == TIMESTAMP {
        return true;
    }
    let newest = |role: &str| match role {
        "root.json" => trusted.root.version(),
        "snapshot.json" => trusted.snapshot.version(),
        "targets.json" => trusted.targets.version(),
        _ => 0,
    };
    name.split_once('.')
        .and_then(|(version, role)| Some((version.parse::<u64>().ok()?, role)))
        .is_some_and(|(version, role)| version > 0 && version <= newest(role))
}

fn is_dir(folder: &Utf8Path, path: &str) -> Result<bool, EditError> {
    Ok(Native.metadata(&below(folder, path))?.kind == Kind::Dir)
}

/// What is in a folder below the repository.
pub(super) fn names(folder: &Utf8Path, path: &str) -> Result<Vec<String>, EditError> {
    match Native.list(&below(folder, path)) {
        Ok(entries) => Ok(entries.into_iter().map(|entry| entry.name).collect()),
        Err(FileError::NotFound { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
