//! Reads `buildinfo.json`. All its mistakes are found in one pass; nothing outside of the file is looked
//! at, so what a recipe says is known before anything is fetched or hashed.

use std::collections::BTreeMap;

use camino::Utf8Path;
use transom_model::Os;
use transom_model::package::{GroupName, PackageName, UserName, Variant};

use super::source::is_absolute;
use super::{DEFAULT_IMAGE, InstallRule, Recipe, Source, read_source};
use crate::fault::{Faults, Place, nearest};
use crate::hash::Item;
use crate::info::{Requirement, scalar};
use crate::json::{Json, Kind};

/// The fields that a recipe may have.
const FIELDS: [&str; 11] = [
    "sources",
    "single_source",
    "requires",
    "docker",
    "build_script",
    "install",
    "environment",
    "state_directory",
    "username",
    "group",
    "sysctl",
];

/// Fields of the id that the tree decides, never the recipe.
const RESERVED: [&str; 5] = [
    "name",
    "variant",
    "pkgpanda_version",
    "extra_source",
    "build",
];

/// What was read, and what was wrong with it.
#[derive(Debug)]
pub struct Reading {
    /// None when there is a fault.
    pub recipe: Option<Recipe>,
    /// What is required, with the place of each in the list and its line: also when there is a fault.
    pub requires: Vec<Required>,
    pub faults: Faults,
    pub warnings: Faults,
}

/// A requirement and where it is written.
#[derive(Debug, Clone)]
pub struct Required {
    pub requirement: Requirement,
    pub at: usize,
    pub line: usize,
}

/// Where a recipe stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// The file's name for messages.
    pub(crate) file: &'a Utf8Path,
    pub(crate) folder: &'a Utf8Path,
    pub(crate) name: &'a PackageName,
    pub(crate) variant: &'a Variant,
}

impl Reading {
    /// Nothing was read, because the fault is elsewhere.
    pub(crate) fn empty() -> Self {
        Self {
            recipe: None,
            requires: Vec::new(),
            faults: Faults::default(),
            warnings: Faults::default(),
        }
    }
}

/// Reads a recipe's text. `file` is how messages call it, `folder` where the package is.
pub fn read_recipe(
    text: &str,
    file: &Utf8Path,
    folder: &Utf8Path,
    name: &PackageName,
    variant: &Variant,
) -> Reading {
    let origin = Origin {
        file,
        folder,
        name,
        variant,
    };
    let mut faults = Faults::default();
    match Json::parse(text) {
        Ok(json) => read_fields(&json, origin),
        Err(error) => {
            faults.push(crate::fault::Fault::of_syntax(file, &error));
            Reading {
                recipe: None,
                requires: Vec::new(),
                faults,
                warnings: Faults::default(),
            }
        }
    }
}

/// Reads the fields of a recipe that was parsed already.
pub(crate) fn read_fields(json: &Json, origin: Origin<'_>) -> Reading {
    let mut reader = Reader {
        place: Place::file(origin.file),
        faults: Faults::default(),
        warnings: Faults::default(),
        required: Vec::new(),
    };
    let recipe = match json.as_object() {
        Some(fields) => reader.recipe(fields, origin),
        None => {
            let fault = reader.place.wrong_type("an object", json);
            reader.faults.push(fault);
            None
        }
    };
    Reading {
        recipe: recipe.filter(|_| reader.faults.is_empty()),
        requires: reader.required,
        faults: reader.faults,
        warnings: reader.warnings,
    }
}

struct Reader<'a> {
    place: Place<'a>,
    faults: Faults,
    warnings: Faults,
    required: Vec<Required>,
}

type Fields = BTreeMap<String, Json>;

impl Reader<'_> {
    fn recipe(&mut self, fields: &Fields, origin: Origin<'_>) -> Option<Recipe> {
        self.check_keys(fields);
        let sources = self.sources(fields, origin.name);
        let requires = self.requires(fields);
        let docker = self
            .text(fields, "docker")
            .unwrap_or_else(|| DEFAULT_IMAGE.to_owned());
        let script = self.script(fields);
        let install = self.install(fields);
        let environment = self.scalars(fields, "environment");
        let state_directory = self.state_directory(fields);
        let username = self.text(fields, "username");
        let username: Option<UserName> = username.and_then(|text| {
            text.parse()
                .map_err(|error| self.refuse(fields, "username", &error))
                .ok()
        });
        let group = self.text(fields, "group").filter(|text| !text.is_empty());
        let group: Option<GroupName> = group.and_then(|text| {
            text.parse()
                .map_err(|error| self.refuse(fields, "group", &error))
                .ok()
        });
        let sysctl = self.sysctl(fields);
        let hashed = self.hashed(fields);
        Some(Recipe {
            name: origin.name.clone(),
            variant: origin.variant.clone(),
            // The script that is found in the folder decides; see the tree.
            os: Os::Linux,
            folder: origin.folder.to_owned(),
            sources,
            requires: requires?,
            docker,
            script,
            install,
            environment,
            state_directory,
            username,
            group,
            sysctl,
            hashed,
        })
    }

    fn at(&self, fields: &Fields, key: &str) -> Place<'_> {
        match fields.get(key) {
            Some(value) => self.place.key(key, value),
            None => self.place.clone(),
        }
    }

    fn refuse(&mut self, fields: &Fields, key: &str, error: &dyn std::fmt::Display) {
        let fault = self.at(fields, key).fault(error.to_string());
        self.faults.push(fault);
    }

    fn check_keys(&mut self, fields: &Fields) {
        for (key, value) in fields {
            let place = self.place.key(key, value);
            let fault = if RESERVED.contains(&key.as_str()) {
                place
                    .fault("is reserved: it becomes part of the package's id by itself")
                    .hint("leave it out")
            } else if key == "version_extra" {
                place
                    .fault("cannot be used: it would put a `-` into the version, which no version may have")
                    .hint("leave it out; pkgpanda fails on it, too")
            } else if FIELDS.contains(&key.as_str()) {
                continue;
            } else {
                let fault = place.fault("is no field of a recipe");
                match nearest(key, FIELDS) {
                    Some(near) => fault.hint(format!("did you mean `{near}`?")),
                    None => fault.hint(format!("the fields are {}", FIELDS.join(", "))),
                }
            };
            self.faults.push(fault);
        }
    }

    fn sources(&mut self, fields: &Fields, name: &PackageName) -> BTreeMap<String, Source> {
        let given = match (fields.get("sources"), fields.get("single_source")) {
            (Some(_), Some(single)) => {
                let fault = self
                    .place
                    .key("single_source", single)
                    .fault("stands beside `sources`: a recipe has one of them");
                self.faults.push(fault);
                return BTreeMap::new();
            }
            (Some(sources), None) => {
                let place = self.place.key("sources", sources);
                let Some(map) = sources.as_object() else {
                    let fault = place.wrong_type("an object of sources by name", sources);
                    self.faults.push(fault);
                    return BTreeMap::new();
                };
                map.iter()
                    .map(|(name, source)| (name.clone(), place.key(name, source), source))
                    .collect()
            }
            (None, Some(single)) => {
                let place = self.place.key("single_source", single);
                vec![(name.to_string(), place, single)]
            }
            (None, None) => Vec::new(),
        };
        let mut sources = BTreeMap::new();
        for (name, place, json) in given {
            if let Err(error) = Os::Linux.check_file_name(&name) {
                self.faults
                    .push(place.fault(format!("a source's name becomes a folder's name: {error}")));
                continue;
            }
            if let Some(source) = read_source(&place, json, &mut self.faults, &mut self.warnings) {
                sources.insert(name, source);
            }
        }
        sources
    }

    fn requires(&mut self, fields: &Fields) -> Option<Vec<Requirement>> {
        let Some(value) = fields.get("requires") else {
            return Some(Vec::new());
        };
        let place = self.place.key("requires", value);
        let Some(items) = value.as_list() else {
            let fault = place.wrong_type("a list of package names", value);
            self.faults.push(fault);
            return None;
        };
        let mut requires = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match Requirement::read(item) {
                Ok(requirement) => {
                    self.required.push(Required {
                        requirement: requirement.clone(),
                        at,
                        line: item.line,
                    });
                    requires.push(requirement);
                }
                Err(error) => self
                    .faults
                    .push(place.item(at, item).fault(error.to_string())),
            }
        }
        Some(requires)
    }

    fn text(&mut self, fields: &Fields, key: &str) -> Option<String> {
        let value = fields.get(key)?;
        let text = value.as_text().map(str::to_owned);
        if text.is_none() {
            let fault = self.place.key(key, value).wrong_type("a text", value);
            self.faults.push(fault);
        }
        text
    }

    fn script(&mut self, fields: &Fields) -> Option<String> {
        let script = self.text(fields, "build_script")?;
        if script.is_empty() || is_absolute(&script) {
            let fault = self
                .at(fields, "build_script")
                .fault("must name a file in the package's folder");
            self.faults.push(fault);
            return None;
        }
        Some(script)
    }

    fn install(&mut self, fields: &Fields) -> Vec<InstallRule> {
        let Some(value) = fields.get("install") else {
            return Vec::new();
        };
        let place = self.place.key("install", value);
        let Some(items) = value.as_list() else {
            let fault = place.wrong_type("a list of rules", value);
            self.faults.push(fault);
            return Vec::new();
        };
        let mut rules = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let plain = serde_json::Value::from(&Item::from(item));
            match serde_json::from_value(plain) {
                Ok(rule) => rules.push(rule),
                Err(error) => {
                    let fault = place.item(at, item).fault(error.to_string());
                    self.faults.push(fault.hint(
                        "a rule has `copy` and `to`, and may have `mode`, `strip` and `exclude`",
                    ));
                }
            }
        }
        rules
    }

    /// Texts by name; numbers and truth values become the text that pkgpanda writes for them.
    fn scalars(&mut self, fields: &Fields, key: &str) -> BTreeMap<String, String> {
        let Some(value) = fields.get(key) else {
            return BTreeMap::new();
        };
        let place = self.place.key(key, value);
        scalars(&place, value, &mut self.faults)
    }

    fn sysctl(&mut self, fields: &Fields) -> BTreeMap<String, BTreeMap<String, String>> {
        let Some(value) = fields.get("sysctl") else {
            return BTreeMap::new();
        };
        let place = self.place.key("sysctl", value);
        let Some(services) = value.as_object() else {
            let fault = place.wrong_type("an object of settings by service", value);
            self.faults.push(fault);
            return BTreeMap::new();
        };
        services
            .iter()
            .map(|(service, settings)| {
                let place = place.key(service, settings);
                (service.clone(), scalars(&place, settings, &mut self.faults))
            })
            .collect()
    }

    fn state_directory(&mut self, fields: &Fields) -> bool {
        match fields.get("state_directory") {
            None => false,
            Some(value) => match &value.kind {
                Kind::Bool(truth) => *truth,
                Kind::Number(number) if number == "0" || number == "1" => {
                    let warning = self
                        .place
                        .key("state_directory", value)
                        .fault("should be true or false; the number gives the package another id");
                    let truth = number == "1";
                    self.warnings.push(warning);
                    truth
                }
                _ => {
                    let fault = self
                        .place
                        .key("state_directory", value)
                        .wrong_type("true or false", value);
                    self.faults.push(fault);
                    false
                }
            },
        }
    }

    /// The fields that enter the id as they are. Each must have a hash.
    fn hashed(&mut self, fields: &Fields) -> BTreeMap<String, Item> {
        const AS_WRITTEN: [&str; 6] = [
            "environment",
            "state_directory",
            "username",
            "group",
            "sysctl",
            "install",
        ];
        let mut hashed = BTreeMap::new();
        hashed.insert("environment".to_owned(), Item::Object(BTreeMap::new()));
        hashed.insert("state_directory".to_owned(), Item::Bool(false));
        for key in AS_WRITTEN {
            let Some(value) = fields.get(key) else {
                continue;
            };
            let item = match key {
                // A list of several objects has no hash of its own: its text has.
                "install" => Item::text(serde_json::Value::from(&Item::from(value)).to_string()),
                _ => Item::from(value),
            };
            if let Err(error) = item.hash() {
                self.refuse(fields, key, &error);
            }
            hashed.insert(key.to_owned(), item);
        }
        hashed
    }
}

fn scalars(place: &Place<'_>, value: &Json, faults: &mut Faults) -> BTreeMap<String, String> {
    let Some(entries) = value.as_object() else {
        faults.push(place.wrong_type("an object of texts by name", value));
        return BTreeMap::new();
    };
    let mut texts = BTreeMap::new();
    for (key, value) in entries {
        match scalar(value) {
            Some(text) => {
                texts.insert(key.clone(), text);
            }
            None => faults.push(place.key(key, value).wrong_type("a text", value)),
        }
    }
    texts
}
