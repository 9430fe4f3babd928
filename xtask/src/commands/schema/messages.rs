//! The protobuf messages of `k8s-pb`: their fields, numbers, and the marks that upstream puts into comments.
//!
//! Its files are written by prost and rustfmt: attributes, names and types follow each other in one order.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::package;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// Like `io.k8s.api.core.v1.PodSpec`, but with prost's spelling of abbreviations.
    pub(super) name: String,
    pub(super) marks: Marks,
    pub(super) fields: Vec<MessageField>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct MessageField {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) container: Container,
    pub(super) kind: Kind,
    pub(super) marks: Marks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    One,
    List,
    Map,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// As prost calls it.
    Scalar(String),
    /// The name of the message, in lower case.
    Message(String),
}

/// `+listType=map` and its like, in their order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Marks(Vec<(String, String)>);

impl Marks {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(mark, _)| mark == name)
            .map(|(_, value)| value.as_str())
    }
}

/// All messages of the crate, by their names in lower case.
pub(super) fn read(sources: &Path) -> Result<HashMap<String, Message>> {
    let mut messages = HashMap::new();
    let mut folders = vec![Vec::new()];
    while let Some(modules) = folders.pop() {
        let folder = modules
            .iter()
            .fold(sources.to_owned(), |path, module| path.join(module));
        for entry in fs_err::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() {
                let mut modules: Vec<String> = modules.clone();
                modules.push(name);
                folders.push(modules);
            } else if name == "mod.rs" {
                let text = fs_err::read_to_string(entry.path())?;
                for message in parse(&modules, &text)
                    .with_context(|| format!("in {}", entry.path().display()))?
                {
                    messages.insert(message.name.to_lowercase(), message);
                }
            }
        }
    }
    Ok(messages)
}

fn parse(modules: &[String], text: &str) -> Result<Vec<Message>> {
    let package = package(modules.iter().map(String::as_str));
    let mut messages = Vec::new();
    let mut message: Option<Message> = None;
    let mut marks = Marks::default();
    let mut attribute = None;
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix("///") {
            marks.0.extend(mark(comment));
        } else if let Some(rest) = line.strip_prefix("pub struct ") {
            let name = rest.split([' ', '{']).next().unwrap_or_default();
            let started = Message {
                name: format!("{package}.{name}"),
                marks: std::mem::take(&mut marks),
                fields: Vec::new(),
            };
            if rest.ends_with("{}") {
                messages.push(started);
            } else {
                message = Some(started);
            }
        } else if let Some(rest) = line.strip_prefix("#[prost(") {
            attribute = Some(rest.to_owned());
        } else if let (Some(field), Some(current)) = (line.strip_prefix("pub "), &mut message) {
            let mut field = field.to_owned();
            while !field.ends_with(',') || field.matches('<').count() != field.matches('>').count()
            {
                field.push_str(lines.next().context("a field that does not end")?);
            }
            let attribute = attribute.take().context("a field without a number")?;
            current.fields.push(self::field(
                modules,
                &attribute,
                &field,
                std::mem::take(&mut marks),
            )?);
        } else if line == "}" {
            messages.extend(message.take());
            marks = Marks::default();
        }
    }
    Ok(messages)
}

/// `+name=value` or `+name`, alone in its line.
fn mark(comment: &str) -> Option<(String, String)> {
    let mark = comment.trim().strip_prefix('+')?;
    let (name, value) = mark.split_once('=').unwrap_or((mark, ""));
    name.chars()
        .all(char::is_alphanumeric)
        .then(|| (name.to_owned(), value.to_owned()))
}

fn field(modules: &[String], attribute: &str, text: &str, marks: Marks) -> Result<MessageField> {
    let (name, rust_type) = text.split_once(':').context("a field without a type")?;
    let number = attribute
        .split_once("tag = \"")
        .and_then(|(_, rest)| rest.split('"').next())
        .context("no number")?
        .parse()?;
    let (container, kind) = if let Some(map) = attribute.strip_prefix("btree_map = \"string, ") {
        (Container::Map, map.split('"').next().unwrap_or_default())
    } else {
        let kind = attribute.split([',', ' ']).next().unwrap_or_default();
        let repeated = attribute.contains("repeated");
        (
            if repeated {
                Container::List
            } else {
                Container::One
            },
            kind,
        )
    };
    let kind = match kind {
        "message" => Kind::Message(message_name(modules, rust_type)?.to_lowercase()),
        "string" | "bytes" | "bool" | "int32" | "int64" | "double" => Kind::Scalar(kind.to_owned()),
        other => bail!("{name} is of the unknown kind {other}"),
    };
    Ok(MessageField {
        name: name.trim_start_matches("r#").to_owned(),
        number,
        container,
        kind,
        marks,
    })
}

/// The innermost type of `Option<Box<super::super::v1::Name>>`, with its package.
fn message_name(modules: &[String], rust_type: &str) -> Result<String> {
    let innermost = rust_type
        .split(['<', ',', ' '])
        .map(|part| part.trim_matches(['>', ',', ' ']))
        .rfind(|part| !part.is_empty())
        .context("no type")?;
    let mut place = modules.to_vec();
    let mut parts: Vec<&str> = innermost.split("::").collect();
    let name = parts.pop().context("no name")?;
    for part in parts {
        if part == "super" {
            place.pop();
        } else {
            place.push(part.to_owned());
        }
    }
    Ok(format!(
        "{}.{name}",
        package(place.iter().map(String::as_str))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
/// +structType=atomic
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Port {
    /// words
    /// +listType=map
    /// +listMapKey=a
    /// +listMapKey=b
    #[prost(message, repeated, tag = "3")]
    pub r#type:
        ::prost::alloc::vec::Vec<super::super::meta::v1::Time>,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub data: ::prost::alloc::collections::BTreeMap<String, Vec<u8>>,
}
pub struct Empty {}
"#;

    fn messages() -> Vec<Message> {
        parse(
            &["api".to_owned(), "core".to_owned(), "v1".to_owned()],
            TEXT,
        )
        .unwrap()
    }

    #[test]
    fn fields_have_numbers_kinds_and_marks() {
        let messages = messages();
        let port = &messages[0];
        let list = &port.fields[0];

        assert_eq!(port.name, "io.k8s.api.core.v1.Port");
        assert_eq!(port.marks.get("structType"), Some("atomic"));
        assert_eq!((list.name.as_str(), list.number), ("type", 3));
        assert_eq!(list.container, Container::List);
        assert_eq!(
            list.kind,
            Kind::Message("io.k8s.api.meta.v1.time".to_owned())
        );
        assert_eq!(list.marks.all("listMapKey").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(port.fields[1].container, Container::Map);
        assert_eq!(port.fields[1].kind, Kind::Scalar("bytes".to_owned()));
    }

    #[test]
    fn a_message_without_fields_is_one_too() {
        assert_eq!(messages()[1].name, "io.k8s.api.core.v1.Empty");
    }
}
