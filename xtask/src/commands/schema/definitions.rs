//! What `k8s-openapi` says of a type: the names of its fields in JSON, and which of them must be there.
//!
//! Its files are generated, one type each, so their indentation can be relied on.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;

use super::plain;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Definition {
    /// Like `io.k8s.api.core.v1.PodSpec`.
    pub(super) name: String,
    pub(super) fields: Vec<String>,
    pub(super) required: Vec<String>,
}

impl Definition {
    /// The name in JSON of what protobuf calls `name`.
    pub(super) fn json_name(&self, name: &str) -> Option<&str> {
        let name = plain(name);
        self.fields
            .iter()
            .find(|field| plain(field) == name)
            .map(String::as_str)
    }
}

/// All definitions below a folder, by their names in lower case.
pub(super) fn read(folder: &Path) -> Result<HashMap<String, Definition>> {
    let mut definitions = HashMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(definition) = parse(&fs_err::read_to_string(path)?) {
                definitions.insert(definition.name.to_lowercase(), definition);
            }
        }
    }
    Ok(definitions)
}

fn parse(text: &str) -> Option<Definition> {
    let name = text
        .lines()
        .find_map(|line| line.trim().strip_suffix(".into()")?.strip_prefix('"'))?
        .strip_suffix('"')?;
    let mut required = text
        .lines()
        .skip_while(|line| *line != "            \"required\": [");
    required.next();
    Some(Definition {
        name: name.to_owned(),
        fields: text.lines().filter_map(property).collect(),
        required: required
            .take_while(|line| !line.ends_with("],"))
            .filter_map(|line| {
                Some(
                    line.trim()
                        .strip_prefix('"')?
                        .strip_suffix("\",")?
                        .to_owned(),
                )
            })
            .collect(),
    })
}

/// `"name": …` at the depth of properties.
fn property(line: &str) -> Option<String> {
    let (name, _) = line
        .strip_prefix("                \"")?
        .split_once("\": ")?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        "io.k8s.api.core.v1.Port".into()
            "properties": {
                "appProtocol": {
                    "description": "words",
                },
                "target": ({
                }),
            },
            "required": [
                "target",
            ],
"#;

    #[test]
    fn properties_and_required_fields_are_found() {
        let definition = parse(TEXT).unwrap();

        assert_eq!(definition.name, "io.k8s.api.core.v1.Port");
        assert_eq!(definition.fields, ["appProtocol", "target"]);
        assert_eq!(definition.required, ["target"]);
        assert_eq!(definition.json_name("app_protocol"), Some("appProtocol"));
        assert_eq!(definition.json_name("app"), None);
    }

    #[test]
    fn a_file_without_a_definition_gives_none() {
        assert_eq!(parse("pub mod v1;\n"), None);
    }
}
