//! The requests that each resource answers, as paths with operations.
//!
//! kubectl looks for the parameters of an operation before it relies on them, so a parameter stands here only
//! where the server takes it.

use serde_json::{Map, Value, json};

use super::definitions::Dialect;
use super::parameters::{PRETTY, Query, parameters};
use super::{OpenApiResource, OpenApiSubresource};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const MEDIA_TYPES: [&str; 3] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
const WATCH_MEDIA_TYPES: [&str; 2] = [
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
const PATCH_MEDIA_TYPES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];
/// kubectl sends to a custom resource what stands here.
const CUSTOM_PATCH_MEDIA_TYPES: [&str; 3] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
];

/// What a request does, and how that is called.
struct Request<'a> {
    /// As permissions call it.
    verb: &'a str,
    method: &'a str,
    /// As `x-kubernetes-action` calls it.
    action: &'a str,
    /// The start of the operation's name.
    name: &'a str,
    /// For people.
    words: &'a str,
}

const COLLECTION: [Request<'static>; 3] = [
    Request {
        verb: "list",
        method: "get",
        action: "list",
        name: "list",
        words: "list or watch objects of kind",
    },
    Request {
        verb: "create",
        method: "post",
        action: "post",
        name: "create",
        words: "create",
    },
    Request {
        verb: "deletecollection",
        method: "delete",
        action: "deletecollection",
        name: "delete",
        words: "delete a collection of",
    },
];

const ITEM: [Request<'static>; 4] = [
    Request {
        verb: "get",
        method: "get",
        action: "get",
        name: "read",
        words: "read the",
    },
    Request {
        verb: "update",
        method: "put",
        action: "put",
        name: "replace",
        words: "replace the",
    },
    Request {
        verb: "patch",
        method: "patch",
        action: "patch",
        name: "patch",
        words: "change parts of the",
    },
    Request {
        verb: "delete",
        method: "delete",
        action: "delete",
        name: "delete",
        words: "delete the",
    },
];

const CREATE_PART: Request<'static> = Request {
    verb: "create",
    method: "post",
    action: "post",
    name: "create",
    words: "create",
};

/// Writes operations in one dialect.
pub(super) struct Operations {
    pub(super) dialect: Dialect,
}

/// What an operation is about.
struct Subject<'a> {
    resource: &'a OpenApiResource,
    /// The kind of the bodies.
    group: &'a str,
    version: &'a str,
    kind: &'a str,
    type_name: &'a str,
    /// In the operation's name, after the kind.
    suffix: String,
    namespaced: bool,
}

impl Operations {
    /// All paths of a resource, in their order.
    pub(super) fn paths(&self, resource: &OpenApiResource) -> Vec<(String, Value)> {
        let base = resource.group_version_path();
        let plural = &resource.plural;
        let all = format!("/{base}/{plural}");
        let collection = if resource.namespaced {
            format!("/{base}/namespaces/{{namespace}}/{plural}")
        } else {
            all.clone()
        };
        let subject = Subject {
            resource,
            group: &resource.group,
            version: &resource.version,
            kind: &resource.kind,
            type_name: &resource.type_name,
            suffix: String::new(),
            namespaced: resource.namespaced,
        };
        let mut paths = vec![
            (
                collection.clone(),
                self.path(&subject, &COLLECTION, &resource.verbs, false),
            ),
            (
                format!("{collection}/{{name}}"),
                self.path(&subject, &ITEM, &resource.verbs, true),
            ),
        ];
        for part in &resource.subresources {
            let path = format!("{collection}/{{name}}/{}", part.name);
            paths.push((path, self.part(resource, part)));
        }
        if resource.namespaced {
            let everywhere = Subject {
                suffix: "ForAllNamespaces".to_owned(),
                namespaced: false,
                ..subject
            };
            paths.push((
                all,
                self.path(&everywhere, &COLLECTION[..1], &resource.verbs, false),
            ));
        }
        paths.retain(|(_, path)| path.as_object().is_some_and(has_operations));
        paths.sort_by(|(a, _), (b, _)| a.cmp(b));
        paths
    }

    fn part(&self, resource: &OpenApiResource, part: &OpenApiSubresource) -> Value {
        let subject = Subject {
            resource,
            group: &part.group,
            version: &part.version,
            kind: &part.kind,
            type_name: &part.type_name,
            suffix: capitalized(&part.name),
            namespaced: resource.namespaced,
        };
        let mut path = self.path(&subject, &ITEM, &part.verbs, true);
        if part.verbs.iter().any(|verb| verb == CREATE_PART.verb)
            && let Value::Object(map) = &mut path
        {
            map.insert("post".to_owned(), self.operation(&subject, &CREATE_PART));
        }
        path
    }

    fn path(
        &self,
        subject: &Subject<'_>,
        actions: &[Request<'_>],
        verbs: &[String],
        item: bool,
    ) -> Value {
        let mut path = Map::new();
        for action in actions {
            if verbs.iter().any(|verb| verb == action.verb) {
                path.insert(action.method.to_owned(), self.operation(subject, action));
            }
        }
        let mut parameters = Vec::new();
        if item {
            let words = format!("name of the {}", subject.resource.kind);
            parameters.push(self.parameter("name", "path", "string", &words));
        }
        if subject.namespaced {
            let words = "the namespace of the object";
            parameters.push(self.parameter("namespace", "path", "string", words));
        }
        parameters.push(self.query(&PRETTY));
        path.insert("parameters".to_owned(), parameters.into());
        path.into()
    }

    fn operation(&self, subject: &Subject<'_>, action: &Request<'_>) -> Value {
        let names = subject.resource.operation_names();
        let collection = if action.action == "deletecollection" {
            "Collection"
        } else {
            ""
        };
        let scope = if subject.namespaced { "Namespaced" } else { "" };
        let kind = &subject.resource.kind;
        let mut operation = json!({
            "operationId": format!("{}{}{collection}{scope}{kind}{}", action.name, names.camel, subject.suffix),
            "description": format!("{} {}", action.words, subject.kind),
            "tags": [names.tag],
            "x-kubernetes-action": action.action,
            "x-kubernetes-group-version-kind": {
                "group": subject.group,
                "version": subject.version,
                "kind": subject.kind,
            },
            "responses": self.responses(subject, action),
        });
        let parameters: Vec<Value> = parameters(action.action)
            .into_iter()
            .map(|parameter| self.query(parameter))
            .collect();
        operation["parameters"] = parameters.into();
        let body = match action.action {
            "post" | "put" => Some((subject.type_name.to_owned(), &["*/*"][..])),
            "patch" => Some((format!("{META}.Patch"), patch_media_types(subject))),
            "delete" | "deletecollection" => Some((format!("{META}.DeleteOptions"), &["*/*"][..])),
            _ => None,
        };
        if let Some((name, media_types)) = body {
            self.body(&mut operation, &name, media_types, action);
        }
        operation
    }

    fn body(&self, operation: &mut Value, name: &str, media_types: &[&str], action: &Request<'_>) {
        let required = !action.action.starts_with("delete");
        let reference = self.dialect.reference(name);
        match self.dialect {
            Dialect::V3 => {
                operation["requestBody"] = json!({"content": content(&reference, media_types)});
                if required {
                    operation["requestBody"]["required"] = true.into();
                }
            }
            Dialect::V2 => {
                operation["consumes"] = media_types.into();
                if let Some(parameters) = operation["parameters"].as_array_mut() {
                    let mut body = json!({"name": "body", "in": "body", "schema": reference});
                    if required {
                        body["required"] = true.into();
                    }
                    parameters.push(body);
                }
            }
        }
    }

    fn responses(&self, subject: &Subject<'_>, action: &Request<'_>) -> Value {
        let status = format!("{META}.Status");
        let list = format!("{}List", subject.type_name);
        let (name, codes): (&str, &[(&str, &str)]) = match action.action {
            "list" => (&list, &[("200", "OK")]),
            "post" => (
                subject.type_name,
                &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
            ),
            "put" | "patch" => (subject.type_name, &[("200", "OK"), ("201", "Created")]),
            "delete" => (&status, &[("200", "OK"), ("202", "Accepted")]),
            "deletecollection" => (&status, &[("200", "OK")]),
            _ => (subject.type_name, &[("200", "OK")]),
        };
        let reference = self.dialect.reference(name);
        let mut media_types = MEDIA_TYPES.to_vec();
        if action.action == "list" {
            media_types.extend(WATCH_MEDIA_TYPES);
        }
        let mut responses = Map::new();
        for (code, words) in codes {
            let response = match self.dialect {
                Dialect::V3 => json!({
                    "description": words,
                    "content": content(&reference, &media_types),
                }),
                Dialect::V2 => json!({"description": words, "schema": reference}),
            };
            responses.insert((*code).to_owned(), response);
        }
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        responses.into()
    }

    fn query(&self, parameter: &Query) -> Value {
        self.parameter(parameter.name, "query", parameter.kind, parameter.words)
    }

    fn parameter(&self, name: &str, place: &str, kind: &str, words: &str) -> Value {
        let mut parameter = json!({
            "name": name,
            "in": place,
            "description": words,
            "uniqueItems": true,
        });
        if place == "path" {
            parameter["required"] = true.into();
        }
        match self.dialect {
            Dialect::V2 => parameter["type"] = kind.into(),
            Dialect::V3 => {
                parameter["schema"] = json!({"type": kind, "uniqueItems": true});
                if let Value::Object(map) = &mut parameter {
                    map.remove("uniqueItems");
                }
            }
        }
        parameter
    }
}

fn has_operations(path: &Map<String, Value>) -> bool {
    path.keys().any(|key| key != "parameters")
}

fn content(reference: &Value, media_types: &[&str]) -> Value {
    media_types
        .iter()
        .map(|media_type| ((*media_type).to_owned(), json!({"schema": reference})))
        .collect::<Map<String, Value>>()
        .into()
}

pub(super) fn capitalized(word: &str) -> String {
    let mut characters = word.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

/// Lists of custom resources have no merge keys that both sides know of.
fn patch_media_types(subject: &Subject<'_>) -> &'static [&'static str] {
    if subject.resource.custom.is_some() {
        &CUSTOM_PATCH_MEDIA_TYPES
    } else {
        &PATCH_MEDIA_TYPES
    }
}
