//! What the schema says of a place in an object, for ownership.
//!
//! A place is either one value that has one owner, or it has parts with owners of their own.

use serde_json::Value;

use super::element::Element;
use crate::schema::{Field, ListKind, Schema, Shape, Type};

/// A place in objects of one type.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    schema: &'a Schema,
    shape: &'a Shape,
    list: &'a ListKind,
    atomic: bool,
}

/// How a place is divided.
pub(super) enum Parts<'a> {
    /// Not at all.
    Whole,
    /// Into named fields.
    Fields(&'a Type),
    /// Into the values of a map.
    Values,
    /// Into items that are their own keys.
    Set,
    /// Into items with keys.
    Items(&'a [String], Place<'a>),
    /// By what is there: objects have fields, all else is whole.
    Free,
}

static ATOMIC: ListKind = ListKind::Atomic;

impl<'a> Place<'a> {
    pub(super) fn root(schema: &'a Schema, shape: &'a Shape) -> Self {
        Self {
            schema,
            shape,
            list: &ATOMIC,
            atomic: false,
        }
    }

    fn with(self, shape: &'a Shape) -> Self {
        Self {
            shape,
            list: &ATOMIC,
            atomic: false,
            ..self
        }
    }

    fn free(self) -> Self {
        self.with(&Shape::Any)
    }

    pub(super) fn shape(&self) -> &'a Shape {
        self.shape
    }

    pub(super) fn parts(&self) -> Parts<'a> {
        if self.atomic {
            return Parts::Whole;
        }
        match self.shape {
            Shape::Object(id) => {
                let kind = self.schema.get(*id);
                if kind.atomic {
                    Parts::Whole
                } else {
                    Parts::Fields(kind)
                }
            }
            Shape::Map(_) => Parts::Values,
            Shape::List(item) => match self.list {
                ListKind::Atomic => Parts::Whole,
                ListKind::Set => Parts::Set,
                ListKind::Map(keys) => Parts::Items(keys, self.with(item)),
            },
            Shape::Any => Parts::Free,
            _ => Parts::Whole,
        }
    }

    /// The place of a field, and whether the type names it.
    pub(super) fn field(&self, name: &str) -> (Self, bool) {
        match self.shape {
            Shape::Object(id) => match self.schema.get(*id).field(name) {
                Some(field) => {
                    let place = Self {
                        schema: self.schema,
                        shape: &field.shape,
                        list: &field.list,
                        atomic: field.atomic,
                    };
                    (place, true)
                }
                None => (self.free(), false),
            },
            Shape::Map(value) => (self.with(value), false),
            _ => (self.free(), false),
        }
    }

    /// The place a step leads to.
    pub(super) fn step(&self, element: &Element) -> (Self, bool) {
        match (element, self.shape) {
            (Element::Field(name), _) => self.field(name),
            (_, Shape::List(item)) => (self.with(item), false),
            _ => (self.free(), false),
        }
    }

    /// The step to an item of a list with keys.
    pub(super) fn item_by_keys(&self, keys: &[String], item: &Value) -> Result<Element, String> {
        let Value::Object(fields) = item else {
            let what = if item.is_null() {
                "a null element"
            } else {
                "non-map elements"
            };
            return Err(format!("associative list with keys may not have {what}"));
        };
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            let value = match fields.get(key) {
                Some(value) => value.clone(),
                None => self.default_of(key).cloned().ok_or_else(|| {
                    format!(
                        "associative list with keys has an element that omits key field {key:?} (and doesn't have default value)"
                    )
                })?,
            };
            found.push((key.clone(), value));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Element::Key(found))
    }

    fn default_of(&self, key: &str) -> Option<&'a Value> {
        match self.shape {
            Shape::Object(id) => self.schema.get(*id).field(key)?.default.as_ref(),
            _ => None,
        }
    }
}

/// The step to an item of a set.
pub(super) fn item_of_set(item: &Value) -> Result<Element, String> {
    let fault = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        plain => return Ok(Element::Value(plain.clone())),
    };
    Err(fault.to_owned())
}

/// The step to an item of a list that has parts, and the place of the item.
pub(super) fn item_step<'a>(
    parts: &Parts<'a>,
    list: Place<'a>,
    item: &Value,
) -> Result<(Element, Place<'a>), String> {
    match parts {
        Parts::Items(keys, place) => Ok((place.item_by_keys(keys, item)?, *place)),
        _ => {
            let element = item_of_set(item)?;
            let (place, _) = list.step(&element);
            Ok((element, place))
        }
    }
}

/// What upstream has in an object for a field that is not there. It matters because nobody adds what is there
/// already, be it empty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    Nothing,
    Null,
    Empty,
}

/// What stands for a field of the built-in types that is not there.
pub(super) fn absent(field: &Field) -> Absent {
    if field.number == 0 {
        Absent::Nothing
    } else if !field.wire.pointer && matches!(field.shape, Shape::Object(_)) {
        Absent::Empty
    } else if field.required || field.wire.always {
        Absent::Null
    } else {
        Absent::Nothing
    }
}

/// The fields that are empty objects where they are not there.
pub(super) fn always_there(kind: &Type) -> impl Iterator<Item = &str> {
    kind.fields
        .iter()
        .filter(|field| absent(field) == Absent::Empty)
        .map(|field| field.name.as_str())
}
