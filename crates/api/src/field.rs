//! Faults in the fields of an object, with the paths, reasons and sentences that upstream uses.
//!
//! Clients read these texts and programs match on them, so their form is part of the interface.

use std::fmt;

use serde_json::Value;

/// Where in an object something is, printed as `spec.containers[0].env[key]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// The path of a field at the top of an object.
    pub fn new(field: &str) -> Self {
        Self(field.to_owned())
    }

    /// A field of what is here.
    #[must_use]
    pub fn child(&self, field: &str) -> Self {
        if self.0.is_empty() {
            Self::new(field)
        } else {
            Self(format!("{}.{field}", self.0))
        }
    }

    /// An item of the list that is here.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// A value of the map that is here.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("<nil>")
        } else {
            f.write_str(&self.0)
        }
    }
}

/// What is wrong with a field. The names on the wire are in [`FieldErrorKind::reason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    TypeInvalid,
    Internal,
}

impl FieldErrorKind {
    /// The `reason` of a cause in a Status.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

/// One fault in one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    pub kind: FieldErrorKind,
    pub path: Path,
    /// What stood there, where that is worth repeating.
    pub value: Option<Value>,
    pub detail: String,
}

impl FieldError {
    fn with(
        kind: FieldErrorKind,
        path: &Path,
        value: Option<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            path: path.clone(),
            value,
            detail: detail.into(),
        }
    }

    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::with(FieldErrorKind::Required, path, None, detail)
    }

    pub fn invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::with(FieldErrorKind::Invalid, path, Some(value.into()), detail)
    }

    pub fn type_invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::with(
            FieldErrorKind::TypeInvalid,
            path,
            Some(value.into()),
            detail,
        )
    }

    pub fn duplicate(path: &Path, value: impl Into<Value>) -> Self {
        Self::with(FieldErrorKind::Duplicate, path, Some(value.into()), "")
    }

    pub fn not_found(path: &Path, value: impl Into<Value>) -> Self {
        Self::with(FieldErrorKind::NotFound, path, Some(value.into()), "")
    }

    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::with(FieldErrorKind::Forbidden, path, None, detail)
    }

    /// Lists the values that would have been right, in the order in which they come.
    pub fn not_supported(path: &Path, value: impl Into<Value>, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = if supported.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", supported.join(", "))
        };
        Self::with(
            FieldErrorKind::NotSupported,
            path,
            Some(value.into()),
            detail,
        )
    }

    pub fn too_long(path: &Path, limit: usize) -> Self {
        Self::with(
            FieldErrorKind::TooLong,
            path,
            None,
            format!("may not be more than {limit} bytes"),
        )
    }

    pub fn too_many(path: &Path, actual: usize, limit: usize) -> Self {
        Self::with(
            FieldErrorKind::TooMany,
            path,
            Some(actual.into()),
            format!("must have at most {limit} items"),
        )
    }

    /// The sentence without the path, as it stands in a cause of a Status.
    pub fn body(&self) -> String {
        let mut body = self.kind.words().to_owned();
        let quotes_value = !matches!(
            self.kind,
            FieldErrorKind::Required
                | FieldErrorKind::Forbidden
                | FieldErrorKind::TooLong
                | FieldErrorKind::Internal
        );
        if quotes_value && let Some(value) = &self.value {
            body.push_str(": ");
            body.push_str(&value.to_string());
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}
