//! The two ways to write: applying, and everything else.
//!
//! After either, every change of a field has an owner, and times move only when something changed.

use serde_json::{Map, Value};

use super::{
    Request,
    compare::{Changes, compare},
    conflict::{self, Conflict},
    entries,
    extract::extract,
    last_applied,
    managed::{Holding, Managed, Owner, time_text},
    merge::merge,
    place::Place,
    prune::prune,
    reconcile::reconcile,
    set_entries, untracked, without_entries,
};
use crate::status::ApiError;

/// Who owns what was there before the first apply to an object without entries.
const BEFORE_APPLY: &str = "before-first-apply";

/// The object to store for a create, an update, a patch or a write to a subresource, with its entries.
///
/// `new` has all else already, defaults included. Entries that come with `new` replace the stored ones, if they
/// are well formed: that is how clients move fields from one owner to another.
pub fn update(request: &Request, live: Option<&Value>, new: Value) -> Value {
    let stored = live.and_then(entries).map_or(&[][..], Vec::as_slice);
    let managed = if request.subresource.is_empty() {
        requested(&new, stored)
    } else {
        Managed::decode(stored).unwrap_or_default()
    };
    let mut new = without_entries(new);
    // An object whose entries were reset is not tracked until somebody applies to it.
    if managed.entries.is_empty() && live.is_some() {
        return new;
    }
    let entries = match updated(request, live, &new, managed) {
        Ok(managed) => managed.encode(),
        // A write must not fail for this: an object that cannot be compared keeps its owners.
        Err(fault) => {
            let kind = request.kind;
            tracing::warn!(kind, fault, "owners of fields are not brought up to date");
            stored.to_vec()
        }
    };
    set_entries(&mut new, entries);
    new
}

/// The entries a write begins with.
fn requested(new: &Value, stored: &[Value]) -> Managed {
    if let Some(requested) = entries(new) {
        let is_empty = |entry: &Value| entry.as_object().is_some_and(Map::is_empty);
        match requested.as_slice() {
            [] => return Managed::default(),
            [only] if is_empty(only) => return Managed::default(),
            _ => {}
        }
        if let Some(managed) = Managed::decode(requested) {
            return managed;
        }
    }
    Managed::decode(stored).unwrap_or_default()
}

fn updated(
    request: &Request,
    live: Option<&Value>,
    new: &Value,
    managed: Managed,
) -> Result<Managed, String> {
    let mut managed = own_changes(request, request.manager, live, new, managed)?;
    managed.limit_updaters();
    Ok(managed)
}

/// Gives what changed to one writer.
fn own_changes(
    request: &Request,
    writer: &str,
    live: Option<&Value>,
    new: &Value,
    mut managed: Managed,
) -> Result<Managed, String> {
    let nothing = Value::Object(Map::new());
    let live = live.unwrap_or(&nothing);
    let place = Place::root(request.schema, request.shape);
    reconcile_all(place, &mut managed);
    let changes = changes(request, place, live, new)?;
    if changes.is_empty() {
        return Ok(managed);
    }
    take_away(&mut managed, &changes, None);
    let own = changes.modified.union(&changes.added);
    let own = request.scope.of(&own).difference(untracked());
    if own.is_empty() {
        return Ok(managed);
    }
    let owner = Owner::new(
        false,
        name_of(writer),
        request.api_version,
        request.subresource,
    );
    let before = managed.entries.remove(&owner);
    let fields = match before {
        Some(before) => before.fields.union(&own),
        None => own,
    };
    let holding = Holding {
        version: request.api_version.to_owned(),
        fields,
        time: Some(time_text(request.now)),
    };
    managed.entries.insert(owner, holding);
    Ok(managed)
}

/// The object to store when `applied` is applied to `live`.
///
/// Where nothing changes, the answer is the live object, entry by entry and time by time.
pub fn apply(
    request: &Request,
    live: Option<&Value>,
    applied: &Value,
    force: bool,
) -> Result<Value, ApiError> {
    check_applied(request, applied)?;
    let without_time = without_empty_time(applied);
    let applied = without_time.as_ref().unwrap_or(applied);
    let place = Place::root(request.schema, request.shape);
    let fields = extract(place, applied).map_err(|faults| not_typed(applied, &faults))?;
    let stored = live.and_then(entries).map_or(&[][..], Vec::as_slice);
    let mut managed = Managed::decode(stored)
        .ok_or_else(|| unexpected("failed to decode managed fields".to_owned()))?;
    let base = match live {
        Some(live) => without_entries(live.clone()),
        None => Value::Object(Map::new()),
    };
    if managed.entries.is_empty() && live.is_some() {
        managed = own_changes(request, BEFORE_APPLY, None, &base, managed).map_err(unexpected)?;
    }
    reconcile_all(place, &mut managed);
    let owner = Owner::new(
        true,
        name_of(request.manager),
        request.api_version,
        request.subresource,
    );
    let before = managed.entries.remove(&owner);
    let holding = Holding {
        version: request.api_version.to_owned(),
        fields: request.scope.of(&fields),
        time: before.as_ref().and_then(|before| before.time.clone()),
    };
    managed.entries.insert(owner.clone(), holding);
    let mut object = merge(place, &base, applied);
    if let Some(before) = before {
        object = prune(place, object, &before.fields, &managed);
    }
    let changes = changes(request, place, &base, &object).map_err(unexpected)?;
    if !force {
        let conflicts = conflicts(&managed, &changes, &owner);
        let left = last_applied::allow(request, &base, conflicts);
        if !left.is_empty() {
            return Err(conflict::error(&left));
        }
    }
    take_away(&mut managed, &changes, Some(&owner));
    if let Some(holding) = managed.entries.get_mut(&owner) {
        holding.fields = holding.fields.difference(untracked());
        if object != base {
            holding.time = Some(time_text(request.now));
        }
    }
    managed.forget_empty();
    last_applied::follow(request, &mut object, applied);
    set_entries(&mut object, managed.encode());
    Ok(object)
}

/// Files that were written by a dry run have `creationTimestamp: null`. It means nothing, and must not take the
/// time from the live object.
fn without_empty_time(applied: &Value) -> Option<Value> {
    applied
        .pointer("/metadata/creationTimestamp")
        .filter(|time| time.is_null())?;
    let mut applied = applied.clone();
    if let Some(Value::Object(metadata)) = applied.get_mut("metadata") {
        metadata.remove("creationTimestamp");
    }
    Some(applied)
}

/// Gives a new object the entries of the live one if only their times differ, so that a write which came to
/// nothing is no write. For the end of a request, when admission has said its word.
pub fn keep_times(live: &Value, new: &mut Value) {
    let (Some(before), Some(after)) = (entries(live), entries(new)) else {
        return;
    };
    let without_time = |entry: &Value| {
        let mut entry = entry.clone();
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("time");
        }
        entry
    };
    let same = before.len() == after.len()
        && before
            .iter()
            .zip(after)
            .all(|(before, after)| without_time(before) == without_time(after));
    if !same {
        return;
    }
    let (before, after) = (before.clone(), after.clone());
    set_entries(new, before);
    if *new != *live {
        set_entries(new, after);
    }
}

fn unexpected(fault: String) -> ApiError {
    ApiError::new(500, "", fault)
}

fn name_of(manager: &str) -> &str {
    if manager.is_empty() {
        "unknown"
    } else {
        manager
    }
}

fn changes(request: &Request, place: Place, old: &Value, new: &Value) -> Result<Changes, String> {
    let changes = compare(place, Some(old), Some(new))?;
    Ok(request.scope.of_changes(&changes))
}

fn reconcile_all(place: Place, managed: &mut Managed) {
    for holding in managed.entries.values_mut() {
        if let Some(fields) = reconcile(place, &holding.fields) {
            holding.fields = fields;
        }
    }
}

/// What others own of what the applier changes.
fn conflicts(managed: &Managed, changes: &Changes, applier: &Owner) -> Vec<Conflict> {
    let wanted = changes.modified.union(&changes.added);
    managed
        .entries
        .iter()
        .filter(|(owner, _)| *owner != applier)
        .map(|(owner, holding)| Conflict {
            owner: owner.clone(),
            fields: holding.fields.intersection(&wanted),
        })
        .filter(|conflict| !conflict.fields.is_empty())
        .collect()
}

/// Nobody owns any more what has changed, but for who changed it.
fn take_away(managed: &mut Managed, changes: &Changes, except: Option<&Owner>) {
    let gone = changes
        .modified
        .union(&changes.added)
        .union(&changes.removed);
    for (owner, holding) in &mut managed.entries {
        if except != Some(owner) && holding.fields.touches(&gone) {
            holding.fields = holding.fields.difference(&gone);
        }
    }
    managed.forget_empty();
}

fn check_applied(request: &Request, applied: &Value) -> Result<(), ApiError> {
    let text = |name: &str| applied.get(name).and_then(Value::as_str);
    if text("apiVersion") != Some(request.api_version) || text("kind") != Some(request.kind) {
        let kind = type_of(applied);
        return Err(ApiError::bad_request(format!(
            "invalid object type: {kind}"
        )));
    }
    match applied.pointer("/metadata/managedFields") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(ApiError::bad_request("metadata.managedFields must be nil")),
    }
}

/// As upstream prints a type: `apps/v1, Kind=Deployment`, and `/v1, Kind=Pod`.
fn type_of(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", text("kind"))
}

fn not_typed(applied: &Value, faults: &[String]) -> ApiError {
    let text = |path: &str| {
        applied
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let faults = match faults {
        [only] => only.clone(),
        several => format!("errors:\n  {}", several.join("\n  ")),
    };
    ApiError::new(
        500,
        "",
        format!(
            "failed to create typed patch object ({}/{}; {}): {faults}",
            text("/metadata/namespace"),
            text("/metadata/name"),
            type_of(applied),
        ),
    )
}
