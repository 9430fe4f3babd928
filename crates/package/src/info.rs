//! `pkginfo.json`: what a package tells the node that activates it. Read from packages of anyone's
//! making, so every field is checked; what is not known is left alone, as pkgpanda does.

use std::collections::BTreeMap;

use serde::Serialize;
use transom_model::package::{
    GroupName, IdentifierError, PackageId, PackageName, UserName, Variant,
};

use crate::json::{Json, Kind, SyntaxError};

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
    #[error("{FILE_NAME} is not text")]
    NotText,
    #[error("{FILE_NAME} is not JSON")]
    Syntax(#[source] SyntaxError),
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
    #[error("must be a package's name, or an object with `name` and `variant`")]
    Shape,
    #[error("`{text}` does not name a variant: the default is meant by a package's name alone")]
    DefaultByName { text: String },
    #[error("`{id}` is a package id: a package is required by its name, or by name and variant")]
    Id { id: String },
    #[error(transparent)]
    Identifier(#[from] IdentifierError),
}

impl PackageInfo {
    /// Reads the content of a `pkginfo.json`.
    pub fn parse(bytes: &[u8]) -> Result<Self, InfoError> {
        let text = std::str::from_utf8(bytes).map_err(|_| InfoError::NotText)?;
        let json = Json::parse(text).map_err(InfoError::Syntax)?;
        let Kind::Object(fields) = &json.kind else {
            return Err(InfoError::NotAnObject {
                found: json.describe(),
            });
        };
        Ok(Self {
            requires: requires(fields)?,
            environment: scalars(fields, "environment")?,
            state_directory: truth(fields, "state_directory")?,
            username: text_of(fields, "username")?
                .map(|name| identifier("username", name))
                .transpose()?,
            // The empty text is pkgpanda's way to say none.
            group: text_of(fields, "group")?
                .filter(|name| !name.is_empty())
                .map(|name| identifier("group", name))
                .transpose()?,
            sysctl: sysctl(fields)?,
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
    /// Reads one item of a list of requirements.
    pub fn read(json: &Json) -> Result<Self, RequirementError> {
        let (name, variant) = match &json.kind {
            Kind::Text(name) => (name.as_str(), Variant::DEFAULT),
            Kind::Object(fields) => {
                let name = fields.get("name").and_then(Json::as_text);
                let variant = fields.get("variant").map(read_variant).transpose()?;
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

/// Reads a variant in a file: null is the default, which has no name there.
pub(crate) fn read_variant(json: &Json) -> Result<Variant, RequirementError> {
    match &json.kind {
        Kind::Null => Ok(Variant::DEFAULT),
        Kind::Text(text) => match text.parse::<Variant>()? {
            variant if variant.is_default() => {
                Err(RequirementError::DefaultByName { text: text.clone() })
            }
            variant => Ok(variant),
        },
        _ => Err(RequirementError::Shape),
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

type Fields = BTreeMap<String, Json>;

fn wrong(path: impl Into<String>, expected: &'static str, value: &Json) -> InfoError {
    InfoError::Type {
        path: path.into(),
        expected,
        found: value.describe(),
    }
}

fn requires(fields: &Fields) -> Result<Vec<Requirement>, InfoError> {
    let Some(value) = fields.get("requires") else {
        return Ok(Vec::new());
    };
    let Some(items) = value.as_list() else {
        return Err(wrong("requires", "a list", value));
    };
    let read = |(at, item): (usize, &Json)| {
        let path = format!("requires[{at}]");
        Requirement::read(item).map_err(|error| match error {
            RequirementError::Shape | RequirementError::DefaultByName { .. } => {
                wrong(path, "a name, or an object with name and variant", item)
            }
            RequirementError::Id { id } => InfoError::RequiredById { id },
            RequirementError::Identifier(source) => InfoError::Identifier { path, source },
        })
    };
    items.iter().enumerate().map(read).collect()
}

/// Texts by name. Numbers and truth values become the text that pkgpanda writes for them.
fn scalars(fields: &Fields, path: &str) -> Result<BTreeMap<String, String>, InfoError> {
    let Some(value) = fields.get(path) else {
        return Ok(BTreeMap::new());
    };
    let Some(entries) = value.as_object() else {
        return Err(wrong(path, "an object", value));
    };
    entries
        .iter()
        .map(|(key, value)| match scalar(value) {
            Some(text) => Ok((key.clone(), text)),
            None => Err(wrong(format!("{path}.{key}"), "a text", value)),
        })
        .collect()
}

/// A value as pkgpanda writes it into an environment file.
pub(crate) fn scalar(value: &Json) -> Option<String> {
    match &value.kind {
        Kind::Text(text) => Some(text.clone()),
        Kind::Number(number) => Some(number.clone()),
        Kind::Bool(true) => Some("True".to_owned()),
        Kind::Bool(false) => Some("False".to_owned()),
        Kind::Null | Kind::List(_) | Kind::Object(_) => None,
    }
}

fn sysctl(fields: &Fields) -> Result<BTreeMap<String, BTreeMap<String, String>>, InfoError> {
    let Some(value) = fields.get("sysctl") else {
        return Ok(BTreeMap::new());
    };
    let Some(services) = value.as_object() else {
        return Err(wrong("sysctl", "an object", value));
    };
    services
        .keys()
        .map(|service| Ok((service.clone(), scalars(services, service)?)))
        .collect()
}

fn truth(fields: &Fields, path: &str) -> Result<bool, InfoError> {
    let Some(value) = fields.get(path) else {
        return Ok(false);
    };
    match &value.kind {
        Kind::Bool(truth) => Ok(*truth),
        // Packages that pkgpanda built may hold these.
        Kind::Number(number) if number == "0" || number == "1" => Ok(number == "1"),
        _ => Err(wrong(path, "true or false", value)),
    }
}

fn text_of<'a>(fields: &'a Fields, path: &str) -> Result<Option<&'a str>, InfoError> {
    match fields.get(path) {
        None => Ok(None),
        Some(value) => match &value.kind {
            Kind::Null => Ok(None),
            Kind::Text(text) => Ok(Some(text)),
            _ => Err(wrong(path, "a text", value)),
        },
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        PackageInfo::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn an_empty_object_asks_for_nothing() {
        assert_eq!(PackageInfo::parse(b"{}").unwrap(), PackageInfo::default());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let info = PackageInfo::parse(
            br#"{"requires": ["a", {"name": "b", "variant": "windows"}],
                "environment": {"A": "1", "B": 2, "C": true}, "state_directory": 1,
                "username": "dcos_a", "group": "docker", "sysctl": {"s": {"k": 1}}, "more": []}"#,
        )
        .unwrap();
        assert_eq!(info.environment["C"], "True");
        assert!(info.state_directory);
        assert_eq!(PackageInfo::parse(&info.render().unwrap()).unwrap(), info);
    }

    #[test]
    fn wrong_fields_are_named() {
        for (text, expected) in [
            ("[]", "must be an object"),
            ("{", "not JSON"),
            (r#"{"requires": "a"}"#, "`requires`"),
            (r#"{"requires": [1]}"#, "`requires[0]`"),
            (r#"{"requires": ["a--1"]}"#, "required by name"),
            (r#"{"requires": [{"name": "a"}]}"#, "`requires[0]`"),
            (r#"{"environment": {"A": []}}"#, "`environment.A`"),
            (r#"{"state_directory": "yes"}"#, "`state_directory`"),
            (r#"{"username": "root"}"#, "`username`"),
            (r#"{"group": 5}"#, "`group`"),
            (r#"{"sysctl": {"s": 1}}"#, "`s`"),
        ] {
            let message = refusal(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
        assert!(PackageInfo::parse(b"\xff").is_err());
    }
}
