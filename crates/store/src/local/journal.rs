//! The end of a database's journal after a power loss. Of the group that was being synced some pages may be
//! on the disk and others not; nobody was told that it happened. The database tells such a group from
//! damage as little as from anything else, and refuses to open; here it is taken away, if it is the last.
//!
//! The layout is that of fjall 3: a batch is a start (tag, count, number), items (tag, kind, compression,
//! keyspace, lengths, key, value), and an end (tag, checksum of the items, mark).

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use transom_host::files::{Files, Native};
use xxhash_rust::xxh3::xxh3_64;

use super::folder::files;
use crate::StoreError;

const LONGEST_JOURNAL: u64 = 1 << 30;
const MARK: &[u8] = b"FJL\x03";
const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;

/// Removes a torn group from the end of the newest journal; whether there was one.
pub(super) fn remove_torn_end(database: &Utf8Path) -> Result<bool, StoreError> {
    let Some(journal) = newest(database)? else {
        return Ok(false);
    };
    let content = Native
        .read(&journal, LONGEST_JOURNAL)
        .map_err(|error| files("read", &journal, io::Error::other(error)))?;
    let Some(torn) = torn_end(&content) else {
        return Ok(false);
    };
    tracing::warn!(%journal, offset = torn, "removed an unfinished group from the end of the journal");
    fs::OpenOptions::new()
        .write(true)
        .open(&journal)
        .and_then(|file| {
            file.set_len(torn as u64)?;
            file.sync_all()
        })
        .map_err(|error| files("shorten", &journal, error))?;
    Ok(true)
}

fn newest(database: &Utf8Path) -> Result<Option<Utf8PathBuf>, StoreError> {
    let names = Native
        .names(database)
        .map_err(|error| files("list", database, io::Error::other(error)))?;
    let numbers = names.iter().filter_map(|entry| {
        let number = entry.name.strip_suffix(".jnl")?;
        number.parse::<u64>().ok()
    });
    let newest = numbers.max();
    Ok(newest.map(|number| database.join(format!("{number}.jnl"))))
}

/// Where the first batch begins that is not whole, if no other one follows it.
fn torn_end(content: &[u8]) -> Option<usize> {
    let mut rest = content;
    while let Some(after) = batch(rest) {
        rest = after;
    }
    let is_padding = rest.iter().all(|byte| *byte == 0);
    let ends = rest.windows(MARK.len()).filter(|bytes| *bytes == MARK);
    (!is_padding && ends.count() <= 1).then(|| content.len() - rest.len())
}

/// What follows the batch at the beginning, if that is whole.
fn batch(content: &[u8]) -> Option<&[u8]> {
    let (start, items) = content.split_at_checked(13)?;
    if start[0] != START {
        return None;
    }
    let count = u32::from_le_bytes(start[1..5].try_into().ok()?);
    let mut rest = items;
    for _ in 0..count {
        rest = item(rest)?;
    }
    let items = &items[..items.len() - rest.len()];
    let (end, rest) = rest.split_at_checked(9 + MARK.len())?;
    let checksum = u64::from_le_bytes(end[1..9].try_into().ok()?);
    let whole = end[0] == END && end[9..] == *MARK && checksum == xxh3_64(items);
    whole.then_some(rest)
}

fn item(content: &[u8]) -> Option<&[u8]> {
    match *content.first()? {
        CLEAR => content.get(9..),
        ITEM => {
            let key = u16::from_le_bytes(content.get(11..13)?.try_into().ok()?);
            let value = u32::from_le_bytes(content.get(17..21)?.try_into().ok()?);
            let length = usize::from(key) + usize::try_from(value).ok()?;
            content.get(21_usize.checked_add(length)?..)
        }
        _ => None,
    }
}
