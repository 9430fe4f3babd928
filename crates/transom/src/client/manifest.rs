//! The objects that files describe. Invariant: all of them have been read, and each has a kind and a name, before
//! anything is done with the first.

use std::io::Read as _;

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use crate::failure::{Advice as _, Exit};

/// The largest file that is read.
const LARGEST: u64 = 64 << 20;
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// How deep folders are walked.
const DEEPEST: usize = 32;

/// Where descriptions are.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Files {
    /// A file, a folder with .yaml, .yml and .json files, or - for the standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<Utf8PathBuf>,

    /// Also the folders in folders
    #[arg(short = 'R', long, requires = "files")]
    recursive: bool,
}

/// The description of one object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) object: Value,
    /// Where it is from, for people.
    pub(crate) source: String,
}

/// What comes before what; what goes away goes in the other direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Namespaces,
    Definitions,
    Rest,
}

impl Manifest {
    /// Its version and its kind.
    pub(crate) fn type_of(&self) -> (&str, &str) {
        let text = |key: &str| self.object[key].as_str().unwrap_or_default();
        (text("apiVersion"), text("kind"))
    }

    /// When it is applied.
    pub(crate) fn stage(&self) -> Stage {
        let (version, kind) = self.type_of();
        match (version.split_once('/').map_or("", |(group, _)| group), kind) {
            ("", "Namespace") => Stage::Namespaces,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Stage::Definitions,
            _ => Stage::Rest,
        }
    }
}

impl Files {
    /// Reads all of them.
    pub(crate) fn read(&self) -> anyhow::Result<Vec<Manifest>> {
        let mut found = Vec::new();
        for path in &self.files {
            if path == "-" {
                let text = bounded("the standard input", std::io::stdin().lock())?;
                parse("the standard input", &text, &mut found)?;
                continue;
            }
            let mut files = Vec::new();
            let found_one = fs_err::metadata(path)
                .with_context(|| format!("could not find `{path}`"))
                .exit(Exit::NotFound)?;
            if found_one.is_dir() {
                walk(path, self.recursive, DEEPEST, &mut files)?;
            } else {
                files.push(path.clone());
            }
            for file in files {
                let text = bounded(file.as_str(), fs_err::File::open(&file)?)?;
                parse(file.as_str(), &text, &mut found)?;
            }
        }
        if found.is_empty() {
            let names: Vec<&str> = self.files.iter().map(|file| file.as_str()).collect();
            return Err(anyhow::anyhow!(
                "there are no objects in {}",
                names.join(", ")
            ))
            .hint("folders are searched for .yaml, .yml and .json files, with -R also below them")
            .exit(Exit::Usage);
        }
        Ok(found)
    }
}

fn bounded(name: &str, from: impl std::io::Read) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = from.take(LARGEST + 1).read_to_string(&mut text);
    read.with_context(|| format!("could not read {name}"))?;
    if text.len() as u64 > LARGEST {
        anyhow::bail!("{name} is larger than {} MiB", LARGEST >> 20);
    }
    Ok(text)
}

/// The files of a folder by name, so that every run sees the same order.
fn walk(
    folder: &Utf8Path,
    recursive: bool,
    deep: usize,
    files: &mut Vec<Utf8PathBuf>,
) -> anyhow::Result<()> {
    let mut entries = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = Utf8PathBuf::try_from(entry?.path())?;
        entries.push(path);
    }
    entries.sort();
    for path in entries {
        if fs_err::metadata(&path)?.is_dir() {
            if recursive && deep == 0 {
                anyhow::bail!("`{path}` is too deep: more than {DEEPEST} folders below the first");
            }
            if recursive {
                walk(&path, recursive, deep - 1, files)?;
            }
        } else if path
            .extension()
            .is_some_and(|ending| ENDINGS.contains(&ending))
        {
            files.push(path);
        }
    }
    Ok(())
}

fn parse(source: &str, text: &str, found: &mut Vec<Manifest>) -> anyhow::Result<()> {
    // Modes of files are written as `0644`, which YAML once read as octal.
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        // Its own causes only repeat it.
        .map_err(|error| anyhow::anyhow!("{error}"))
        .with_context(|| format!("{source} cannot be read"))
        .exit(Exit::Usage)?;
    for (index, document) in documents.into_iter().enumerate() {
        let place = format!("{source}, object {}", index + 1);
        add(place, document, found)?;
    }
    Ok(())
}

/// Adds an object, or those of a list.
fn add(source: String, mut object: Value, found: &mut Vec<Manifest>) -> anyhow::Result<()> {
    let wrong = |what: &str| {
        Err(anyhow::anyhow!("{source}: {what}"))
            .hint("every object has apiVersion, kind and metadata.name")
            .exit(Exit::Usage)
    };
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    if !object.is_object() {
        return wrong("this is no object");
    }
    if !is_text(&object["apiVersion"]) {
        return wrong("there is no apiVersion");
    }
    if !is_text(&object["kind"]) {
        return wrong("there is no kind");
    }
    if object["kind"] == "List" && object["apiVersion"] == "v1" {
        let Value::Array(items) = object["items"].take() else {
            return wrong("there are no items in the list");
        };
        for (index, item) in items.into_iter().enumerate() {
            if item["kind"] == "List" {
                return wrong("there is a list in the list");
            }
            add(format!("{source}, item {}", index + 1), item, found)?;
        }
        return Ok(());
    }
    if !is_text(&object["metadata"]["name"]) {
        return wrong("there is no metadata.name");
    }
    found.push(Manifest { object, source });
    Ok(())
}

/// The name of an object.
pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The namespace that an object names.
pub(crate) fn namespace_of(object: &Value) -> Option<&str> {
    let namespace = object["metadata"]["namespace"].as_str();
    namespace.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        parse("x.yaml", text, &mut found).map_err(|error| error.to_string())?;
        let shown =
            |manifest: Manifest| format!("{} {}", manifest.source, name_of(&manifest.object));
        Ok(found.into_iter().map(shown).collect())
    }

    #[test]
    fn a_file_has_any_number_of_objects() {
        let one =
            |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
        let text = format!("# nothing\n---\n{}---\n---\n{}", one("a"), one("b"));
        assert_eq!(
            read(&text).unwrap(),
            ["x.yaml, object 1 a", "x.yaml, object 2 b"]
        );
        let json = r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"}}]}"#;
        assert_eq!(read(json).unwrap(), ["x.yaml, object 1, item 1 c"]);
        assert_eq!(read("").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn numbers_are_what_kubectl_makes_of_them() {
        let mut found = Vec::new();
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nmode: 0644\nport: '80'\n";
        parse("x.yaml", text, &mut found).unwrap();
        assert_eq!(found[0].object["mode"], 420);
        assert_eq!(found[0].object["port"], "80");
    }

    #[test]
    fn what_is_no_object_is_said_with_its_place() {
        for (text, message) in [
            ("a", "x.yaml, object 1: this is no object"),
            ("kind: Pod", "x.yaml, object 1: there is no apiVersion"),
            ("apiVersion: v1", "x.yaml, object 1: there is no kind"),
            (
                "apiVersion: v1\nkind: Pod",
                "x.yaml, object 1: there is no metadata.name",
            ),
            (
                "apiVersion: v1\nkind: List",
                "x.yaml, object 1: there are no items in the list",
            ),
            (
                "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: []}]",
                "x.yaml, object 1: there is a list in the list",
            ),
            ("a: [", "x.yaml cannot be read"),
            ("a: 1\na: 2", "x.yaml cannot be read"),
        ] {
            assert_eq!(read(text).unwrap_err(), message, "{text}");
        }
    }

    #[test]
    fn folders_are_read_in_the_order_of_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        fs_err::create_dir(path.join("below")).unwrap();
        for name in ["b.yml", "a.json", "notes.txt", "below/c.yaml"] {
            let text = "{apiVersion: v1, kind: Pod, metadata: {name: one}}";
            fs_err::write(path.join(name), text).unwrap();
        }
        let read = |recursive| {
            let files = vec![path.to_owned()];
            let found = Files { files, recursive }.read().unwrap();
            let sources = found.iter().map(|manifest| manifest.source.as_str());
            let short = sources
                .map(|source| source.strip_prefix(path.as_str()).unwrap()[1..].replace('\\', "/"));
            short.collect::<Vec<_>>()
        };
        assert_eq!(read(false), ["a.json, object 1", "b.yml, object 1"]);
        assert_eq!(
            read(true),
            [
                "a.json, object 1",
                "b.yml, object 1",
                "below/c.yaml, object 1"
            ]
        );
    }
}
