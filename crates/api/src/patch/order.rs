//! In which order the items of a merged list stand.
//!
//! The items the patch speaks of keep the patch's order, the others keep the live list's, and each of the others
//! stays before the first patched item that it was before.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{strategic::Fault, words::Words};

/// What tells an item apart: the value of its merge key, or the item itself.
fn identity<'a>(item: &'a Value, key: Option<&str>) -> Result<&'a Value, Fault> {
    match key {
        None => Ok(item),
        Some(key) => item.get(key).ok_or_else(|| Fault::no_merge_key(item, key)),
    }
}

fn positions<'a>(list: &'a [Value], key: Option<&str>) -> Result<HashMap<&'a Value, usize>, Fault> {
    let mut positions = HashMap::with_capacity(list.len());
    for (position, item) in list.iter().enumerate() {
        positions.entry(identity(item, key)?).or_insert(position);
    }
    Ok(positions)
}

/// Puts merged items into order: `wanted` is the order of the patch, `live` the list before it.
pub(super) fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    live: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, Fault> {
    let wanted = positions(wanted, key)?;
    let live = positions(live, key)?;
    let mut patched = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let identity = identity(&item, key)?;
        let place = live.get(identity).copied();
        match wanted.get(identity).copied() {
            Some(position) => patched.push((position, place, item)),
            None => others.push((place, item)),
        }
    }
    patched.sort_by_key(|(position, _, _)| *position);
    others.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));

    let mut ordered = Vec::with_capacity(patched.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, place, item) in patched {
        while let Some((_, other)) =
            others.next_if(|(other, _)| matches!((other, place), (Some(o), Some(p)) if *o < p))
        {
            ordered.push(other);
        }
        ordered.push(item);
    }
    ordered.extend(others.map(|(_, other)| other));
    Ok(ordered)
}

/// Two lists of plain values as one without repetitions.
pub(super) fn union(old: &[Value], new: &[Value]) -> Result<Vec<Value>, Fault> {
    let mut seen = HashSet::new();
    let merged: Vec<Value> = old
        .iter()
        .chain(new)
        .filter(|item| seen.insert(*item))
        .cloned()
        .collect();
    arrange(merged, new, old, None)
}

/// Whether every item of a patched list is in the order that comes with it, and at its place.
pub(super) fn check(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Fault> {
    let mut rest = order.iter();
    for item in patch {
        if item.get("$patch").is_some() {
            continue;
        }
        let wanted = identity(item, key)?;
        loop {
            let Some(next) = rest.next() else {
                return Err(Fault::OrderMismatch {
                    patch: Words(&patch.to_vec().into()).to_string(),
                    order: Words(&order.to_vec().into()).to_string(),
                });
            };
            if identity(next, key)? == wanted {
                break;
            }
        }
    }
    Ok(())
}
