//! What is read from a unit file is acted on: a value without a reader outside of the parser would be
//! a promise that the reference page makes and nobody keeps.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

/// Values for people who read the file.
const FOR_PEOPLE: [&str; 1] = ["documentation"];

/// What reads unit files, or only defines what was read.
const PARSER: [&str; 6] = [
    "unit/directives",
    "unit/parse.rs",
    "unit/check.rs",
    "unit/mod.rs",
    "unit/timer.rs",
    "tests",
];

fn source() -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The text of all files that act on units, without white space, so that line breaks do not matter.
fn acting_sources() -> String {
    let mut text = String::new();
    let mut folders = vec![source()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            let name = path.as_str().replace('\\', "/");
            if PARSER.iter().any(|parser| name.ends_with(parser)) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                let content = fs_err::read_to_string(&path).unwrap();
                text.extend(content.chars().filter(|c| !c.is_whitespace()));
                text.push('\n');
            }
        }
    }
    text
}

/// The lines between `opening` and the next closing brace at the margin.
fn block(file: &str, opening: &str) -> Vec<String> {
    let text = fs_err::read_to_string(source().join("unit").join(file)).unwrap();
    let lines: Vec<String> = text
        .lines()
        .skip_while(|line| *line != opening)
        .skip(1)
        .take_while(|line| *line != "}")
        .map(|line| line.trim().to_owned())
        .collect();
    assert!(!lines.is_empty(), "{file} has no `{opening}`");
    lines
}

fn fields(file: &str, structure: &str) -> BTreeSet<String> {
    let field = |line: &String| {
        let (name, _) = line.strip_prefix("pub ")?.split_once(':')?;
        Some(name.to_owned())
    };
    block(file, &format!("pub struct {structure} {{"))
        .iter()
        .filter_map(field)
        .collect()
}

/// Whether `text` has `what` as a whole name, and not only to assign to it.
fn reads(text: &str, what: &str) -> bool {
    text.match_indices(what).any(|(start, _)| {
        let rest = &text[start + what.len()..];
        let is_longer = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_assigned = rest.starts_with('=') && !rest.starts_with("==");
        !is_longer && !is_assigned
    })
}

#[test]
fn every_value_of_a_unit_file_has_a_reader() {
    let text = acting_sources();
    // The names by which each structure goes where it is acted on.
    let structures: [(&str, &str, &[&str]); 6] = [
        (
            "service.rs",
            "Service",
            &["service.", "service(unit).", "self."],
        ),
        (
            "service.rs",
            "ServiceDirectories",
            &["directories.", "directory."],
        ),
        ("timer.rs", "Timer", &["timer."]),
        ("mod.rs", "Unit", &["."]),
        ("mod.rs", "Dependencies", &["."]),
        ("mod.rs", "StartLimit", &["limit."]),
    ];
    let mut unread = Vec::new();
    for (file, structure, receivers) in structures {
        for field in fields(file, structure) {
            let is_read = receivers
                .iter()
                .any(|receiver| reads(&text, &format!("{receiver}{field}")));
            if !is_read && !FOR_PEOPLE.contains(&field.as_str()) {
                unread.push(format!("{structure}::{field}"));
            }
        }
    }
    assert!(unread.is_empty(), "nobody acts on {unread:?}");
}

#[test]
fn every_resource_limit_is_set_by_someone() {
    let text = acting_sources();
    let kinds = block("service.rs", "pub enum Resource {");
    let names = kinds.iter().filter_map(|line| line.strip_suffix(','));
    let unread: Vec<&str> = names
        .filter(|name| !reads(&text, &format!("Resource::{name}")))
        .collect();
    assert!(unread.is_empty(), "nobody sets {unread:?}");
}
