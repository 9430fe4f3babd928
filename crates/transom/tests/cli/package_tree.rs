//! `package id|tree|graph`: what tools read, and what people see who made mistakes.

use serde_json::{Value, json};

use crate::harness::{Outcome, Sandbox};

/// The open examples, also replayed inside of the library.
const EXAMPLES: &str = include_str!("../../../package/tests/vectors/trees.json");

fn with_tree(files: &Value) -> Sandbox {
    let sandbox = Sandbox::new();
    for (name, content) in files.as_object().unwrap() {
        let text = match content {
            Value::String(text) => text.clone(),
            json => json.to_string(),
        };
        sandbox.write(&format!("tree/{name}"), &text);
    }
    sandbox
}

fn tree(sandbox: &Sandbox, more: &[&str]) -> Outcome {
    let mut arguments = vec!["package", "tree", "--packages", "tree", "-o", "json"];
    arguments.extend(more);
    sandbox.run(arguments)
}

#[test]
fn the_open_examples_hold_for_the_binary() {
    let examples: Value = serde_json::from_str(EXAMPLES).unwrap();
    for (name, example) in examples.as_object().unwrap() {
        let sandbox = with_tree(&example["files"]);
        if example["result"]["ok"] == json!(false) {
            let outcome = tree(&sandbox, &[]);
            assert_eq!(outcome.code(), 1, "{name}");
            let answer: Value = serde_json::from_str(&outcome.stdout).unwrap();
            let faults = answer["faults"].as_array().unwrap();
            assert!(!faults.is_empty(), "{name}");
            for fault in faults {
                assert!(fault["file"].is_string(), "{name}: {fault}");
                assert!(fault["path"].is_string(), "{name}: {fault}");
                assert!(!fault["message"].as_str().unwrap().is_empty(), "{name}");
            }
            continue;
        }
        for (variant, expected) in example["result"]["trees"].as_object().unwrap() {
            let outcome = tree(&sandbox, &["--variant", variant]);
            assert_eq!(outcome.code(), 0, "{name}: {}", outcome.stdout);
            let answer: Value = serde_json::from_str(&outcome.stdout).unwrap();
            assert_eq!(answer["variant"], json!(variant));
            assert_eq!(answer["bootstrap"], expected["bootstrap"], "{name}");
            let mut ids: Vec<&Value> = answer["packages"]
                .as_array()
                .unwrap()
                .iter()
                .map(|package| &package["id"])
                .collect();
            ids.sort_by_key(|id| id.as_str().unwrap());
            let expected: Vec<&Value> = expected["packages"].as_array().unwrap().iter().collect();
            assert_eq!(ids, expected, "{name}");
        }
    }
}

#[test]
fn what_is_required_stands_before_what_requires_it() {
    let sandbox = with_tree(&json!({
        "treeinfo.json": {},
        "a/build": "", "a/buildinfo.json": {"requires": ["b"]},
        "b/build": "", "b/buildinfo.json": {},
    }));
    let answer: Value = serde_json::from_str(&tree(&sandbox, &[]).stdout).unwrap();
    assert_eq!(answer["packages"][0]["name"], "b");
    assert_eq!(answer["packages"][1]["requires"], json!(["b"]));
}

#[test]
fn people_see_all_mistakes_with_file_line_and_a_way_forward() {
    let sandbox = with_tree(&json!({
        "treeinfo.json": {},
        "a/buildinfo.json": "{\n  \"requires\": [\"bb\"],\n  \"usernam\": \"dcos_a\"\n}",
        "b/build": "", "b/buildinfo.json": {},
    }));
    let outcome = sandbox.run(["package", "tree", "--packages", "tree"]);
    assert_eq!(outcome.code(), 1);
    insta::assert_snapshot!(outcome.stdout, @"
    a/buildinfo.json:2: `requires[0]`: there is no package `bb`
      hint: did you mean `b`?
    a/buildinfo.json:3: `usernam`: is no field of a recipe
      hint: did you mean `username`?
    ");
    assert!(outcome.stderr.contains("2 mistakes"), "{}", outcome.stderr);
}

#[test]
fn a_mistake_in_another_tree_of_the_folder_is_reported_unless_one_is_chosen() {
    let sandbox = with_tree(&json!({
        "treeinfo.json": {}, "v.treeinfo.json": {"core_package_list": "a"},
        "a/build": "", "a/buildinfo.json": {},
    }));
    assert_eq!(tree(&sandbox, &[]).code(), 1);
    assert_eq!(tree(&sandbox, &["--variant", "default"]).code(), 0);
    assert_eq!(tree(&sandbox, &["--variant", "v"]).code(), 1);
}

#[test]
fn a_tree_is_found_from_within() {
    let sandbox = with_tree(&json!({
        "packages/treeinfo.json": {},
        "packages/a/build": "", "packages/a/buildinfo.json": {},
    }));
    let names = |folder: &str| {
        let mut command = sandbox.command();
        command.current_dir(sandbox.path().join(folder));
        sandbox.finish(command.args(["package", "tree", "-o", "name"]))
    };
    assert!(names("tree/packages/a").stdout.starts_with("a--"));
    assert_eq!(names("tree").stdout, names("tree/packages/a").stdout);
}

#[test]
fn an_id_can_be_asked_for_without_a_tree() {
    let sandbox = with_tree(&json!({
        "a/build": "", "a/buildinfo.json": {"requires": ["b"]},
        "b/build": "", "b/buildinfo.json": {"docker": "img"},
    }));
    let ids = sandbox.run(["package", "id", "b", "--packages", "tree", "-o", "name"]);
    assert_eq!(ids.stdout, "b--0b01958c35d6b5a2cc0f37f5b753749be42ee319\n");
    let all = sandbox.run(["package", "id", "--packages", "tree", "-o", "json"]);
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(
        all[1]["build_ids"]["requires"][0],
        "b--0b01958c35d6b5a2cc0f37f5b753749be42ee319"
    );
    let none = sandbox.run(["package", "id", "zz", "--packages", "tree"]);
    assert_eq!(none.code(), 1);
    assert!(none.stdout.contains("there is no package `zz`"));
}

#[test]
fn the_graph_has_four_forms() {
    let sandbox = with_tree(&json!({
        "treeinfo.json": {},
        "a/build": "", "a/buildinfo.json": {"requires": ["b"]},
        "b/build": "", "b/buildinfo.json": {},
    }));
    let graph = |more: &[&str]| {
        let mut arguments = vec!["package", "graph", "--packages", "tree"];
        arguments.extend(more);
        sandbox.run(arguments).stdout
    };
    assert!(graph(&[]).contains("  requires b--"));
    assert!(graph(&["--format", "dot"]).starts_with("digraph"));
    assert!(graph(&["--format", "svg"]).starts_with("<svg"));
    let data: Value = serde_json::from_str(&graph(&["-o", "json"])).unwrap();
    assert_eq!(data["edges"].as_array().unwrap().len(), 1);
}
