//! The types of objects: what fields they have, how lists merge, which number a field has in protobuf.
//!
//! One description serves decoding, pruning, patching, server-side apply, protobuf and `OpenAPI`. The built-in
//! types come from a table written by `cargo xtask generate`; the types of a custom resource come from its
//! definition. A schema never changes once made.

pub mod decode;
mod findings;
pub mod json;
pub mod quantity;
pub mod structural;
mod table;
pub mod time;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

pub use findings::{FieldValidation, Findings, cannot_be_handled};

pub(crate) const BUILTIN: &str = include_str!("types.txt");

/// The types that Kubernetes has built in.
pub fn builtin() -> &'static Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(table::parse(BUILTIN).schema));
    &SCHEMA
}

/// A set of types that name each other.
#[derive(Debug, Default)]
pub struct Schema {
    types: Vec<Type>,
    names: HashMap<String, TypeId>,
}

/// The place of a type in its [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub usize);

/// An object with named fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Type {
    /// Like `io.k8s.api.core.v1.PodSpec`.
    pub name: String,
    /// In the order of their names.
    pub fields: Vec<Field>,
    /// Server-side apply treats the whole object as one value.
    pub atomic: bool,
    /// Fields that are not described are kept as they are, instead of being dropped.
    pub open: bool,
}

/// One field of a [`Type`].
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name in JSON.
    pub name: String,
    /// The number in protobuf; zero for types that have no protobuf form.
    pub number: u32,
    pub shape: Shape,
    /// Whether it must be there; `OpenAPI` says so, decoding does not insist.
    pub required: bool,
    /// How two lists become one, in server-side apply.
    pub list: ListKind,
    /// Strategic merge patch merges instead of replacing.
    pub merge: Option<Merge>,
    /// The whole map or object is one value in server-side apply.
    pub atomic: bool,
    /// What the description of the type says is there if nothing is.
    pub default: Option<Value>,
    pub wire: Wire,
}

/// How a field looks in protobuf, and what Go makes of it: clients depend on both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// The number of the message that carries the field, where JSON has it one level up; zero for most.
    pub embedded: u32,
    pub form: Form,
    /// Go has a pointer: a zero or an empty text is a value, and not the same as nothing.
    pub pointer: bool,
    /// Go writes the field even if it is empty, though it is optional.
    pub always: bool,
    /// What Go calls the type, where it is not what the shape would tell.
    pub go: Option<Box<str>>,
}

/// What stands in protobuf for a value that is simpler in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    #[default]
    Plain,
    /// Each list of texts is in a message of its own.
    Wrapped,
    /// A schema, or a list of them.
    SchemaOrList,
    /// A schema, or true or false.
    SchemaOrBool,
    /// A schema, or a list of texts.
    SchemaOrStrings,
}

/// What a value looks like.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Boolean,
    Int32,
    Int64,
    Double,
    String,
    /// Base64 in JSON.
    Bytes,
    /// RFC 3339 with seconds.
    Time,
    /// RFC 3339 with microseconds.
    MicroTime,
    Quantity,
    IntOrString,
    Object(TypeId),
    List(Arc<Shape>),
    /// Keys are strings.
    Map(Arc<Shape>),
    /// Whatever JSON there is: raw extensions, JSON inside custom resource definitions, managed fields.
    Any,
}

/// What a list is to server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    #[default]
    Atomic,
    /// Every value at most once.
    Set,
    /// One item for each combination of these fields.
    Map(Vec<String>),
}

/// What strategic merge patch does with a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merge {
    /// The field that tells the items of a list apart; `None` for a list of plain values, or for an object.
    pub key: Option<String>,
    /// Patches may say which fields are kept (`$retainKeys`).
    pub retain_keys: bool,
    /// Items are merged (`patchStrategy: merge`); without it a list is replaced.
    pub merges: bool,
}

impl Schema {
    /// A schema of these types. Their names must differ.
    pub fn new(types: Vec<Type>) -> Self {
        let names = types
            .iter()
            .enumerate()
            .map(|(id, kind)| (kind.name.clone(), TypeId(id)))
            .collect();
        Self { types, names }
    }

    pub fn find(&self, name: &str) -> Option<TypeId> {
        self.names.get(name).copied()
    }

    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0]
    }

    pub fn types(&self) -> &[Type] {
        &self.types
    }
}

/// The name of a built-in type, or of what it would be: `io.k8s.api.apps.v1.Deployment`.
///
/// Options, events and answers that every group has are of the package `meta`.
pub fn builtin_name(group: &str, version: &str, kind: &str) -> String {
    const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
    const SHARED: [&str; 7] = [
        "APIGroup",
        "APIGroupList",
        "APIResourceList",
        "APIVersions",
        "DeleteOptions",
        "Status",
        "WatchEvent",
    ];
    if group == "meta.k8s.io" || SHARED.contains(&kind) {
        return format!("{META}.{kind}");
    }
    match group {
        "" => format!("io.k8s.api.core.{version}.{kind}"),
        "apiextensions.k8s.io" => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}")
        }
        group => {
            let package = group.split('.').next().unwrap_or(group);
            format!("io.k8s.api.{package}.{version}.{kind}")
        }
    }
}

impl Type {
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields
            .binary_search_by(|field| field.name.as_str().cmp(name))
            .ok()
            .map(|index| &self.fields[index])
    }
}
