//! The one error of the API: what a client gets as a `Status` object.

use serde_json::{Map, Value, json};

use crate::field::FieldError;

/// Why a request failed, in the form of Kubernetes.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status code.
    pub code: u16,
    /// The word programs match on, like `NotFound`.
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Box<Details>>,
    /// Where a list that is too old may go on.
    pub continues: Option<String>,
}

/// What the error is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// The kind for faults of an object, else the plural of the resource.
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: Option<u32>,
}

/// One reason of several.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

/// A resource in a message: `pods`, or `deployments.apps`.
fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}.{group}")
    }
}

impl ApiError {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continues: None,
        }
    }

    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        group.clone_into(&mut details.group);
        kind.clone_into(&mut details.kind);
        name.clone_into(&mut details.name);
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let object = match (resource, name) {
            ("", _) => String::new(),
            (resource, "") => format!("{} is ", qualified(group, resource)),
            (resource, name) => format!("{} {name:?} is ", qualified(group, resource)),
        };
        Self::new(403, "Forbidden", format!("{object}forbidden: {why}"))
            .about(group, resource, name)
    }

    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("{} {name:?} not found", qualified(group, resource)),
        )
        .about(group, resource, name)
    }

    /// The path names nothing that is served.
    pub fn no_such_path() -> Self {
        let mut error = Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        error.details = Some(Box::default());
        error
    }

    pub fn method_not_allowed(group: &str, resource: &str, action: &str) -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            format!(
                "{action} is not supported on resources of kind {:?}",
                qualified(group, resource)
            ),
        )
        .about(group, resource, "")
    }

    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{} {name:?} already exists", qualified(group, resource)),
        )
        .about(group, resource, name)
    }

    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        Self::new(
            409,
            "Conflict",
            format!(
                "Operation cannot be fulfilled on {} {name:?}: {why}",
                qualified(group, resource)
            ),
        )
        .about(group, resource, name)
    }

    /// The conflict of two writers: the version that came with the request is not the newest one.
    pub fn modified(group: &str, resource: &str, name: &str) -> Self {
        Self::conflict(
            group,
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// The history that was asked for is forgotten.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// Faults of an object's fields.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let sentences = match errors {
            [one] => one.to_string(),
            several => {
                let all: Vec<String> = several.iter().map(ToString::to_string).collect();
                format!("[{}]", all.join(", "))
            }
        };
        let object = qualified(group, kind);
        let mut error = Self::new(
            422,
            "Invalid",
            format!("{object} {name:?} is invalid: {sentences}"),
        )
        .about(group, kind, name);
        if let Some(details) = &mut error.details {
            details.causes = errors
                .iter()
                .map(|error| Cause {
                    reason: error.kind.reason().to_owned(),
                    message: error.body(),
                    field: error.path.as_str().to_owned(),
                })
                .collect();
        }
        error
    }

    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut error = Self::new(429, "TooManyRequests", message);
        error.details = Some(Box::new(Details {
            retry_after_seconds: Some(retry_after_seconds),
            ..Details::default()
        }));
        error
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {}", message.into()),
        )
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    pub fn timeout(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut error = Self::new(504, "Timeout", message);
        error.details = Some(Box::new(Details {
            retry_after_seconds: Some(retry_after_seconds),
            ..Details::default()
        }));
        error
    }

    /// A revision that has not happened, not even after a wait. Clients know it by its cause, and list anew.
    pub fn too_large_version(requested: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {requested}, current: {current}");
        let mut error = Self::timeout(message, 1);
        error.details.get_or_insert_default().causes.push(Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        });
        error
    }

    /// The object on the wire.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        // Faults that have no name on the wire have an empty one here.
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        if let Some(continues) = &self.continues {
            status["metadata"]["continue"] = continues.as_str().into();
        }
        status
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ] {
            if !text.is_empty() {
                map.insert(key.to_owned(), text.clone().into());
            }
        }
        if !self.causes.is_empty() {
            let causes: Vec<Value> = self
                .causes
                .iter()
                .map(|cause| {
                    let mut value = json!({"reason": cause.reason, "message": cause.message});
                    if !cause.field.is_empty() {
                        value["field"] = cause.field.clone().into();
                    }
                    value
                })
                .collect();
            map.insert("causes".to_owned(), causes.into());
        }
        if let Some(seconds) = self.retry_after_seconds {
            map.insert("retryAfterSeconds".to_owned(), seconds.into());
        }
        map.into()
    }
}
