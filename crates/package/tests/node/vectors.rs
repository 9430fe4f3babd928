//! The open examples of activations, replayed on this machine: what every path finally leads to.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

const EXAMPLES: &str = include_str!("../vectors/activations.json");

#[test]
fn the_open_examples_end_as_they_say() {
    let examples: Value = serde_json::from_str(EXAMPLES).expect("JSON");
    let examples = examples.as_object().expect("examples by name");
    assert!(examples.len() >= 8);
    for (name, example) in examples {
        replay(name, example);
    }
}

fn texts(value: &Value) -> Vec<&str> {
    let items = value.as_array().expect("a list").iter();
    items.map(|item| item.as_str().expect("a text")).collect()
}

fn replay(name: &str, example: &Value) {
    let machine = crate::machine::Machine::native().with_places(|places| {
        let base = places.root.parent().expect("a folder").to_owned();
        places.repository = base.join("repo");
        places.unit_dir.clone_from(&places.root);
    });
    for (path, content) in example["repo"].as_object().expect("files") {
        machine.write(&format!("repo/{path}"), content.as_str().expect("a text"));
    }
    for role in texts(&example["roles"]) {
        machine.write(&format!("conf/roles/{role}"), "");
    }
    let activated = machine.activate(&texts(&example["ids"]));
    let code = u64::from(activated.is_err());
    assert_eq!(
        Value::from(code),
        example["activate"]["rc"],
        "{name}: {activated:?}"
    );
    let active = machine.node.active().expect("read");
    let (code, stdout) = match &active {
        None => (1, String::new()),
        Some(manifest) => {
            let ids = manifest.ids();
            let lines: Vec<&str> = ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
            (0, lines.concat())
        }
    };
    assert_eq!(Value::from(code), example["active"]["rc"], "{name}");
    assert_eq!(Value::from(stdout), example["active"]["stdout"], "{name}");
    let base = machine.base.as_str();
    for (path, content) in example["files"].as_object().expect("files") {
        let expected = content.as_str().expect("a text").replace("<D>", base);
        assert_eq!(
            machine.content(&format!("root/{path}")),
            expected,
            "{name}: {path}"
        );
    }
    if active.is_some() {
        compare(name, &machine.base, &example["root"]);
        machine.assert_sound();
    } else {
        // The original leaves debris behind a failure. We do not.
        let left = ["lock"].map(str::to_owned);
        assert_eq!(machine.names("root"), left, "{name}");
    }
    let state = machine.files.names(&machine.path("state"));
    let state: Vec<String> = match state {
        Ok(names) => names.into_iter().map(|entry| entry.name).collect(),
        Err(_) => Vec::new(),
    };
    assert_eq!(state, texts(&example["state"]), "{name}");
}

/// Compares what each expected path is, and that nothing else is in the folders it names.
fn compare(name: &str, base: &Utf8Path, expected: &Value) {
    let root = base.join("root");
    let place = |path: &str| -> Utf8PathBuf {
        // The pointer file has the name of the original's folder.
        if path == "active" || path.starts_with("active/") {
            return root.join("current").join(path);
        }
        root.join(path)
    };
    let mut folders: BTreeMap<Utf8PathBuf, Vec<String>> = BTreeMap::new();
    for (path, kind) in expected.as_object().expect("paths") {
        let found = place(path.trim_end_matches('/'));
        match kind.as_str().expect("a text") {
            "dir" => {
                assert!(found.is_dir(), "{name}: {path}");
                folders.entry(found).or_default();
            }
            "file" => assert!(found.is_file(), "{name}: {path}"),
            link => {
                let target = link.trim_start_matches("-> ").replace("<D>", base.as_str());
                let leads = found.canonicalize_utf8().expect("it leads somewhere");
                let target = Utf8Path::new(&target).canonicalize_utf8().expect("there");
                assert_eq!(leads, target, "{name}: {path}");
                let direct = found.read_link_utf8().expect("a link");
                assert!(direct.is_absolute(), "{name}: {path} is {direct}");
            }
        }
        if let Some((folder, entry)) = path.trim_end_matches('/').rsplit_once('/') {
            folders.entry(place(folder)).or_default().push(entry.into());
        }
    }
    for (folder, mut entries) in folders {
        let mut found: Vec<String> = folder
            .read_dir_utf8()
            .expect("listed")
            .map(|entry| entry.expect("an entry").file_name().to_owned())
            .collect();
        found.sort();
        entries.sort();
        assert_eq!(found, entries, "{name}: {folder}");
    }
}
