//! Puts documents together, piece by piece into the compressor, so that none is ever there as a whole.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::definitions::{Definitions, Dialect, simple};
use super::descriptions::Descriptions;
use super::operations::Operations;
use super::{Document, OpenApiResource, message};
use crate::schema::{Type, builtin};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const KINDS: &str = "x-kubernetes-group-version-kind";
/// What every group has, whatever its resources are.
const SHARED: [&str; 5] = [
    "APIResourceList",
    "DeleteOptions",
    "Patch",
    "Status",
    "WatchEvent",
];

/// The document of one version of a group.
pub(super) fn version_3(
    path: &str,
    resources: &[OpenApiResource],
    server_version: &str,
) -> io::Result<Document> {
    let mut pieces = Pieces::new();
    pieces.raw("{\"openapi\":\"3.0.0\",\"info\":")?;
    pieces.value(&info(server_version))?;
    pieces.raw(",\"paths\":{")?;
    pieces.entry(&format!("/{path}/"), &group_path(Dialect::V3, resources))?;
    paths(&mut pieces, Dialect::V3, resources.iter())?;
    pieces.raw("},\"components\":{\"schemas\":{")?;
    pieces.first = true;
    schemas(&mut pieces, Dialect::V3, resources.iter())?;
    pieces.raw("}}}")?;
    pieces.finish()
}

/// The document of all groups.
pub(super) fn version_2<'a>(
    resources: impl Iterator<Item = &'a OpenApiResource> + Clone,
    server_version: &str,
) -> io::Result<Document> {
    let mut pieces = Pieces::new();
    pieces.raw("{\"swagger\":\"2.0\",\"info\":")?;
    pieces.value(&info(server_version))?;
    pieces.raw(",\"paths\":{")?;
    paths(&mut pieces, Dialect::V2, resources.clone())?;
    pieces.raw("},\"definitions\":{")?;
    pieces.first = true;
    schemas(&mut pieces, Dialect::V2, resources)?;
    pieces.raw("}}")?;
    pieces.finish()
}

/// The same as a protobuf message.
pub(super) fn version_2_protobuf<'a>(
    resources: impl Iterator<Item = &'a OpenApiResource> + Clone,
    server_version: &str,
) -> io::Result<Document> {
    let mut pieces = Pieces::new();
    pieces
        .gzip
        .write_all(&message::head("Kubernetes", server_version))?;
    pieces.message = Some(message::path_entry);
    paths(&mut pieces, Dialect::V2, resources.clone())?;
    pieces.message = Some(message::definition_entry);
    schemas(&mut pieces, Dialect::V2, resources)?;
    pieces.finish()
}

fn info(server_version: &str) -> Value {
    json!({"title": "Kubernetes", "version": server_version})
}

/// The list of a group's resources is a path, too.
fn group_path(dialect: Dialect, resources: &[OpenApiResource]) -> Value {
    let tag = resources
        .first()
        .map(|resource| resource.operation_names().tag);
    let schema = dialect.reference(&format!("{META}.APIResourceList"));
    json!({"get": {
        "description": "list the resources of this group",
        "tags": tag.into_iter().collect::<Vec<_>>(),
        "responses": {"200": {
            "description": "OK",
            "content": {"application/json": {"schema": schema}},
        }},
    }})
}

fn paths<'a>(
    pieces: &mut Pieces,
    dialect: Dialect,
    resources: impl Iterator<Item = &'a OpenApiResource>,
) -> io::Result<()> {
    let operations = Operations { dialect };
    for resource in resources {
        for (path, operations) in operations.paths(resource) {
            pieces.entry(&path, &operations)?;
        }
    }
    Ok(())
}

fn schemas<'a>(
    pieces: &mut Pieces,
    dialect: Dialect,
    resources: impl Iterator<Item = &'a OpenApiResource> + Clone,
) -> io::Result<()> {
    let roots = roots(resources.clone());
    let packages = roots.iter().filter_map(|name| name.rsplit_once('.'));
    let mut packages: Vec<&str> = packages.map(|(package, _)| package).collect();
    packages.sort_unstable();
    packages.dedup();
    let descriptions = Descriptions::of(packages.into_iter());
    let definitions = Definitions {
        dialect,
        schema: builtin(),
        descriptions: &descriptions,
    };
    let kinds = kinds(resources.clone());
    for id in definitions.closure(roots.iter().map(String::as_str)) {
        let Type { name, .. } = builtin().get(id);
        let mut definition = definitions.definition(id);
        if let Some(kinds) = kinds.get(name) {
            definition.insert(KINDS.to_owned(), kinds.clone().into());
        }
        pieces.entry(name, &definition.into())?;
    }
    for (name, definition) in simple(dialect) {
        let mut definition = definition;
        if let Some(text) = descriptions.of_type(name) {
            definition["description"] = text.into();
        }
        pieces.entry(name, &definition)?;
    }
    for resource in resources {
        if let Some(schema) = &resource.custom {
            let (object, list) = custom(dialect, resource, schema);
            pieces.entry(&resource.type_name, &object)?;
            pieces.entry(&format!("{}List", resource.type_name), &list)?;
        }
    }
    Ok(())
}

/// The types that operations name.
fn roots<'a>(resources: impl Iterator<Item = &'a OpenApiResource>) -> Vec<String> {
    let mut roots: Vec<String> = SHARED.iter().map(|name| format!("{META}.{name}")).collect();
    roots.extend(["ObjectMeta", "ListMeta"].map(|name| format!("{META}.{name}")));
    for resource in resources {
        if resource.custom.is_none() {
            roots.push(resource.type_name.clone());
            roots.push(format!("{}List", resource.type_name));
        }
        roots.extend(
            resource
                .subresources
                .iter()
                .map(|part| part.type_name.clone()),
        );
    }
    roots
}

/// The kinds that types stand for.
fn kinds<'a>(resources: impl Iterator<Item = &'a OpenApiResource>) -> BTreeMap<String, Vec<Value>> {
    let mut kinds: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut add = |name: String, group: &str, version: &str, kind: &str| {
        let kind = json!({"group": group, "version": version, "kind": kind});
        let known = kinds.entry(name).or_default();
        if !known.contains(&kind) {
            known.push(kind);
        }
    };
    add(format!("{META}.Status"), "", "v1", "Status");
    for resource in resources {
        let (group, version) = (&resource.group, &resource.version);
        for shared in ["DeleteOptions", "WatchEvent"] {
            add(format!("{META}.{shared}"), group, version, shared);
        }
        let list_kind = format!("{}List", resource.kind);
        add(resource.type_name.clone(), group, version, &resource.kind);
        add(
            format!("{}List", resource.type_name),
            group,
            version,
            &list_kind,
        );
        for part in &resource.subresources {
            add(
                part.type_name.clone(),
                &part.group,
                &part.version,
                &part.kind,
            );
        }
    }
    kinds
}

/// The definitions of a custom resource and of a list of it.
fn custom(dialect: Dialect, resource: &OpenApiResource, schema: &Value) -> (Value, Value) {
    let mut object = schema.clone();
    if dialect == Dialect::V2 {
        simplify(&mut object);
    }
    object["type"] = "object".into();
    let own = [
        ("apiVersion", json!({"type": "string"})),
        ("kind", json!({"type": "string"})),
        ("metadata", dialect.reference(&format!("{META}.ObjectMeta"))),
    ];
    for (name, property) in own {
        object["properties"][name] = property;
    }
    let kind =
        |kind: &str| json!([{"group": resource.group, "version": resource.version, "kind": kind}]);
    object[KINDS] = kind(&resource.kind);
    let list = json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": dialect.reference(&format!("{META}.ListMeta")),
            "items": {"type": "array", "items": dialect.reference(&resource.type_name)},
        },
        KINDS: kind(&format!("{}List", resource.kind)),
    });
    (object, list)
}

/// Takes away what version 2 has no word for.
fn simplify(schema: &mut Value) {
    let Value::Object(map) = schema else {
        return;
    };
    for word in ["nullable", "oneOf", "anyOf", "allOf", "not"] {
        map.remove(word);
    }
    // Properties may have any names, those of the words above included.
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(simplify);
    }
    for word in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(word) {
            simplify(inner);
        }
    }
}

/// A document on its way into the compressor.
struct Pieces {
    gzip: GzEncoder<Vec<u8>>,
    /// How entries are written where they are not JSON.
    message: Option<fn(&str, &Value) -> Vec<u8>>,
    /// Whether the next entry is the first of its object.
    first: bool,
}

impl Pieces {
    fn new() -> Self {
        Self {
            gzip: GzEncoder::new(Vec::new(), Compression::default()),
            message: None,
            first: true,
        }
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.gzip.write_all(text.as_bytes())
    }

    fn value(&mut self, value: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut self.gzip, value).map_err(io::Error::from)
    }

    fn entry(&mut self, name: &str, value: &Value) -> io::Result<()> {
        if let Some(message) = self.message {
            return self.gzip.write_all(&message(name, value));
        }
        if !std::mem::take(&mut self.first) {
            self.raw(",")?;
        }
        self.value(&name.into())?;
        self.raw(":")?;
        self.value(value)
    }

    fn finish(self) -> io::Result<Document> {
        Ok(Document {
            gzip: self.gzip.finish()?,
        })
    }
}
