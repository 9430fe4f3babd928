//! `pkginfo.json`: what a package tells the node that activates it. Read from packages of anyone's
//! making, so every field is checked; what is not known is left alone, as pkgpanda does.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use transom_model::package::{
    GroupName, IdentifierError, PackageId, PackageName, UserName, Variant,
};

/// The file's name in a package.
pub const FILE_NAME: &str = "pkginfo.json";

/// What a package asks of the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PackageInfo {
    pub requires: Vec<Requirement>,
    /// For the environment files of the node.
    pub environment: BTreeMap<String, String>,
    /// Whether the node keeps a folder for the package's state.
    pub state_directory: bool,
    /// The account that the package's services run as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<UserName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupName>,
    /// Kernel settings by service, then by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, BTreeMap<String, String>>,
}

/// Another package that must be there, in a recipe and on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    pub name: PackageName,
    pub variant: Variant,
}

/// Why a `pkginfo.json` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InfoError {
    #[error("{FILE_NAME} is not JSON")]
    Syntax(#[source] serde_json::Error),
    #[error("{FILE_NAME} must be an object, and is {found}")]
    NotAnObject { found: &'static str },
    #[error("`{path}` in {FILE_NAME} must be {expected}, and is {found}")]
    Type {
        path: String,
        expected: &'static str,
        found: &'static str,
    },
    #[error("`{path}` in {FILE_NAME} is wrong")]
    Identifier {
        path: String,
        source: IdentifierError,
    },
    #[error("`requires` in {FILE_NAME} names the package id `{id}`: a package is required by name")]
    RequiredById { id: String },
}

/// Why a requirement cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    #[error("a requirement is a package's name, or an object with `name` and `variant`")]
    Shape,
    #[error("`{id}` is a package id: a package is required by its name, or by name and variant")]
    Id { id: String },
    #[error(transparent)]
    Identifier(#[from] IdentifierError),
}

impl PackageInfo {
    /// Reads the content of a `pkginfo.json`.
    pub fn parse(bytes: &[u8]) -> Result<Self, InfoError> {
        let value: Value = serde_json::from_slice(bytes).map_err(InfoError::Syntax)?;
        let Value::Object(fields) = value else {
            return Err(InfoError::NotAnObject {
                found: kind_of(&value),
            });
        };
        Ok(Self {
            requires: requires(&fields)?,
            environment: scalars(&fields, "environment")?,
            state_directory: truth(&fields, "state_directory")?,
            username: text(&fields, "username")?
                .map(|name| identifier("username", name))
                .transpose()?,
            // The empty text is pkgpanda's way to say none.
            group: text(&fields, "group")?
                .filter(|name| !name.is_empty())
                .map(|name| identifier("group", name))
                .transpose()?,
            sysctl: sysctl(&fields)?,
        })
    }

    /// Writes the file's content: the same for the same values.
    pub fn render(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

impl Requirement {
    pub fn parse(value: &Value) -> Result<Self, RequirementError> {
        let (name, variant) = match value {
            Value::String(name) => (name.as_str(), Variant::DEFAULT),
            Value::Object(fields) => {
                let name = fields.get("name").and_then(Value::as_str);
                let variant = match fields.get("variant") {
                    Some(Value::String(text)) => Some(text.parse()?),
                    Some(Value::Null) => Some(Variant::DEFAULT),
                    _ => None,
                };
                match (name, variant) {
                    (Some(name), Some(variant)) => (name, variant),
                    _ => return Err(RequirementError::Shape),
                }
            }
            _ => return Err(RequirementError::Shape),
        };
        if PackageId::is_shape_of(name) {
            return Err(RequirementError::Id {
                id: name.to_owned(),
            });
        }
        Ok(Self {
            name: name.parse()?,
            variant,
        })
    }
}

impl Serialize for Requirement {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        if self.variant.is_default() {
            return self.name.serialize(serializer);
        }
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("variant", self.variant.as_str())?;
        map.end()
    }
}

/// What a JSON value is, for messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn wrong(path: impl Into<String>, expected: &'static str, value: &Value) -> InfoError {
    InfoError::Type {
        path: path.into(),
        expected,
        found: kind_of(value),
    }
}

fn requires(fields: &Map<String, Value>) -> Result<Vec<Requirement>, InfoError> {
    let Some(value) = fields.get("requires") else {
        return Ok(Vec::new());
    };
    let Value::Array(items) = value else {
        return Err(wrong("requires", "a list", value));
    };
    let read = |(at, item): (usize, &Value)| {
        let path = format!("requires[{at}]");
        Requirement::parse(item).map_err(|error| match error {
            RequirementError::Shape => {
                wrong(path, "a name, or an object with name and variant", item)
            }
            RequirementError::Id { id } => InfoError::RequiredById { id },
            RequirementError::Identifier(source) => InfoError::Identifier { path, source },
        })
    };
    items.iter().enumerate().map(read).collect()
}

/// Texts by name. Numbers and truth values become the text that pkgpanda writes for them.
fn scalars(fields: &Map<String, Value>, path: &str) -> Result<BTreeMap<String, String>, InfoError> {
    let Some(value) = fields.get(path) else {
        return Ok(BTreeMap::new());
    };
    let Value::Object(entries) = value else {
        return Err(wrong(path, "an object", value));
    };
    entries
        .iter()
        .map(|(key, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(true) => "True".to_owned(),
                Value::Bool(false) => "False".to_owned(),
                _ => return Err(wrong(format!("{path}.{key}"), "a text", value)),
            };
            Ok((key.clone(), text))
        })
        .collect()
}

fn sysctl(
    fields: &Map<String, Value>,
) -> Result<BTreeMap<String, BTreeMap<String, String>>, InfoError> {
    let Some(value) = fields.get("sysctl") else {
        return Ok(BTreeMap::new());
    };
    let Value::Object(services) = value else {
        return Err(wrong("sysctl", "an object", value));
    };
    services
        .keys()
        .map(|service| Ok((service.clone(), scalars(services, service)?)))
        .collect()
}

fn truth(fields: &Map<String, Value>, path: &str) -> Result<bool, InfoError> {
    match fields.get(path) {
        None => Ok(false),
        Some(Value::Bool(truth)) => Ok(*truth),
        // Packages that pkgpanda built may hold these.
        Some(Value::Number(number)) if matches!(number.as_u64(), Some(0 | 1)) => {
            Ok(number.as_u64() == Some(1))
        }
        Some(value) => Err(wrong(path, "true or false", value)),
    }
}

fn text<'a>(fields: &'a Map<String, Value>, path: &str) -> Result<Option<&'a str>, InfoError> {
    match fields.get(path) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(value) => Err(wrong(path, "a text", value)),
    }
}

fn identifier<T: std::str::FromStr<Err = IdentifierError>>(
    path: &str,
    text: &str,
) -> Result<T, InfoError> {
    text.parse().map_err(|source| InfoError::Identifier {
        path: path.to_owned(),
        source,
    })
}
