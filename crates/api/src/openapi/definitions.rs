//! Types as JSON schemas, in the two dialects that clients read.
//!
//! Shapes, numbers and merge rules come from the table of types; only the words come from elsewhere.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::descriptions::Descriptions;
use crate::schema::{Field, ListKind, Merge, Schema, Shape, TypeId};

/// Which version of `OpenAPI` a document is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";

impl Dialect {
    /// A reference to a definition.
    pub(super) fn reference(self, name: &str) -> Value {
        let place = match self {
            Self::V2 => "#/definitions/",
            Self::V3 => "#/components/schemas/",
        };
        json!({"$ref": format!("{place}{name}")})
    }

    /// A reference with something to say beside it, which only one dialect allows.
    fn reference_with(self, name: &str, more: Map<String, Value>) -> Value {
        let mut reference = self.reference(name);
        if more.is_empty() {
            return reference;
        }
        if self == Self::V3 {
            reference = json!({"allOf": [reference]});
        }
        if let Value::Object(map) = &mut reference {
            map.extend(more);
        }
        reference
    }
}

/// Definitions of the types of one schema.
pub(super) struct Definitions<'a> {
    pub(super) dialect: Dialect,
    pub(super) schema: &'a Schema,
    pub(super) descriptions: &'a Descriptions,
}

impl Definitions<'_> {
    /// All types that these ones need, themselves included, by name.
    pub(super) fn closure<'a>(&self, roots: impl Iterator<Item = &'a str>) -> BTreeSet<TypeId> {
        let mut waiting: Vec<TypeId> = roots.filter_map(|name| self.schema.find(name)).collect();
        let mut found = BTreeSet::new();
        while let Some(id) = waiting.pop() {
            if found.insert(id) {
                let fields = &self.schema.get(id).fields;
                waiting.extend(fields.iter().filter_map(|field| object_of(&field.shape)));
            }
        }
        found
    }

    /// The definition of one type, without the kinds that it stands for.
    pub(super) fn definition(&self, id: TypeId) -> Map<String, Value> {
        let kind = self.schema.get(id);
        let mut definition = Map::new();
        if let Some(text) = self.descriptions.of_type(&kind.name) {
            definition.insert("description".to_owned(), text.into());
        }
        definition.insert("type".to_owned(), "object".into());
        let properties: Map<String, Value> = kind
            .fields
            .iter()
            .map(|field| (field.name.clone(), self.property(&kind.name, field)))
            .collect();
        if !properties.is_empty() {
            definition.insert("properties".to_owned(), properties.into());
        }
        let required: Vec<&str> = kind
            .fields
            .iter()
            .filter(|field| field.required)
            .map(|field| field.name.as_str())
            .collect();
        if !required.is_empty() {
            definition.insert("required".to_owned(), required.into());
        }
        if kind.atomic {
            definition.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
        }
        definition
    }

    fn property(&self, owner: &str, field: &Field) -> Value {
        let mut more = Map::new();
        if let Some(text) = self.descriptions.of_field(owner, &field.name) {
            more.insert("description".to_owned(), text.into());
        }
        if let Some(default) = default(field) {
            more.insert("default".to_owned(), default);
        }
        list_rules(field, &mut more);
        if let Some(merge) = &field.merge {
            merge_rules(merge, &mut more);
        }
        if field.atomic {
            more.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
        }
        self.value(owner, field, &field.shape, more)
    }

    fn value(&self, owner: &str, field: &Field, shape: &Shape, more: Map<String, Value>) -> Value {
        let plain = |mut more: Map<String, Value>, kind: &str, format: Option<&str>| {
            more.insert("type".to_owned(), kind.into());
            if let Some(format) = format {
                more.insert("format".to_owned(), format.into());
            }
            Value::Object(more)
        };
        match shape {
            Shape::Boolean => plain(more, "boolean", None),
            Shape::Int32 => plain(more, "integer", Some("int32")),
            Shape::Int64 => plain(more, "integer", Some("int64")),
            Shape::Double => plain(more, "number", Some("double")),
            Shape::String => plain(more, "string", None),
            Shape::Bytes => plain(more, "string", Some("byte")),
            Shape::Time => self.dialect.reference_with(TIME, more),
            Shape::MicroTime => self.dialect.reference_with(MICRO_TIME, more),
            Shape::Quantity => self.dialect.reference_with(QUANTITY, more),
            Shape::IntOrString => self.dialect.reference_with(INT_OR_STRING, more),
            Shape::Object(id) => self
                .dialect
                .reference_with(&self.schema.get(*id).name, more),
            Shape::List(item) => {
                let mut list = more;
                list.insert("items".to_owned(), self.item(owner, field, item));
                plain(list, "array", None)
            }
            Shape::Map(item) => {
                let mut map = more;
                map.insert(
                    "additionalProperties".to_owned(),
                    self.item(owner, field, item),
                );
                plain(map, "object", None)
            }
            Shape::Any => match self.descriptions.referred(owner, &field.name) {
                Some(name) => self.dialect.reference_with(name, more),
                None => Value::Object(more),
            },
        }
    }

    fn item(&self, owner: &str, field: &Field, item: &Shape) -> Value {
        let mut more = Map::new();
        if self.dialect == Dialect::V3
            && let Some(zero) = zero(item)
        {
            more.insert("default".to_owned(), zero);
        }
        self.value(owner, field, item, more)
    }
}

/// Definitions of what is not an object in JSON; documents that refer to them need all of them.
pub(super) fn simple(dialect: Dialect) -> [(&'static str, Value); 10] {
    let (quantity, int_or_string) = match dialect {
        Dialect::V2 => (
            json!({"type": "string"}),
            json!({"type": "string", "format": "int-or-string"}),
        ),
        Dialect::V3 => (
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
    };
    let time = json!({"type": "string", "format": "date-time"});
    [
        (QUANTITY, quantity),
        (INT_OR_STRING, int_or_string),
        (TIME, time.clone()),
        (MICRO_TIME, time),
        (
            "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
            json!({"type": "object"}),
        ),
        (
            "io.k8s.apimachinery.pkg.runtime.RawExtension",
            json!({"type": "object"}),
        ),
        (
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
            json!({}),
        ),
        (
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
            json!({}),
        ),
        (
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
            json!({}),
        ),
        (
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
            json!({}),
        ),
    ]
}

fn object_of(shape: &Shape) -> Option<TypeId> {
    match shape {
        Shape::Object(id) => Some(*id),
        Shape::List(item) | Shape::Map(item) => object_of(item),
        _ => None,
    }
}

/// What is there if nothing is given: what upstream declares, or what Go cannot leave out.
fn default(field: &Field) -> Option<Value> {
    if field.default.is_some() {
        return field.default.clone();
    }
    let is_object = matches!(field.shape, Shape::Object(_));
    if field.wire.pointer || !(field.required || is_object) {
        return None;
    }
    zero(&field.shape)
}

fn zero(shape: &Shape) -> Option<Value> {
    match shape {
        Shape::Boolean => Some(false.into()),
        Shape::Int32 | Shape::Int64 | Shape::Double => Some(0.into()),
        Shape::String => Some("".into()),
        Shape::Object(_) => Some(json!({})),
        _ => None,
    }
}

fn list_rules(field: &Field, more: &mut Map<String, Value>) {
    if !matches!(field.shape, Shape::List(_)) {
        return;
    }
    let kind = match &field.list {
        ListKind::Atomic => "atomic",
        ListKind::Set => "set",
        ListKind::Map(keys) => {
            more.insert("x-kubernetes-list-map-keys".to_owned(), keys.clone().into());
            "map"
        }
    };
    more.insert("x-kubernetes-list-type".to_owned(), kind.into());
}

fn merge_rules(merge: &Merge, more: &mut Map<String, Value>) {
    let strategy = match (merge.merges, merge.retain_keys) {
        (true, true) => "merge,retainKeys",
        (true, false) => "merge",
        (false, true) => "retainKeys",
        (false, false) => "replace",
    };
    more.insert("x-kubernetes-patch-strategy".to_owned(), strategy.into());
    if let Some(key) = &merge.key {
        more.insert(
            "x-kubernetes-patch-merge-key".to_owned(),
            key.clone().into(),
        );
    }
}
