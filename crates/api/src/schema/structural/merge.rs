//! A custom resource's types, for what merges objects: patches and server-side apply.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Additional, Structural};
use crate::schema::{Field, ListKind, Schema, Shape, Type, TypeId, Wire, builtin, builtin_name};

impl Structural {
    /// The types of objects with this schema. `name` is that of the first one, whose id comes with it.
    pub fn to_schema(&self, name: &str) -> (Schema, TypeId) {
        let mut builder = Builder {
            types: Vec::new(),
            copied: HashMap::new(),
        };
        let root = builder.object(self, name, true);
        (Schema::new(builder.types), root)
    }
}

struct Builder {
    types: Vec<Type>,
    /// Where built-in types are that were needed.
    copied: HashMap<TypeId, TypeId>,
}

impl Builder {
    /// Keeps a place for a type that refers to others.
    fn reserve(&mut self) -> TypeId {
        self.types.push(Type::default());
        TypeId(self.types.len() - 1)
    }

    fn object(&mut self, schema: &Structural, name: &str, is_resource: bool) -> TypeId {
        let id = self.reserve();
        let mut fields: Vec<Field> = schema
            .properties
            .iter()
            .filter(|(field, _)| !(is_resource && is_given(field)))
            .map(|(field, property)| {
                let shape = self.shape(property, &format!("{name}.{field}"));
                described(
                    field,
                    shape,
                    property,
                    schema.rules.required.contains(field),
                )
            })
            .collect();
        if is_resource {
            for field in ["apiVersion", "kind"] {
                fields.push(plain(field, Shape::String));
            }
            if let Some(metadata) = builtin().find(&builtin_name("meta.k8s.io", "v1", "ObjectMeta"))
            {
                fields.push(plain("metadata", Shape::Object(self.copy(metadata))));
            }
        }
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        self.types[id.0] = Type {
            name: name.to_owned(),
            fields,
            atomic: schema.atomic_map,
            open: schema.preserve_unknown_fields,
        };
        id
    }

    fn shape(&mut self, schema: &Structural, name: &str) -> Shape {
        if schema.int_or_string {
            return Shape::IntOrString;
        }
        match (schema.kind.as_str(), &schema.additional, &schema.items) {
            ("boolean", ..) => Shape::Boolean,
            ("integer", ..) => Shape::Int64,
            ("number", ..) => Shape::Double,
            ("string", ..) => Shape::String,
            ("array", _, Some(items)) => Shape::List(Arc::new(self.shape(items, name))),
            ("object", Some(Additional::Schema(values)), _) => {
                Shape::Map(Arc::new(self.shape(values, name)))
            }
            ("object", Some(Additional::Anything), _) => Shape::Map(Arc::new(Shape::Any)),
            ("object", None, _) => {
                Shape::Object(self.object(schema, name, schema.embedded_resource))
            }
            _ => Shape::Any,
        }
    }

    /// Takes over a built-in type and all that it needs.
    fn copy(&mut self, id: TypeId) -> TypeId {
        if let Some(copied) = self.copied.get(&id) {
            return *copied;
        }
        let here = self.reserve();
        self.copied.insert(id, here);
        let mut kind = builtin().get(id).clone();
        for field in &mut kind.fields {
            field.shape = self.copy_shape(&field.shape);
        }
        self.types[here.0] = kind;
        here
    }

    fn copy_shape(&mut self, shape: &Shape) -> Shape {
        match shape {
            Shape::Object(id) => Shape::Object(self.copy(*id)),
            Shape::List(item) => Shape::List(Arc::new(self.copy_shape(item))),
            Shape::Map(item) => Shape::Map(Arc::new(self.copy_shape(item))),
            other => other.clone(),
        }
    }
}

/// Whether every object has this field, whatever its schema says.
fn is_given(field: &str) -> bool {
    ["apiVersion", "kind", "metadata"].contains(&field)
}

/// A field as its schema describes it.
fn described(name: &str, shape: Shape, schema: &Structural, required: bool) -> Field {
    let list = match schema.list_type.as_deref() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(schema.list_map_keys.clone()),
        _ => ListKind::Atomic,
    };
    Field {
        required,
        list,
        atomic: schema.atomic_map,
        default: schema.default.clone(),
        ..plain(name, shape)
    }
}

fn plain(name: &str, shape: Shape) -> Field {
    Field {
        name: name.to_owned(),
        number: 0,
        shape,
        required: false,
        list: ListKind::Atomic,
        merge: None,
        atomic: false,
        default: None,
        // Nothing that a client gave is left out because it is empty.
        wire: Wire {
            pointer: true,
            always: true,
            ..Wire::default()
        },
    }
}
