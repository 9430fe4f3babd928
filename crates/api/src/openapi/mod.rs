//! What the API tells about its types and requests: `OpenAPI` in version 3, a document for each version of a
//! group, and in version 2, one document for all.
//!
//! Documents are built when first asked for and kept compressed. What changes with a custom resource
//! definition is only the document of its group.

mod definitions;
mod descriptions;
mod document;
mod message;
mod operations;
mod parameters;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::sync::{Arc, OnceLock};

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A resource that is served.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenApiResource {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub namespaced: bool,
    /// As permissions call them: `get`, `list`, `create`.
    pub verbs: Vec<String>,
    pub subresources: Vec<OpenApiSubresource>,
    /// The name of its definition, like `io.k8s.api.core.v1.Pod`.
    pub type_name: String,
    /// The schema in the definition of a custom resource; built-in kinds have none.
    pub custom: Option<Arc<Value>>,
}

/// A part of a resource that has a path of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenApiSubresource {
    pub name: String,
    pub verbs: Vec<String>,
    /// The kind of the bodies, which may be of another group.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub type_name: String,
}

/// How the operations of a group's version are named.
struct OperationNames {
    /// `AppsV1`.
    camel: String,
    /// `apps_v1`.
    tag: String,
}

impl OpenApiResource {
    /// `api/v1` or `apis/apps/v1`.
    pub fn group_version_path(&self) -> String {
        if self.group.is_empty() {
            format!("api/{}", self.version)
        } else {
            format!("apis/{}/{}", self.group, self.version)
        }
    }

    fn operation_names(&self) -> OperationNames {
        let group = match self.group.as_str() {
            "" => "core",
            group => group.strip_suffix(".k8s.io").unwrap_or(group),
        };
        let mut camel = String::new();
        for word in group.split('.') {
            camel.push_str(&operations::capitalized(word));
        }
        let mut tag = camel.clone();
        if let Some(first) = tag.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        OperationNames {
            camel: format!("{camel}{}", operations::capitalized(&self.version)),
            tag: format!("{tag}_{}", self.version),
        }
    }
}

/// A finished document.
#[derive(Debug)]
pub struct Document {
    /// JSON or protobuf, compressed with gzip.
    pub gzip: Vec<u8>,
}

impl Document {
    /// As it is, for clients that take no gzip.
    pub fn plain(&self) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        GzDecoder::new(&self.gzip[..]).read_to_end(&mut plain)?;
        Ok(plain)
    }
}

/// All documents of a set of resources.
#[derive(Debug)]
pub struct OpenApi {
    server_version: String,
    groups: BTreeMap<String, Arc<Group>>,
    v2: OnceLock<Arc<Document>>,
    v2_protobuf: OnceLock<Arc<Document>>,
}

/// The resources of one version of a group.
#[derive(Debug)]
struct Group {
    resources: Vec<OpenApiResource>,
    hash: String,
    document: OnceLock<Arc<Document>>,
}

impl OpenApi {
    /// For these resources. `server_version` is what the documents say of it, like `v1.36.0`.
    pub fn new(resources: Vec<OpenApiResource>, server_version: &str) -> Self {
        let mut groups: BTreeMap<String, Vec<OpenApiResource>> = BTreeMap::new();
        for resource in resources {
            groups
                .entry(resource.group_version_path())
                .or_default()
                .push(resource);
        }
        let groups = groups
            .into_iter()
            .map(|(path, resources)| {
                let group = Group {
                    hash: hash(&resources, server_version),
                    resources,
                    document: OnceLock::new(),
                };
                (path, Arc::new(group))
            })
            .collect();
        Self {
            server_version: server_version.to_owned(),
            groups,
            v2: OnceLock::new(),
            v2_protobuf: OnceLock::new(),
        }
    }

    /// For other resources, with the documents of all groups that are the same.
    #[must_use]
    pub fn changed_to(&self, resources: Vec<OpenApiResource>) -> Self {
        let mut next = Self::new(resources, &self.server_version);
        for (path, group) in &mut next.groups {
            if let Some(old) = self.groups.get(path)
                && old.hash == group.hash
            {
                *group = Arc::clone(old);
            }
        }
        next
    }

    /// The index of `/openapi/v3`.
    pub fn index(&self) -> Value {
        let paths: serde_json::Map<String, Value> = self
            .groups
            .iter()
            .map(|(path, group)| {
                let url = format!("/openapi/v3/{path}?hash={}", group.hash);
                (path.clone(), json!({"serverRelativeURL": url}))
            })
            .collect();
        json!({"paths": paths})
    }

    /// The hash that the index has for a path like `apis/apps/v1`; it is also its `ETag`.
    pub fn hash(&self, path: &str) -> Option<&str> {
        self.groups.get(path).map(|group| group.hash.as_str())
    }

    /// The document of a path like `apis/apps/v1`. The first call for a path takes a while.
    pub fn document(&self, path: &str) -> io::Result<Option<Arc<Document>>> {
        let Some(group) = self.groups.get(path) else {
            return Ok(None);
        };
        kept(&group.document, || {
            document::version_3(path, &group.resources, &self.server_version)
        })
        .map(Some)
    }

    /// What tells the document of version 2 from others.
    pub fn hash_v2(&self) -> String {
        let hashes = self.groups.values().map(|group| group.hash.as_bytes());
        digest(hashes)
    }

    /// The document of version 2. The first call takes a while.
    pub fn document_v2(&self, notation: Notation) -> io::Result<Arc<Document>> {
        let place = match notation {
            Notation::Json => &self.v2,
            Notation::Protobuf => &self.v2_protobuf,
        };
        kept(place, || {
            let resources = self.groups.values().flat_map(|group| &group.resources);
            match notation {
                Notation::Json => document::version_2(resources, &self.server_version),
                Notation::Protobuf => document::version_2_protobuf(resources, &self.server_version),
            }
        })
    }
}

/// How the document of version 2 is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    Json,
    Protobuf,
}

/// Two first calls at once may both build; one of the results is kept.
fn kept(
    place: &OnceLock<Arc<Document>>,
    build: impl FnOnce() -> io::Result<Document>,
) -> io::Result<Arc<Document>> {
    if let Some(document) = place.get() {
        return Ok(Arc::clone(document));
    }
    let document = Arc::new(build()?);
    Ok(Arc::clone(place.get_or_init(|| document)))
}

/// Tells documents apart without building them: clients keep one for as long as its hash is the same.
fn hash(resources: &[OpenApiResource], server_version: &str) -> String {
    digest([
        env!("CARGO_PKG_VERSION").as_bytes(),
        server_version.as_bytes(),
        crate::schema::BUILTIN.as_bytes(),
        format!("{resources:?}").as_bytes(),
    ])
}

fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    let mut text = String::with_capacity(64);
    for byte in hasher.finalize() {
        for half in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(half), 16));
        }
    }
    text.to_ascii_uppercase()
}
