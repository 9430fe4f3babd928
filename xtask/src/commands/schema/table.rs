//! Joins messages, definitions and Go's facts to the lines of the table.
//!
//! A fact that cannot be matched stops the generator: a new version of Kubernetes must be looked at, not
//! guessed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};

use super::definitions::Definition;
use super::go::{GoField, GoTypes};
use super::messages::{Container, Kind, Marks, Message, MessageField};
use super::plain;

const HEAD: &str = "\
# The built-in types of Kubernetes. Written by `cargo xtask generate`; do not edit.
#
# A type is its name, and a line for each field: name in JSON, number in protobuf (`2.1`: number 1 of an
# embedded message that is number 2), type, and what else is known. `Name` alone is of the same package.
";

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

const EVENT: &str = "io.k8s.api.core.v1.Event";

/// The packages whose types are all in the table.
const PACKAGES: [&str; 19] = [
    "io.k8s.api.apps.v1",
    "io.k8s.api.authentication.v1",
    "io.k8s.api.authorization.v1",
    "io.k8s.api.autoscaling.v1",
    "io.k8s.api.autoscaling.v2",
    "io.k8s.api.batch.v1",
    "io.k8s.api.certificates.v1",
    "io.k8s.api.coordination.v1",
    "io.k8s.api.core.v1",
    "io.k8s.api.discovery.v1",
    "io.k8s.api.events.v1",
    "io.k8s.api.networking.v1",
    "io.k8s.api.node.v1",
    "io.k8s.api.policy.v1",
    "io.k8s.api.rbac.v1",
    "io.k8s.api.scheduling.v1",
    "io.k8s.api.storage.v1",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    META,
];

/// Objects that have a protobuf form but no `OpenAPI` definition.
const UNDEFINED: [&str; 2] = ["PartialObjectMetadata", "PartialObjectMetadataList"];

/// Messages that are something else than an object in JSON: the word for them in the table.
const SPECIAL: [(&str, &str); 10] = [
    ("io.k8s.apimachinery.pkg.apis.meta.v1.time", "time"),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.microtime",
        "microtime",
    ),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.fieldsv1", "any"),
    ("io.k8s.apimachinery.pkg.api.resource.quantity", "quantity"),
    (
        "io.k8s.apimachinery.pkg.util.intstr.intorstring",
        "intorstring",
    ),
    ("io.k8s.apimachinery.pkg.runtime.rawextension", "any"),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.json",
        "any",
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.jsonschemapropsorarray",
        "schema-or-list",
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.jsonschemapropsorbool",
        "schema-or-bool",
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.jsonschemapropsorstringarray",
        "schema-or-strings",
    ),
];

/// Types and fields that are newer than the messages, in the form of the table and without numbers. They are
/// alpha, so that no client sends them in protobuf.
const NEWER: &str = include_str!("newer.txt");

/// Fields of messages that the definitions do not have any more.
const REMOVED: [(&str, &str); 1] = [("io.k8s.api.core.v1.PodSpec", "workload_ref")];

/// Constants of Go that defaults refer to.
const CONSTANTS: [(&str, &str); 2] = [
    ("ref(AzureDataDiskCachingReadWrite)", "\"ReadWrite\""),
    ("ref(AzureSharedBlobDisk)", "\"Shared\""),
];

pub(super) fn join(
    messages: &HashMap<String, Message>,
    definitions: &HashMap<String, Definition>,
    go: &GoTypes,
) -> Result<String> {
    let mut join = Join {
        messages,
        definitions,
        go,
        wanted: roots(messages, definitions),
        types: BTreeMap::new(),
    };
    while let Some(name) = join.wanted.pop_first() {
        join.add(&name).with_context(|| format!("in {name}"))?;
    }
    let mut text = HEAD.to_owned();
    for (name, lines) in &join.types {
        text.push('\n');
        text.push_str(name);
        text.push_str(lines);
    }
    Ok(text)
}

fn roots(
    messages: &HashMap<String, Message>,
    definitions: &HashMap<String, Definition>,
) -> BTreeSet<String> {
    let undefined = messages.values().filter(|message| {
        message
            .name
            .strip_prefix(META)
            .is_some_and(|name| UNDEFINED.contains(&&name[1..]))
            || is_list(message)
    });
    definitions
        .values()
        .map(|definition| definition.name.as_str())
        .chain(undefined.map(|message| message.name.as_str()))
        .filter(|name| {
            name.rsplit_once('.')
                .is_some_and(|(package, _)| PACKAGES.contains(&package))
                && special(&name.to_lowercase()).is_none()
        })
        .map(str::to_lowercase)
        .collect()
}

/// The newer fields of a type, by name.
fn newer(name: &str) -> BTreeMap<String, String> {
    NEWER
        .lines()
        .skip_while(|line| *line != name)
        .skip(1)
        .map_while(|line| line.strip_prefix("  ")?.split_once(' '))
        .map(|(field, facts)| (field.to_owned(), format!(" {facts}")))
        .collect()
}

/// A list of objects, which `OpenAPI` defines but `k8s-openapi` makes with one generic type.
fn is_list(message: &Message) -> bool {
    message.name.ends_with("List")
        && message.fields.len() == 2
        && message.fields[0].name == "metadata"
        && message.fields[1].name == "items"
        && message.fields[1].container == Container::List
}

fn special(name: &str) -> Option<&'static str> {
    SPECIAL
        .into_iter()
        .find(|(special, _)| *special == name)
        .map(|(_, word)| word)
}

struct Join<'a> {
    messages: &'a HashMap<String, Message>,
    definitions: &'a HashMap<String, Definition>,
    go: &'a GoTypes,
    wanted: BTreeSet<String>,
    types: BTreeMap<String, String>,
}

impl Join<'_> {
    fn message(&self, name: &str) -> Result<&Message> {
        self.messages
            .get(name)
            .with_context(|| format!("no message {name}"))
    }

    /// The spelling of a type's name that clients know.
    fn spelling(&self, name: &str) -> Result<&str> {
        match self.definitions.get(name) {
            Some(definition) => Ok(&definition.name),
            None => Ok(&self.message(name)?.name),
        }
    }

    fn add(&mut self, name: &str) -> Result<()> {
        let name_shown = self.spelling(name)?.to_owned();
        if self.types.contains_key(&name_shown) {
            return Ok(());
        }
        let none = Message::default();
        let message = match self.messages.get(name) {
            Some(message) => message,
            None => &none,
        };
        let mut fields = newer(&name_shown);
        match self.definitions.get(name) {
            Some(definition) => {
                self.collect(definition, message, None, &mut fields)?;
                for field in &definition.fields {
                    if !fields.contains_key(field) {
                        // Kind and version are in the envelope of protobuf, not in the message.
                        if field != "kind" && field != "apiVersion" {
                            bail!("{field} has no number");
                        }
                        fields.insert(field.clone(), " 0 string".to_owned());
                    }
                }
            }
            None => self.collect_undefined(message, &mut fields)?,
        }
        let mut lines = String::new();
        if message.marks.get("structType") == Some("atomic") {
            lines.push_str(" atomic");
        }
        lines.push('\n');
        for (field, facts) in fields {
            writeln!(lines, "  {field}{facts}")?;
        }
        self.types.insert(name_shown, lines);
        Ok(())
    }

    fn collect(
        &mut self,
        definition: &Definition,
        message: &Message,
        outer: Option<u32>,
        fields: &mut BTreeMap<String, String>,
    ) -> Result<()> {
        for field in &message.fields {
            if REMOVED.contains(&(definition.name.as_str(), field.name.as_str())) {
                continue;
            }
            let Some(name) = definition.json_name(&field.name) else {
                let (Kind::Message(embedded), None) = (&field.kind, outer) else {
                    bail!("{} is not in the definition", field.name);
                };
                let messages = self.messages;
                let embedded = messages.get(embedded).context("no such message")?;
                self.collect(definition, embedded, Some(field.number), fields)?;
                continue;
            };
            let go = self
                .go
                .get(&definition.name)
                .and_then(|fields| fields.get(name))
                .cloned()
                .unwrap_or_default();
            // `k8s-openapi` calls more required than upstream does: what it takes for a default, and
            // every metadata, though only that of an event is.
            let required = definition.required.iter().any(|required| required == name)
                && field.marks.get("optional").is_none()
                && (name != "metadata" || definition.name == EVENT);
            let facts = self.facts(&definition.name, field, outer, required, &go)?;
            fields.insert(name.to_owned(), facts);
        }
        Ok(())
    }

    fn collect_undefined(
        &mut self,
        message: &Message,
        fields: &mut BTreeMap<String, String>,
    ) -> Result<()> {
        for name in ["apiVersion", "kind"] {
            fields.insert(name.to_owned(), " 0 string".to_owned());
        }
        for field in &message.fields {
            if plain(&field.name) != field.name {
                bail!("the JSON name of {} is not known", field.name);
            }
            let required = field.name == "items";
            let facts = self.facts(&message.name, field, None, required, &GoField::default())?;
            fields.insert(field.name.clone(), facts);
        }
        Ok(())
    }

    fn facts(
        &mut self,
        owner: &str,
        field: &MessageField,
        outer: Option<u32>,
        required: bool,
        go: &GoField,
    ) -> Result<String> {
        let mut facts = match outer {
            Some(outer) => format!(" {outer}.{}", field.number),
            None => format!(" {}", field.number),
        };
        let (word, wrapped) = self.type_word(owner, &field.kind)?;
        let container = match field.container {
            Container::One => "",
            Container::List => "[]",
            Container::Map => "{}",
        };
        write!(facts, " {container}{word}")?;
        for (there, mark) in [
            (wrapped, "wrapped"),
            (required, "required"),
            (go.pointer, "pointer"),
            (go.always, "always"),
        ] {
            if there {
                write!(facts, " {mark}")?;
            }
        }
        marks(&field.marks, &mut facts)?;
        if let Some(name) = &go.name {
            write!(facts, " go={name}")?;
        }
        Ok(facts)
    }

    /// The word for a type, and whether it is a list inside a message of its own.
    fn type_word(&mut self, owner: &str, kind: &Kind) -> Result<(String, bool)> {
        let name = match kind {
            Kind::Scalar(name) => return Ok((name.clone(), false)),
            Kind::Message(name) => name,
        };
        if let Some(word) = special(name) {
            return Ok((word.to_owned(), false));
        }
        let message = self.message(name)?;
        if let [field] = &message.fields[..]
            && field.name == "items"
            && field.kind == Kind::Scalar("string".to_owned())
        {
            return Ok(("[]string".to_owned(), true));
        }
        let shown = self.spelling(name)?.to_owned();
        self.wanted.insert(name.clone());
        let owner_package = owner.rsplit_once('.').map(|(package, _)| package);
        match shown.rsplit_once('.') {
            Some((package, short)) if Some(package) == owner_package => {
                Ok((short.to_owned(), false))
            }
            _ => Ok((shown, false)),
        }
    }
}

/// What upstream's marks say of merging and defaults.
fn marks(marks: &Marks, facts: &mut String) -> Result<()> {
    match marks.get("listType") {
        Some("map") => {
            let keys: Vec<&str> = marks.all("listMapKey").collect();
            write!(facts, " list=map:{}", keys.join(","))?;
        }
        Some("set") => facts.push_str(" list=set"),
        Some("atomic") | None => {}
        Some(other) => bail!("unknown list type {other}"),
    }
    if let Some(strategy) = marks.get("patchStrategy") {
        write!(facts, " patch={strategy}")?;
        if let Some(key) = marks.get("patchMergeKey") {
            write!(facts, ":{key}")?;
        }
    }
    if ["structType", "mapType"]
        .into_iter()
        .any(|mark| marks.get(mark) == Some("atomic"))
    {
        facts.push_str(" atomic");
    }
    if let Some(default) = marks.get("default") {
        let constant = CONSTANTS.into_iter().find(|(name, _)| *name == default);
        let default = constant.map_or(default, |(_, value)| value);
        serde_json::from_str::<serde_json::Value>(default)
            .with_context(|| format!("the default {default} is not JSON"))?;
        write!(facts, " default={default}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str, fields: Vec<MessageField>) -> (String, Message) {
        let message = Message {
            name: name.to_owned(),
            fields,
            ..Message::default()
        };
        (name.to_lowercase(), message)
    }

    fn field(name: &str, number: u32, kind: Kind) -> MessageField {
        MessageField {
            name: name.to_owned(),
            number,
            container: Container::One,
            kind,
            marks: Marks::default(),
        }
    }

    fn definition(name: &str, fields: &[&str]) -> (String, Definition) {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        let definition = Definition {
            name: name.to_owned(),
            fields: texts(fields),
            required: texts(&["name", "metadata"]),
        };
        (name.to_lowercase(), definition)
    }

    fn text() -> Kind {
        Kind::Scalar("string".to_owned())
    }

    fn of(name: &str) -> Kind {
        Kind::Message(format!("io.k8s.api.core.v1.{name}"))
    }

    #[test]
    fn embedded_fields_are_one_level_up_with_both_numbers() {
        let messages = HashMap::from([
            message(
                "io.k8s.api.core.v1.Volume",
                vec![
                    field("name", 1, text()),
                    field("volume_source", 2, of("source")),
                ],
            ),
            message(
                "io.k8s.api.core.v1.Source",
                vec![field("empty_dir", 3, of("dir"))],
            ),
            message("io.k8s.api.core.v1.Dir", Vec::new()),
        ]);
        let definitions = HashMap::from([
            definition("io.k8s.api.core.v1.Volume", &["emptyDir", "kind", "name"]),
            definition("io.k8s.api.core.v1.Dir", &[]),
        ]);
        let go = HashMap::from([(
            "io.k8s.api.core.v1.Volume".to_owned(),
            HashMap::from([(
                "emptyDir".to_owned(),
                GoField {
                    pointer: true,
                    ..GoField::default()
                },
            )]),
        )]);
        let table = join(&messages, &definitions, &go).unwrap();

        assert_eq!(
            table.strip_prefix(HEAD).unwrap(),
            "\nio.k8s.api.core.v1.Dir\n\
             \nio.k8s.api.core.v1.Volume\n  \
             emptyDir 2.3 Dir pointer\n  \
             kind 0 string\n  \
             name 1 string required\n"
        );
    }

    #[test]
    fn a_field_that_cannot_be_matched_stops_the_generator() {
        let messages = HashMap::from([message(
            "io.k8s.api.core.v1.Thing",
            vec![field("old", 1, text())],
        )]);
        let removed = HashMap::from([definition("io.k8s.api.core.v1.Thing", &[])]);
        let added = HashMap::from([definition("io.k8s.api.core.v1.Thing", &["old", "new"])]);

        assert!(join(&messages, &removed, &GoTypes::new()).is_err());
        assert!(join(&messages, &added, &GoTypes::new()).is_err());
    }
}
