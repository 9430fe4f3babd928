//! An applied object laid over the live one.
//!
//! What is applied wins, what is not spoken of stays; nothing is removed here. Both sides were checked before.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    element::Element,
    place::{Parts, Place, item_step},
};
use crate::schema::Shape;

/// The object both make together.
pub(super) fn merge(place: Place, live: &Value, applied: &Value) -> Value {
    merged(place, Some(live), Some(applied)).unwrap_or_else(|| Value::Object(Map::new()))
}

fn merged(place: Place, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let Some(applied) = applied else {
        return live.cloned();
    };
    let parts = place.parts();
    match (&parts, applied) {
        (Parts::Fields(_) | Parts::Values | Parts::Free, Value::Object(applied)) => {
            let live = live.and_then(Value::as_object);
            Some(Value::Object(fields(place, live, applied)))
        }
        (Parts::Fields(_) | Parts::Values, Value::Null) => live.cloned(),
        (Parts::Set | Parts::Items(..), Value::Array(applied)) => {
            let live = live.and_then(Value::as_array);
            Some(Value::Array(items(
                place,
                &parts,
                live.map_or(&[], Vec::as_slice),
                applied,
            )))
        }
        (Parts::Set | Parts::Items(..), Value::Null) => live.cloned(),
        // An owner of nothing: the field goes, unless the place may hold anything.
        (_, Value::Null) if !matches!(place.shape(), Shape::Any) => None,
        _ => Some(applied.clone()),
    }
}

fn fields(
    place: Place,
    live: Option<&Map<String, Value>>,
    applied: &Map<String, Value>,
) -> Map<String, Value> {
    let mut result = live.cloned().unwrap_or_default();
    for (name, value) in applied {
        let (inner, _) = place.field(name);
        match merged(inner, live.and_then(|live| live.get(name)), Some(value)) {
            Some(value) => {
                result.insert(name.clone(), value);
            }
            None => {
                result.remove(name);
            }
        }
    }
    result
}

/// Items in the order of the applied list, with those that only the live list has kept before the item they
/// were before.
fn items<'a>(place: Place<'a>, parts: &Parts<'a>, live: &[Value], applied: &[Value]) -> Vec<Value> {
    let step = |item: &Value| item_step(parts, place, item).ok();
    let live: Vec<_> = live
        .iter()
        .filter_map(|item| Some((step(item)?, item)))
        .collect();
    let applied: Vec<_> = applied
        .iter()
        .filter_map(|item| Some((step(item)?, item)))
        .collect();
    let mut by_step: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for ((element, _), item) in &live {
        // An item that is there twice is not merged with: nobody knows with which.
        let twice = by_step.contains_key(element);
        by_step.insert(element, (!twice).then_some(*item));
    }
    let wanted: BTreeSet<&Element> = applied.iter().map(|((element, _), _)| element).collect();
    let mut shared = applied
        .iter()
        .map(|((element, _), _)| element)
        .filter(|element| by_step.contains_key(*element))
        .peekable();

    let mut result = Vec::with_capacity(live.len() + applied.len());
    let mut done = BTreeSet::new();
    let mut rest = live.iter().peekable();
    for ((element, inner), item) in &applied {
        // Take what is only live, up to the next item that both have. An item of the applied list that stands
        // at its live place, or is new, comes after them.
        while let Some(((other, _), kept)) = rest.peek() {
            if wanted.contains(other) {
                if done.contains(other) || shared.peek().is_some_and(|next| *next != other) {
                    rest.next();
                    continue;
                }
                break;
            }
            result.push((*kept).clone());
            rest.next();
        }
        shared.next_if_eq(&element);
        done.insert(element);
        if rest.peek().is_some_and(|((other, _), _)| other == element) {
            rest.next();
        }
        let old = by_step.get(element).copied().flatten();
        result.extend(merged(*inner, old, Some(item)));
    }
    result.extend(
        rest.filter(|((element, _), _)| !wanted.contains(element))
            .map(|(_, item)| (*item).clone()),
    );
    result
}
