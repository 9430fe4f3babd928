//! `metadata.managedFields`: who owns which fields, read and written.
//!
//! No two entries have the same owner.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::set::FieldSet;

/// How many entries of writers that do not apply are kept apart.
const MAX_UPDATERS: usize = 10;
/// Who owns what the oldest of them wrote.
const ANCIENT: &str = "ancient-changes";

/// Who wrote: one entry each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) applies: bool,
    pub(super) manager: String,
    pub(super) subresource: String,
    /// The version of a writer that does not apply. An applier is the same in every version.
    pub(super) version: String,
}

/// What an owner owns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Holding {
    pub(super) version: String,
    pub(super) fields: FieldSet,
    pub(super) time: Option<String>,
}

/// All entries of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Managed {
    pub(super) entries: BTreeMap<Owner, Holding>,
}

impl Owner {
    pub(super) fn new(applies: bool, manager: &str, version: &str, subresource: &str) -> Self {
        Self {
            applies,
            manager: manager.to_owned(),
            subresource: subresource.to_owned(),
            version: if applies { "" } else { version }.to_owned(),
        }
    }

    /// As a message names it.
    pub(super) fn describe(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if !self.applies {
            text = format!("{text} using {}", self.version);
        }
        text
    }
}

impl Managed {
    /// Reads the entries, or `None` if they are not well formed.
    pub(super) fn decode(entries: &[Value]) -> Option<Self> {
        let mut managed = Self::default();
        for entry in entries {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let applies = match text("operation") {
                "Apply" => true,
                "Update" => false,
                _ => return None,
            };
            let version = text("apiVersion");
            if version.is_empty() || text("fieldsType") != "FieldsV1" {
                return None;
            }
            let fields = match entry.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::default(),
                Some(fields) => FieldSet::decode(fields)?,
            };
            let owner = Owner::new(applies, text("manager"), version, text("subresource"));
            let holding = Holding {
                version: version.to_owned(),
                fields,
                time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
            };
            managed.entries.insert(owner, holding);
        }
        Some(managed)
    }

    /// The entries as they are stored: appliers first, then by age.
    pub(super) fn encode(&self) -> Vec<Value> {
        let mut entries: Vec<(&Owner, &Holding, i64)> = self
            .entries
            .iter()
            .map(|(owner, holding)| (owner, holding, seconds(holding.time.as_deref())))
            .collect();
        entries.sort_by(|(a, x, a_time), (b, y, b_time)| {
            b.applies
                .cmp(&a.applies)
                .then_with(|| a_time.cmp(b_time))
                .then_with(|| a.manager.cmp(&b.manager))
                .then_with(|| x.version.cmp(&y.version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        entries
            .into_iter()
            .map(|(owner, holding, _)| encode_entry(owner, holding))
            .collect()
    }

    pub(super) fn forget_empty(&mut self) {
        self.entries.retain(|_, holding| !holding.fields.is_empty());
    }

    /// Unites the oldest entries of updaters while there are too many. They are united per version, since
    /// fields of different versions cannot be.
    pub(super) fn limit_updaters(&mut self) {
        let mut updaters: Vec<(i64, Owner)> = self
            .entries
            .iter()
            .filter(|(owner, _)| !owner.applies)
            .map(|(owner, holding)| (seconds(holding.time.as_deref()), owner.clone()))
            .collect();
        let mut left = updaters.len();
        if left <= MAX_UPDATERS {
            return;
        }
        updaters.sort();
        let mut first_of_version: BTreeMap<String, Owner> = BTreeMap::new();
        for (_, owner) in updaters {
            if left <= MAX_UPDATERS {
                break;
            }
            let Some(first) = first_of_version.get(&owner.version) else {
                first_of_version.insert(owner.version.clone(), owner);
                continue;
            };
            let bucket = Owner::new(false, ANCIENT, &owner.version, "");
            if !self.entries.contains_key(&bucket)
                && let Some(holding) = self.entries.remove(first)
            {
                self.entries.insert(bucket.clone(), holding);
            }
            if owner == bucket {
                continue;
            }
            if let Some(holding) = self.entries.remove(&owner)
                && let Some(ancient) = self.entries.get_mut(&bucket)
            {
                ancient.fields = ancient.fields.union(&holding.fields);
                ancient.time = holding.time;
                left -= 1;
            }
        }
    }
}

fn encode_entry(owner: &Owner, holding: &Holding) -> Value {
    let mut entry = Map::new();
    let operation = if owner.applies { "Apply" } else { "Update" };
    entry.insert("apiVersion".to_owned(), holding.version.clone().into());
    entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
    entry.insert("fieldsV1".to_owned(), holding.fields.encode());
    entry.insert("manager".to_owned(), owner.manager.clone().into());
    entry.insert("operation".to_owned(), operation.into());
    if !owner.subresource.is_empty() {
        entry.insert("subresource".to_owned(), owner.subresource.clone().into());
    }
    if let Some(time) = &holding.time {
        entry.insert("time".to_owned(), time.clone().into());
    }
    Value::Object(entry)
}

/// A time as managed fields have it, whole seconds.
pub(super) fn time_text(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn seconds(time: Option<&str>) -> i64 {
    time.and_then(|time| time.parse::<Timestamp>().ok())
        .map_or(0, Timestamp::as_second)
}
