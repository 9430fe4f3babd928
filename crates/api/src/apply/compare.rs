//! What differs between two objects, as sets of fields.
//!
//! No field is in more than one of the three sets, and equal objects give empty ones.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    element::Element,
    place::{Absent, Parts, Place, absent, always_there, item_step},
    set::{FieldSet, Node},
};

/// The fields that went, that changed and that came.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) added: FieldSet,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }
}

/// Compares two objects; either may be absent.
pub(super) fn compare(
    place: Place,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Changes, String> {
    let difference = difference(place, old, new)?;
    Ok(Changes {
        removed: difference.removed.below,
        modified: difference.modified.below,
        added: difference.added.below,
    })
}

#[derive(Default)]
struct Difference {
    removed: Node,
    modified: Node,
    added: Node,
}

impl Difference {
    /// For a place that is one value.
    fn whole(old: Option<&Value>, new: Option<&Value>) -> Self {
        let mut difference = Self::default();
        match (old, new) {
            (None, Some(_)) => difference.added = Node::member(),
            (Some(_), None) => difference.removed = Node::member(),
            (old, new) if old != new => difference.modified = Node::member(),
            _ => {}
        }
        difference
    }
}

/// The differences of the parts of one place.
#[derive(Default)]
struct Steps {
    removed: Vec<(Element, Node)>,
    modified: Vec<(Element, Node)>,
    added: Vec<(Element, Node)>,
}

impl Steps {
    fn push(&mut self, element: impl Fn() -> Element, difference: Difference) {
        for (steps, node) in [
            (&mut self.removed, difference.removed),
            (&mut self.modified, difference.modified),
            (&mut self.added, difference.added),
        ] {
            // Nearly everything is equal nearly always: a step is made only when it is needed.
            if !node.is_empty() {
                steps.push((element(), node));
            }
        }
    }

    fn into_difference(self, came: bool, went: bool) -> Difference {
        let node = |member, steps| Node {
            member,
            below: FieldSet::of_steps(steps),
        };
        Difference {
            removed: node(went, self.removed),
            modified: node(false, self.modified),
            added: node(came, self.added),
        }
    }
}

fn difference(
    place: Place,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Difference, String> {
    let parts = place.parts();
    match parts {
        Parts::Whole => Ok(Difference::whole(old, new)),
        Parts::Fields(_) | Parts::Values => {
            fields(place, &parts, old, new, as_fields(old), as_fields(new))
        }
        Parts::Free => match (old, new) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                fields(place, &parts, old, new, Some(a), Some(b))
            }
            (Some(Value::Object(a)), None) => fields(place, &parts, old, new, Some(a), None),
            (None, Some(Value::Object(b))) => fields(place, &parts, old, new, None, Some(b)),
            _ => Ok(Difference::whole(old, new)),
        },
        Parts::Set | Parts::Items(..) => items(place, &parts, old, new),
    }
}

fn as_fields(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn fields(
    place: Place,
    parts: &Parts,
    old: Option<&Value>,
    new: Option<&Value>,
    a: Option<&Map<String, Value>>,
    b: Option<&Map<String, Value>>,
) -> Result<Difference, String> {
    if a.is_none_or(Map::is_empty) && b.is_none_or(Map::is_empty) && !has_inner(parts, a, b) {
        return Ok(Difference::whole(old, new));
    }
    let mut steps = Steps::default();
    let mut visit = |name: &str, old: Option<&Value>, new: Option<&Value>| {
        let (inner, _) = place.field(name);
        let difference = difference(inner, old, new)?;
        steps.push(|| Element::Field(name.to_owned()), difference);
        Ok::<(), String>(())
    };
    let empty = Value::Object(Map::new());
    let implied = |name: &str, value: &Value| match (parts, value) {
        (Parts::Fields(kind), Value::Object(_) | Value::Array(_)) => {
            match kind.field(name).map_or(Absent::Nothing, absent) {
                Absent::Empty => Some(&empty),
                Absent::Null => Some(&Value::Null),
                Absent::Nothing => None,
            }
        }
        _ => None,
    };
    for (name, value) in a.into_iter().flatten() {
        let other = b.and_then(|b| b.get(name).or_else(|| implied(name, value)));
        visit(name, Some(value), other)?;
    }
    for (name, value) in b.into_iter().flatten() {
        if a.is_some_and(|a| a.contains_key(name)) {
            continue;
        }
        let other = a.and_then(|_| implied(name, value));
        visit(name, other, Some(value))?;
    }
    // Of an object that came or went, the fields that are always there came or went with it.
    if let Parts::Fields(kind) = parts
        && (a.is_none() || b.is_none())
    {
        for name in always_there(kind) {
            if a.or(b).is_some_and(|fields| !fields.contains_key(name)) {
                visit(name, a.map(|_| &empty), b.map(|_| &empty))?;
            }
        }
    }
    Ok(steps.into_difference(old.is_none(), new.is_none()))
}

/// Whether an empty object that came or went has fields all the same.
fn has_inner(
    parts: &Parts,
    a: Option<&Map<String, Value>>,
    b: Option<&Map<String, Value>>,
) -> bool {
    match parts {
        Parts::Fields(kind) => a.is_some() != b.is_some() && always_there(kind).next().is_some(),
        _ => false,
    }
}

fn items<'a>(
    place: Place<'a>,
    parts: &Parts<'a>,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Difference, String> {
    let list =
        |value: Option<&'_ Value>| -> usize { value.and_then(Value::as_array).map_or(0, Vec::len) };
    if list(old) == 0 && list(new) == 0 {
        return Ok(Difference::whole(old, new));
    }
    let mut pairs: BTreeMap<Element, Pair> = BTreeMap::new();
    for (value, side) in [(old, 0), (new, 1)] {
        for item in value.and_then(Value::as_array).into_iter().flatten() {
            let (element, inner) = item_step(parts, place, item)?;
            let pair = pairs.entry(element).or_insert_with(|| Pair {
                place: inner,
                sides: [Vec::new(), Vec::new()],
            });
            pair.sides[side].push(item);
        }
    }
    let mut steps = Steps::default();
    for (element, pair) in pairs {
        let difference = pair.difference()?;
        steps.push(|| element.clone(), difference);
    }
    Ok(steps.into_difference(old.is_none(), new.is_none()))
}

/// The items with one key on both sides: one each, as a rule.
struct Pair<'a, 'v> {
    place: Place<'a>,
    sides: [Vec<&'v Value>; 2],
}

impl Pair<'_, '_> {
    /// Items that are there twice are compared as one value.
    fn difference(&self) -> Result<Difference, String> {
        let [old, new] = &self.sides;
        let single = |list: &[_]| list.len() <= 1;
        match (single(old), single(new)) {
            (true, true) => difference(self.place, old.first().copied(), new.first().copied()),
            (false, false) => {
                let mut changes = Difference::default();
                changes.modified.member = old != new;
                Ok(changes)
            }
            (false, true) => {
                let mut changes = difference(self.place, None, new.first().copied())?;
                changes.removed.member = true;
                Ok(changes)
            }
            (true, false) => {
                let mut changes = difference(self.place, old.first().copied(), None)?;
                changes.added.member = true;
                Ok(changes)
            }
        }
    }
}
