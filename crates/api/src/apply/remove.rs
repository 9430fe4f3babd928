//! Taking fields out of an object.
//!
//! A list or map that gets empty by it goes too; one that was empty before stays.

use serde_json::{Map, Value};

use super::{
    element::Element,
    place::{Parts, Place, item_step},
    set::FieldSet,
};

/// The object without the members of a set.
pub(super) fn remove(place: Place, value: &Value, gone: &FieldSet) -> Value {
    removed(place, value, gone).unwrap_or_else(|| Value::Object(Map::new()))
}

fn removed(place: Place, value: &Value, gone: &FieldSet) -> Option<Value> {
    let parts = place.parts();
    match (&parts, value) {
        // Removal below one value removes it all.
        (Parts::Whole, Value::Array(_) | Value::Object(_)) => None,
        (Parts::Fields(_) | Parts::Values | Parts::Free, Value::Object(fields)) => {
            let left = without_fields(place, fields, gone);
            (!left.is_empty()).then_some(Value::Object(left))
        }
        (Parts::Set | Parts::Items(..), Value::Array(items)) => {
            let left = without_items(place, &parts, items, gone);
            (!left.is_empty()).then_some(Value::Array(left))
        }
        _ => Some(value.clone()),
    }
}

fn without_fields(
    place: Place,
    fields: &Map<String, Value>,
    gone: &FieldSet,
) -> Map<String, Value> {
    let mut left = Map::new();
    for (name, value) in fields {
        let kept = match gone.field(name) {
            None => Some(value.clone()),
            Some(node) if node.member => None,
            Some(node) => removed(place.field(name).0, value, &node.below),
        };
        if let Some(value) = kept {
            left.insert(name.clone(), value);
        }
    }
    left
}

fn without_items<'a>(
    place: Place<'a>,
    parts: &Parts<'a>,
    items: &[Value],
    gone: &FieldSet,
) -> Vec<Value> {
    let keep = |item: &Value| {
        let Ok((element, inner)) = item_step(parts, place, item) else {
            return Some(item.clone());
        };
        match gone.get(&element) {
            None => Some(item.clone()),
            Some(node) if node.member => None,
            Some(node) => removed(inner, item, &node.below),
        }
    };
    items.iter().filter_map(keep).collect()
}

/// The set with the named fields on the way to its members, which are not recorded but go when all goes that
/// is in them.
pub(super) fn with_named_fields(place: Place, set: &FieldSet) -> FieldSet {
    let steps = set.iter().map(|(element, node)| {
        let (inner, named) = place.step(element);
        let mut node = node.clone();
        node.member |= named && matches!(element, Element::Field(_)) && !node.below.is_empty();
        node.below = with_named_fields(inner, &node.below);
        (element.clone(), node)
    });
    FieldSet::of_steps(steps.collect())
}
