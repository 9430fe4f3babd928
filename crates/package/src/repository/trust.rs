//! From a trusted root to trusted targets, in the order that TUF prescribes: newer roots, each signed by
//! the one before; then timestamp, snapshot, targets, each signed, not older than what was seen, not
//! expired, and named by the one before with its version and digest.

use jiff::Timestamp as Time;
use sha2::{Digest as _, Sha256};
use tough::schema::{Metafile, Role, RoleType, Root, Snapshot, Targets, Timestamp};

use super::RepositoryError;
use super::entry::{self, Entry};
use super::metadata::{Held, limit, verify};
use super::names::TIMESTAMP;
use super::source::Source;
use crate::hash::hex;

/// No repository changes its root more often.
pub(super) const MOST_ROOTS: u64 = 1024;

pub(super) const SNAPSHOT_META: &str = "snapshot.json";
pub(super) const TARGETS_META: &str = "targets.json";

/// Metadata that was checked from the first signature to the last.
#[derive(Debug, Clone)]
pub(super) struct Trusted {
    pub(super) root: Held<Root>,
    pub(super) timestamp: Held<Timestamp>,
    pub(super) snapshot: Held<Snapshot>,
    pub(super) targets: Held<Targets>,
    /// What the targets are.
    pub(super) entries: Vec<Entry>,
}

/// What an earlier reading found.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) timestamp: Option<Held<Timestamp>>,
    pub(super) snapshot: Option<Held<Snapshot>>,
}

/// Is told of each file as soon as it can be trusted.
pub(super) trait Keeper: Send {
    fn keep(&mut self, role: RoleType, bytes: &[u8]) -> Result<(), RepositoryError>;
}

/// Keeps nothing.
#[derive(Debug)]
pub(super) struct Forget;

impl Keeper for Forget {
    fn keep(&mut self, _role: RoleType, _bytes: &[u8]) -> Result<(), RepositoryError> {
        Ok(())
    }
}

/// When expiry counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Clock {
    At(Time),
    /// For those who are about to renew what expired.
    Ignored,
}

/// Checks everything, beginning with a root that is trusted already.
pub(super) async fn load(
    source: &impl Source,
    start: Held<Root>,
    seen: &Seen,
    clock: Clock,
    keeper: &mut impl Keeper,
) -> Result<Trusted, RepositoryError> {
    verify(&start.signed.signed, &start.signed)?;
    keeper.keep(RoleType::Root, &start.bytes)?;
    let root = newest_root(source, start, keeper).await?;
    check_root(&root, clock)?;

    let timestamp = load_timestamp(source, &root, seen, clock).await?;
    keeper.keep(RoleType::Timestamp, &timestamp.bytes)?;
    let snapshot = load_snapshot(source, &root, &timestamp, seen, clock).await?;
    keeper.keep(RoleType::Snapshot, &snapshot.bytes)?;
    let targets = load_targets(source, &root, &snapshot, clock).await?;
    let entries = entry::read_all(&targets.signed.signed)?;
    keeper.keep(RoleType::Targets, &targets.bytes)?;
    Ok(Trusted {
        root,
        timestamp,
        snapshot,
        targets,
        entries,
    })
}

pub(super) fn root_name(version: u64) -> String {
    format!("{version}.root.json")
}

/// Follows the roots upwards, one version at a time.
async fn newest_root(
    source: &impl Source,
    mut root: Held<Root>,
    keeper: &mut impl Keeper,
) -> Result<Held<Root>, RepositoryError> {
    for _ in 0..MOST_ROOTS {
        let version = root.version().saturating_add(1);
        let name = root_name(version);
        let Some(bytes) = source.read(&name, limit(RoleType::Root)).await? else {
            return Ok(root);
        };
        let next = Held::<Root>::parse(&name, bytes)?;
        succeed(&root, &next)?;
        keeper.keep(RoleType::Root, &next.bytes)?;
        root = next;
    }
    Err(RepositoryError::invalid(
        "root.json",
        format!("there are more than {MOST_ROOTS} versions of it"),
    ))
}

/// Whether `next` may take the place of `root`.
pub(super) fn succeed(root: &Held<Root>, next: &Held<Root>) -> Result<(), RepositoryError> {
    verify(&root.signed.signed, &next.signed)?;
    verify(&next.signed.signed, &next.signed)?;
    let expected = root.version().saturating_add(1);
    if next.version() != expected {
        return Err(RepositoryError::Rollback {
            role: RoleType::Root,
            seen: root.version(),
            offered: next.version(),
        });
    }
    Ok(())
}

fn check_root(root: &Held<Root>, clock: Clock) -> Result<(), RepositoryError> {
    if !root.signed.signed.consistent_snapshot {
        return Err(RepositoryError::invalid(
            "root.json",
            "only repositories with consistent snapshots are supported",
        ));
    }
    check_expiry(root, clock)
}

fn check_expiry<T: Role>(held: &Held<T>, clock: Clock) -> Result<(), RepositoryError> {
    match clock {
        Clock::At(now) => held.check_not_expired(now),
        Clock::Ignored => Ok(()),
    }
}

async fn load_timestamp(
    source: &impl Source,
    root: &Held<Root>,
    seen: &Seen,
    clock: Clock,
) -> Result<Held<Timestamp>, RepositoryError> {
    let bytes = source
        .read(TIMESTAMP, limit(RoleType::Timestamp))
        .await?
        .ok_or_else(|| missing(source, TIMESTAMP))?;
    let timestamp = Held::<Timestamp>::parse(TIMESTAMP, bytes)?;
    verify(&root.signed.signed, &timestamp.signed)?;
    let trusted_before = seen
        .timestamp
        .as_ref()
        // Keys that were taken back since then vouch for nothing, not even for a version.
        .filter(|before| verify(&root.signed.signed, &before.signed).is_ok());
    if let Some(before) = trusted_before {
        not_older(RoleType::Timestamp, before.version(), timestamp.version())?;
        if let (Ok(before), Ok(now)) = (snapshot_meta(before), snapshot_meta(&timestamp)) {
            let (before, now) = (before.version.get(), now.version.get());
            not_older(RoleType::Snapshot, before, now)?;
        }
    }
    check_expiry(&timestamp, clock)?;
    Ok(timestamp)
}

fn snapshot_meta(timestamp: &Held<Timestamp>) -> Result<&Metafile, RepositoryError> {
    timestamp
        .signed
        .signed
        .meta
        .get(SNAPSHOT_META)
        .ok_or_else(|| RepositoryError::invalid(TIMESTAMP, "it names no snapshot"))
}

fn targets_meta(snapshot: &Held<Snapshot>) -> Result<&Metafile, RepositoryError> {
    snapshot
        .signed
        .signed
        .meta
        .get(TARGETS_META)
        .ok_or_else(|| RepositoryError::invalid(SNAPSHOT_META, "it names no targets"))
}

async fn load_snapshot(
    source: &impl Source,
    root: &Held<Root>,
    timestamp: &Held<Timestamp>,
    seen: &Seen,
    clock: Clock,
) -> Result<Held<Snapshot>, RepositoryError> {
    let snapshot = named::<Snapshot>(source, snapshot_meta(timestamp)?).await?;
    verify(&root.signed.signed, &snapshot.signed)?;
    let offered = targets_meta(&snapshot)?.version.get();
    let trusted_before = seen
        .snapshot
        .as_ref()
        .filter(|before| verify(&root.signed.signed, &before.signed).is_ok());
    if let Some(before) = trusted_before {
        let seen = targets_meta(before)?.version.get();
        not_older(RoleType::Targets, seen, offered)?;
    }
    check_expiry(&snapshot, clock)?;
    Ok(snapshot)
}

async fn load_targets(
    source: &impl Source,
    root: &Held<Root>,
    snapshot: &Held<Snapshot>,
    clock: Clock,
) -> Result<Held<Targets>, RepositoryError> {
    let targets = named::<Targets>(source, targets_meta(snapshot)?).await?;
    verify(&root.signed.signed, &targets.signed)?;
    check_expiry(&targets, clock)?;
    Ok(targets)
}

/// Reads the file that another file names by version, length and digest.
async fn named<T: Role + serde::de::DeserializeOwned>(
    source: &impl Source,
    meta: &Metafile,
) -> Result<Held<T>, RepositoryError> {
    let name = format!("{}.{}.json", meta.version, T::TYPE);
    let most = limit(T::TYPE).min(meta.length.unwrap_or(u64::MAX));
    let bytes = source
        .read(&name, most)
        .await?
        .ok_or_else(|| missing(source, &name))?;
    if let Some(hashes) = &meta.hashes {
        let (expected, found) = (hex(&hashes.sha256), hex(&Sha256::digest(&bytes)));
        if expected != found {
            return Err(RepositoryError::WrongHash {
                file: name,
                expected,
                found,
            });
        }
    }
    let held = Held::<T>::parse(&name, bytes)?;
    if held.version() != meta.version.get() {
        return Err(RepositoryError::invalid(
            &name,
            format!("it says that it is version {}", held.version()),
        ));
    }
    Ok(held)
}

fn not_older(role: RoleType, seen: u64, offered: u64) -> Result<(), RepositoryError> {
    if offered < seen {
        return Err(RepositoryError::Rollback {
            role,
            seen,
            offered,
        });
    }
    Ok(())
}

fn missing(source: &impl Source, name: &str) -> RepositoryError {
    RepositoryError::NoRepository {
        url: source.shown(),
        missing: name.to_owned(),
    }
}
