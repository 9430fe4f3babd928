//! Strategic merge patch: a merge patch with directives, for objects whose lists have keys.
//!
//! The schema says how a list merges; a directive (`$patch`, `$retainKeys`, `$setElementOrder/…`,
//! `$deleteFromPrimitiveList/…`) never survives into the patched object.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{order, words::Words};
use crate::{
    schema::{Merge, Schema, Shape},
    status::ApiError,
};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
pub(super) const SET_ORDER: &str = "$setElementOrder";
const SET_ORDER_OF: &str = "$setElementOrder/";

type Fields = Map<String, Value>;

/// Why a patch could not be applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("map: {map} does not contain declared merge key: {key}")]
    NoMergeKey { map: String, key: String },
    #[error("unknown patch type: {directive} in map: {map}")]
    UnknownDirective { directive: String, map: String },
    #[error("merging lists cannot yet be specified in the patch")]
    MergeInList,
    #[error("cannot merge lists without merge key for type struct")]
    NoKeyDeclared,
    #[error("list element types are not identical: {0}")]
    MixedList(String),
    #[error("expected a []interface {{}}, but received a {0}")]
    NotAList(&'static str),
    #[error("The order in patch list:\n{patch}\n doesn't match {SET_ORDER} list:\n{order}\n")]
    OrderMismatch { patch: String, order: String },
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    #[error("invalid patch format of primitive list")]
    PrimitiveList,
    #[error("lists of lists are not supported")]
    ListOfLists,
}

impl Fault {
    pub(super) fn no_merge_key(item: &Value, key: &str) -> Self {
        Self::NoMergeKey {
            map: Words(item).to_string(),
            key: key.to_owned(),
        }
    }
}

impl From<Fault> for ApiError {
    /// Upstream gives most of these no reason of their own, and so the code of an unexpected fault.
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::RetainKeys | Fault::PrimitiveList => Self::bad_request(fault.to_string()),
            Fault::ListOfLists => super::rejected(),
            other => Self::new(500, "", other.to_string()),
        }
    }
}

/// The object that `current` becomes.
pub(super) fn apply(
    schema: &Schema,
    shape: &Shape,
    current: &Value,
    patch: Fields,
) -> Result<Value, Fault> {
    let mut target = match current {
        Value::Object(fields) => fields.clone(),
        _ => Fields::new(),
    };
    Merger { schema }.merge_fields(&mut target, patch, shape)?;
    Ok(Value::Object(target))
}

/// What the schema knows of one field.
struct Known<'a> {
    shape: &'a Shape,
    merge: Option<&'a Merge>,
}

impl Known<'_> {
    /// Whether the schema says that even an object is replaced.
    fn replaces(&self) -> bool {
        self.merge
            .is_some_and(|merge| !merge.merges && !merge.retain_keys)
    }
}

struct Merger<'a> {
    schema: &'a Schema,
}

impl Merger<'_> {
    fn known<'s>(&'s self, shape: &'s Shape, name: &str) -> Known<'s> {
        let unknown = Known {
            shape: &Shape::Any,
            merge: None,
        };
        match shape {
            Shape::Object(id) => match self.schema.get(*id).field(name) {
                Some(field) => Known {
                    shape: &field.shape,
                    merge: field.merge.as_ref(),
                },
                None => unknown,
            },
            Shape::Map(value) => Known {
                shape: value,
                merge: None,
            },
            _ => unknown,
        }
    }

    fn merge_fields(
        &self,
        target: &mut Fields,
        mut patch: Fields,
        shape: &Shape,
    ) -> Result<(), Fault> {
        if let Some(directive) = patch.remove(PATCH) {
            return replace_or_delete(target, &directive, patch);
        }
        retain_keys(target, &mut patch)?;
        self.merge_ordered(target, &mut patch, shape)?;
        for (name, value) in patch {
            if let Some(list) = name.strip_prefix(DELETE_FROM) {
                delete_from(target, list, &value)?;
                continue;
            }
            if value.is_null() {
                target.remove(&name);
                continue;
            }
            let Some(old) = target.get_mut(&name) else {
                if let Some(value) = without_directives(value) {
                    target.insert(name, value);
                }
                continue;
            };
            self.merge_value(old, value, &self.known(shape, &name))?;
        }
        Ok(())
    }

    fn merge_value(&self, old: &mut Value, new: Value, known: &Known) -> Result<(), Fault> {
        match (&mut *old, new) {
            (Value::Object(old), Value::Object(new)) if !known.replaces() => {
                self.merge_fields(old, new, known.shape)
            }
            (Value::Array(list), Value::Array(new)) => {
                *list = self.merge_list(std::mem::take(list), new, known)?;
                Ok(())
            }
            (old, new) => {
                *old = without_directives(new).unwrap_or_default();
                Ok(())
            }
        }
    }

    /// Lists that come with their order. They are taken out of the patch, since they are done then.
    fn merge_ordered(
        &self,
        target: &mut Fields,
        patch: &mut Fields,
        shape: &Shape,
    ) -> Result<(), Fault> {
        let directives: Vec<String> = patch
            .keys()
            .filter(|name| name.starts_with(SET_ORDER_OF))
            .cloned()
            .collect();
        for directive in directives {
            let order = into_list(patch.remove(&directive).unwrap_or_default())?;
            let name = directive.trim_start_matches(SET_ORDER_OF);
            let known = self.known(shape, name);
            let key = known.merge.and_then(|merge| merge.key.as_deref());
            let old = target.remove(name).map(into_list).transpose()?;
            let new = match patch.remove(name) {
                // The list is to go; its order is of no use.
                Some(Value::Null) => continue,
                new => new.map(into_list).transpose()?,
            };
            if let Some(new) = &new {
                order::check(new, &order, key)?;
            }
            let live = old.clone().unwrap_or_default();
            let merged = match (old, new) {
                (None, None) => continue,
                (Some(old), None) => old,
                (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
                (Some(old), Some(new)) => self.merge_list(old, new, &known)?,
            };
            let ordered = order::arrange(merged, &order, &live, key)?;
            target.insert(name.to_owned(), Value::Array(ordered));
        }
        Ok(())
    }

    fn merge_list(
        &self,
        old: Vec<Value>,
        new: Vec<Value>,
        known: &Known,
    ) -> Result<Vec<Value>, Fault> {
        let Some(merge) = known.merge.filter(|merge| merge.merges) else {
            return Ok(new.into_iter().filter_map(without_directives).collect());
        };
        let Some(first) = old.first().or(new.first()) else {
            return Ok(old);
        };
        if first.is_array() {
            return Err(Fault::ListOfLists);
        }
        let same = |item: &Value| std::mem::discriminant(item) == std::mem::discriminant(first);
        if !old.iter().chain(&new).all(same) {
            let lists = Value::Array(vec![old.into(), new.into()]);
            return Err(Fault::MixedList(Words(&lists).to_string()));
        }
        if !first.is_object() {
            return order::union(&old, &new);
        }
        let key = merge.key.as_deref().ok_or(Fault::NoKeyDeclared)?;
        let item = match known.shape {
            Shape::List(item) => item,
            _ => &Shape::Any,
        };
        self.merge_items(old, new, key, item)
    }

    fn merge_items(
        &self,
        old: Vec<Value>,
        new: Vec<Value>,
        key: &str,
        shape: &Shape,
    ) -> Result<Vec<Value>, Fault> {
        let (mut items, changes) = item_directives(old, new, key)?;
        let live = items.clone();
        let mut places = HashMap::with_capacity(live.len());
        for (place, item) in live.iter().enumerate() {
            if let Some(value) = item.get(key) {
                places.entry(value).or_insert(place);
            }
        }
        for change in &changes {
            let Value::Object(fields) = change else {
                continue;
            };
            let wanted = fields
                .get(key)
                .ok_or_else(|| Fault::no_merge_key(change, key))?;
            match places.get(wanted).and_then(|place| items.get_mut(*place)) {
                Some(Value::Object(item)) => self.merge_fields(item, fields.clone(), shape)?,
                _ => {
                    places.insert(wanted, items.len());
                    items.extend(without_directives(change.clone()));
                }
            }
        }
        order::arrange(items, &changes, &live, Some(key))
    }
}

fn replace_or_delete(target: &mut Fields, directive: &Value, patch: Fields) -> Result<(), Fault> {
    match directive.as_str() {
        Some("replace") => {
            *target = patch;
            Ok(())
        }
        Some("delete") => {
            target.clear();
            Ok(())
        }
        _ => Err(unknown_directive(directive, patch)),
    }
}

fn unknown_directive(directive: &Value, mut map: Fields) -> Fault {
    map.insert(PATCH.to_owned(), directive.clone());
    Fault::UnknownDirective {
        directive: Words(directive).to_string(),
        map: Words(&Value::Object(map)).to_string(),
    }
}

/// Forgets what is not named by `$retainKeys`. Everything the patch sets must be named.
fn retain_keys(target: &mut Fields, patch: &mut Fields) -> Result<(), Fault> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(keys) = keys else {
        return Err(Fault::RetainKeys);
    };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let kept = |name: &str| keys.contains(name);
    let sets = |(name, value): (&String, &Value)| {
        !value.is_null() && !name.starts_with(DELETE_FROM) && !name.starts_with(SET_ORDER_OF)
    };
    if !patch
        .iter()
        .filter(|field| sets(*field))
        .all(|(name, _)| kept(name))
    {
        return Err(Fault::RetainKeys);
    }
    target.retain(|name, _| kept(name));
    Ok(())
}

fn delete_from(target: &mut Fields, list: &str, gone: &Value) -> Result<(), Fault> {
    let Value::Array(gone) = gone else {
        return Err(Fault::PrimitiveList);
    };
    let gone: HashSet<&Value> = gone.iter().collect();
    if let Some(Value::Array(items)) = target.get_mut(list) {
        items.retain(|item| !gone.contains(item));
    }
    Ok(())
}

fn into_list(value: Value) -> Result<Vec<Value>, Fault> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Object(_) => Err(Fault::NotAList("map[string]interface {}")),
        Value::String(_) => Err(Fault::NotAList("string")),
        Value::Bool(_) => Err(Fault::NotAList("bool")),
        Value::Number(_) => Err(Fault::NotAList("int64")),
        Value::Null => Err(Fault::NotAList("%!s(<nil>)")),
    }
}

/// Does what the items with `$patch` say, and gives what is left of both lists.
fn item_directives(
    mut old: Vec<Value>,
    new: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Fault> {
    let mut changes = Vec::with_capacity(new.len());
    let mut gone = HashSet::new();
    let mut replace = false;
    for item in new {
        let Some(directive) = item.get(PATCH) else {
            changes.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let value = item
                    .get(key)
                    .ok_or_else(|| Fault::no_merge_key(&item, key))?;
                gone.insert(value.clone());
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(Fault::MergeInList),
            _ => {
                let map = item.as_object().cloned().unwrap_or_default();
                return Err(unknown_directive(directive, map));
            }
        }
    }
    if replace {
        let items = changes.into_iter().filter_map(without_directives).collect();
        return Ok((items, Vec::new()));
    }
    old.retain(|item| !item.get(key).is_some_and(|value| gone.contains(value)));
    Ok((old, changes))
}

/// A value of the patch that meets nothing: what it sets, without what it says about merging.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            if fields.get(PATCH).and_then(Value::as_str) == Some("delete") {
                return None;
            }
            let plain = fields
                .into_iter()
                .filter(|(name, value)| !is_directive(name) && !value.is_null())
                .filter_map(|(name, value)| Some((name, without_directives(value)?)))
                .collect();
            Some(Value::Object(plain))
        }
        Value::Array(items) => {
            // An item that says no more than `$patch: replace` is about the list.
            let about_list = |item: &Value| item.get(PATCH).is_some_and(|_| lone_directive(item));
            let plain = items
                .into_iter()
                .filter(|item| !about_list(item))
                .filter_map(without_directives)
                .collect();
            Some(Value::Array(plain))
        }
        plain => Some(plain),
    }
}

fn lone_directive(item: &Value) -> bool {
    item.as_object().is_some_and(|fields| fields.len() == 1)
}

fn is_directive(name: &str) -> bool {
    name == PATCH
        || name == RETAIN_KEYS
        || name.starts_with(DELETE_FROM)
        || name.starts_with(SET_ORDER_OF)
}
