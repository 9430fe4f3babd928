//! Trees are resolved to the ids that pkgpanda gives, or refused with all that is wrong.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use super::*;

/// No image is known, and no source can be fetched.
struct Nothing;

impl Images for Nothing {
    fn id(&self, _name: &str) -> Option<String> {
        None
    }
}

impl Sources for Nothing {
    fn commit(&self, _repository: &Utf8Path) -> Result<String, SourceFailure> {
        Err(SourceFailure::NoRepository)
    }

    fn check_out(
        &self,
        _source: &crate::recipe::Source,
        base: &Utf8Path,
        _cache: &Utf8Path,
        destination: &Utf8Path,
    ) -> Result<(), SourceFailure> {
        // The tests' upstream lies beside the tree.
        let failed = |error: std::io::Error| SourceFailure::CheckOut(error.to_string());
        let upstream = base.join("../upstream");
        for file in [
            "treeinfo.json",
            "a/build",
            "a/buildinfo.json",
            "b/build",
            "b/buildinfo.json",
        ] {
            let to = destination.join("packages").join(file);
            fs_err::create_dir_all(to.parent().unwrap()).map_err(failed)?;
            fs_err::copy(upstream.join(file), to).map_err(failed)?;
        }
        Ok(())
    }
}

const NOTHING: Surroundings<'static> = Surroundings {
    images: &Nothing,
    sources: &Nothing,
};

struct TestTree {
    _folder: tempfile::TempDir,
    path: Utf8PathBuf,
}

impl TestTree {
    fn new(files: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        let tree = Self {
            _folder: folder,
            path: path.join("packages"),
        };
        fs_err::create_dir_all(&tree.path).unwrap();
        for (name, content) in files.as_object().unwrap() {
            match content {
                Value::String(text) => tree.write(name, text),
                json => tree.write(name, &json.to_string()),
            }
        }
        tree
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path.join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    fn resolve(&self, variant: &str) -> Resolved<Tree> {
        let folder = SourceFolder::read(&self.path, &Nothing);
        folder.resolve(&variant.parse().unwrap(), &NOTHING)
    }

    fn tree(&self) -> Tree {
        self.resolve("default").outcome.unwrap()
    }

    /// The faults as lines.
    fn faults(&self) -> Vec<String> {
        match self.resolve("default").outcome {
            Ok(_) => Vec::new(),
            Err(faults) => faults.iter().map(ToString::to_string).collect(),
        }
    }

    fn names(&self) -> Vec<String> {
        let tree = self.tree();
        tree.packages
            .iter()
            .map(|package| package.recipe.name.to_string())
            .collect()
    }
}

/// A tree of one package `a` with this recipe.
fn one(recipe: &Value) -> TestTree {
    TestTree::new(&json!({"treeinfo.json": {}, "a/build": "", "a/buildinfo.json": recipe}))
}

#[test]
fn the_open_examples_are_resolved_or_refused_as_they_say() {
    let examples: Value =
        serde_json::from_str(include_str!("../../tests/vectors/trees.json")).unwrap();
    let examples = examples.as_object().unwrap();
    assert!(examples.len() > 10);
    for (name, example) in examples {
        let tree = TestTree::new(&example["files"]);
        if example["result"]["ok"] == json!(false) {
            assert!(!tree.faults().is_empty(), "{name}");
            continue;
        }
        for (variant, expected) in example["result"]["trees"].as_object().unwrap() {
            let resolved = tree.resolve(variant).outcome.unwrap();
            assert_eq!(resolved.bootstrap, expected["bootstrap"], "{name}");
            let ids: BTreeSet<&str> = resolved.packages.iter().map(|it| it.id.as_str()).collect();
            let expected: BTreeSet<&str> = expected["packages"]
                .as_array()
                .unwrap()
                .iter()
                .map(|id| id.as_str().unwrap())
                .collect();
            assert_eq!(ids, expected, "{name}");
        }
    }
}

#[test]
fn requirements_come_first_then_names() {
    let tree = TestTree::new(&json!({
        "treeinfo.json": {},
        "a/build": "", "a/buildinfo.json": {"requires": ["z", "c"]},
        "b/build": "", "b/buildinfo.json": {},
        "c/build": "", "c/buildinfo.json": {"requires": ["y"]},
        "y/build": "", "y/buildinfo.json": {},
        "z/build": "", "z/buildinfo.json": {},
    }));
    assert_eq!(tree.names(), ["y", "c", "z", "a", "b"]);
    let packages = tree.tree().packages;
    let a = packages
        .iter()
        .find(|it| it.recipe.name.as_str() == "a")
        .unwrap();
    assert_eq!(a.requires.len(), 2);
    assert_eq!(a.closure.len(), 3);
}

#[test]
fn every_wrong_field_is_reported_at_once_with_its_line() {
    let tree = TestTree::new(&json!({
        "treeinfo.json": {},
        "a/build": "",
        "a/buildinfo.json": "{\n\"username\": \"root\",\n\"groop\": 1,\n\"name\": \"a\",\n\
             \"requires\": [5, \"b--1\"],\n\"state_directory\": \"yes\",\n\
             \"sources\": {\"x\": {\"kind\": \"svn\"}}}",
        "b/buildinfo.json": {"docker": 1},
    }));
    insta::assert_snapshot!(tree.faults().join("\n"), @"
    a/buildinfo.json:2: `username`: `root` is not a user name for a package: it is `dcos_` and then some of `a-z0-9_`
    a/buildinfo.json:3: `groop`: is no field of a recipe
    a/buildinfo.json:4: `name`: is reserved: it becomes part of the package's id by itself
    a/buildinfo.json:5: `requires[0]`: must be a package's name, or an object with `name` and `variant`
    a/buildinfo.json:5: `requires[1]`: `b--1` is a package id: a package is required by its name, or by name and variant
    a/buildinfo.json:6: `state_directory`: must be true or false, and is a text
    a/buildinfo.json:7: `sources.x.kind`: `svn` is no kind of source; known are git, git_local, url, url_extract
    b/buildinfo.json:1: `docker`: must be a text, and is a number
    ");
}

#[test]
fn a_recipe_with_a_mistake_is_refused() {
    let source = |source: Value| json!({"single_source": source});
    let commit = "1".repeat(40);
    let cases = [
        (json!([]), "must be an object"),
        (json!({"variant": ""}), "reserved"),
        (json!({"pkgpanda_version": ""}), "reserved"),
        (json!({"extra_source": ""}), "reserved"),
        (json!({"build": ""}), "reserved"),
        (json!({"version_extra": "1"}), "cannot be used"),
        (
            json!({"sources": {}, "single_source": {}}),
            "beside `sources`",
        ),
        (json!({"sources": []}), "must be an object"),
        (
            json!({"sources": {"a/b": {"kind": "url", "url": "x://y", "sha1": commit}}}),
            "folder",
        ),
        (source(json!("x")), "must be an object"),
        (source(json!({"kind": 1})), "must be a text"),
        (
            source(json!({"kind": "git", "git": "u", "ref": "0".repeat(40), "ref_origin": "m"})),
            "commit",
        ),
        (
            source(json!({"kind": "git", "git": "u", "ref": commit, "ref_origin": "m", "x": 1})),
            "nothing else",
        ),
        (
            source(json!({"kind": "git", "git": "u", "ref": 5, "ref_origin": "m"})),
            "must be a text",
        ),
        (source(json!({"kind": "git_local"})), "must have `rel_path`"),
        (
            source(json!({"kind": "git_local", "rel_path": "/abs"})),
            "relative",
        ),
        (
            source(json!({"kind": "git_local", "rel_path": r"C:\abs"})),
            "relative",
        ),
        (
            source(json!({"kind": "git_local", "rel_path": "../no"})),
            "git repository",
        ),
        (
            source(json!({"kind": "url", "url": "nothing", "sha1": commit})),
            "://",
        ),
        (
            source(json!({"kind": "url", "url": "x://y"})),
            "must have `sha1`",
        ),
        (
            source(json!({"kind": "url_extract", "url": "x://y", "sha1": commit, "md5": ""})),
            "nothing else",
        ),
        (json!({"environment": []}), "must be an object"),
        (json!({"environment": {"A": null}}), "must be a text"),
        (json!({"state_directory": 2}), "must be true or false"),
        (json!({"state_directory": 1.0}), "must be true or false"),
        (json!({"username": null}), "must be a text"),
        (json!({"username": "dcos_a\n"}), "user name"),
        (json!({"group": "A"}), "group name"),
        (json!({"group": 1}), "must be a text"),
        (json!({"requires": "b"}), "must be a list"),
        (json!({"requires": ["b"]}), "there is no package `b`"),
        (
            json!({"requires": [{"name": "a"}]}),
            "must be a package's name",
        ),
        (
            json!({"requires": [{"name": "a", "variant": "x"}]}),
            "no variant `x`",
        ),
        (json!({"requires": ["a"]}), "circle: a → a"),
        (json!({"build_script": "no"}), "no build script"),
        (json!({"build_script": "/bin/true"}), "must name a file"),
        (json!({"build_script": 1}), "must be a text"),
        (json!({"docker": null}), "must be a text"),
        (json!({"sysctl": {"s": 1}}), "must be an object"),
        (json!({"install": [{"copy": "a"}]}), "missing field `to`"),
        (json!({"install": {}}), "must be a list"),
    ];
    for (recipe, expected) in cases {
        let faults = one(&recipe).faults();
        let found = faults.iter().any(|fault| fault.contains(expected));
        assert!(found, "{recipe}: {faults:?}");
    }
}

#[test]
fn what_the_original_lets_pass_has_the_same_id_and_a_warning() {
    let truth = one(&json!({"state_directory": true})).tree();
    let tree = one(&json!({"state_directory": 1}));
    let number = tree.resolve("default");
    assert!(
        number
            .warnings
            .iter()
            .any(|it| it.path == "state_directory")
    );
    let number = number.outcome.unwrap();
    assert!(number.packages[0].recipe.state_directory);
    assert_ne!(number.packages[0].id, truth.packages[0].id);
    assert_eq!(number.packages[0].build_ids["state_directory"], json!(1));
}

#[test]
fn an_image_that_nobody_knows_is_warned_of() {
    let resolved = one(&json!({"docker": "img"})).resolve("default");
    assert!(resolved.outcome.is_ok());
    assert!(resolved.warnings[0].message.contains("`img`"));
}

#[test]
fn names_of_variant_files_are_checked() {
    for name in [
        "a/.buildinfo.json",
        "a/xbuildinfo.json",
        ".treeinfo.json",
        "xtreeinfo.json",
    ] {
        let tree = one(&json!({}));
        tree.write(name, "{}");
        assert_eq!(tree.faults().len(), 1, "{name}: {:?}", tree.faults());
    }
}

#[test]
fn files_that_are_no_json_are_mistakes_even_outside_of_the_tree() {
    let tree = TestTree::new(&json!({
        "treeinfo.json": {"core_package_list": ["a"]},
        "a/build": "", "a/buildinfo.json": {},
        "b/buildinfo.json": "{",
        "c/buildinfo.json": {"unknown": 1},
    }));
    let faults = tree.faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].contains("b/buildinfo.json:1: not JSON"),
        "{faults:?}"
    );
}

#[test]
fn trees_with_a_mistake_are_refused() {
    let cases = [
        (json!([]), "must be an object"),
        (json!({"exclude": "a"}), "must be a list"),
        (json!({"exclude": [1]}), "must be a package name"),
        (json!({"exclude": [".a"]}), "not a package name"),
        (json!({"exclude": null}), "must be a list"),
        (
            json!({"core_package_list": ["a"], "exclude": ["a"]}),
            "listed here and in `exclude`",
        ),
        (
            json!({"bootstrap_package_list": ["a"], "exclude": ["a"]}),
            "listed here and in `exclude`",
        ),
        (
            json!({"core_package_list": ["zz"]}),
            "there is no package `zz`",
        ),
        (json!({"variants": []}), "must be an object"),
        (json!({"variants": {"a": 1}}), "must name a variant"),
        (json!({"variants": {"a": "v"}}), "no variant `v`"),
        (
            json!({"exclude": ["b"]}),
            "`b` is needed here, and excluded",
        ),
        (
            json!({"core_package_list": ["b"], "bootstrap_package_list": ["a"]}),
            "bootstrap",
        ),
        (json!({"packages": []}), "is no field of a tree"),
        (
            json!({"variants": {"b": "v"}}),
            "`b` is needed in the variant `default`",
        ),
    ];
    for (info, expected) in cases {
        let tree = TestTree::new(&json!({
            "treeinfo.json": info,
            "a/build": "", "a/buildinfo.json": {"requires": ["b"]},
            "b/build": "", "b/buildinfo.json": {},
            "b/v.build": "", "b/v.buildinfo.json": {},
        }));
        let faults = tree.faults();
        let found = faults.iter().any(|fault| fault.contains(expected));
        assert!(found, "{info}: {faults:?}");
    }
}

#[test]
fn circles_are_named() {
    let tree = TestTree::new(&json!({
        "treeinfo.json": {},
        "a/build": "", "a/buildinfo.json": {"requires": ["b"]},
        "b/build": "", "b/buildinfo.json": {"requires": ["c"]},
        "c/build": "", "c/buildinfo.json": {"requires": ["a"]},
    }));
    let faults = tree.faults();
    assert_eq!(faults.len(), 1);
    assert!(faults[0].contains("a → b → c → a"), "{faults:?}");
}

#[test]
fn a_chain_of_thousands_needs_no_deep_stack() {
    let count = 3000;
    let tree = TestTree::new(&json!({"treeinfo.json": {}}));
    for at in 0..count {
        tree.write(&format!("p{at}/build"), "");
        let requires = if at + 1 < count {
            format!(r#"{{"requires": ["p{}"]}}"#, at + 1)
        } else {
            String::new()
        };
        tree.write(&format!("p{at}/buildinfo.json"), &requires);
    }
    let folder = SourceFolder::read(&tree.path, &Nothing);
    let mut faults = Faults::default();
    let info = treeinfo::read(&folder, &Variant::DEFAULT, &mut faults).unwrap();
    let members = members::of_tree(&folder, &info, &mut faults, &mut Faults::default()).unwrap();
    assert_eq!(members.order.len(), count);
    assert_eq!(members.order[0].0.as_str(), format!("p{}", count - 1));
}

#[test]
fn variants_are_chosen_by_the_tree() {
    let tree = TestTree::new(&json!({
        "treeinfo.json": {}, "v.treeinfo.json": {"variants": {"a": "v", "b": "v"}},
        "a/build": "", "a/buildinfo.json": {}, "a/v.build": "x",
        "a/v.buildinfo.json": {"requires": [{"name": "b", "variant": "v"}]},
        "b/build": "", "b/buildinfo.json": {}, "b/v.build": "", "b/v.buildinfo.json": {},
    }));
    assert_eq!(tree.names(), ["a", "b"]);
    let variant = tree.resolve("v").outcome.unwrap();
    let names: Vec<_> = variant
        .packages
        .iter()
        .map(|it| it.recipe.name.as_str())
        .collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(
        variant.packages[1].recipe.script.as_deref(),
        Some("v.build")
    );
    let none = tree.resolve("none").outcome.unwrap_err();
    assert_eq!(
        none[0].hint.as_deref(),
        Some("choose with `--variant`: v, default")
    );
}

#[test]
fn mistakes_of_other_trees_are_found_too() {
    let tree = one(&json!({}));
    tree.write("v.treeinfo.json", r#"{"core_package_list": ["zz"]}"#);
    let folder = SourceFolder::read(&tree.path, &Nothing);
    assert!(folder.resolve(&Variant::DEFAULT, &NOTHING).outcome.is_ok());
    assert_eq!(folder.faults_of_other_trees(&Variant::DEFAULT).len(), 1);
}

#[test]
fn the_script_that_is_there_tells_the_system() {
    use transom_model::Os;
    let os = |files: Value| {
        let mut all = json!({"treeinfo.json": {}});
        all.as_object_mut()
            .unwrap()
            .extend(files.as_object().unwrap().clone());
        TestTree::new(&all).tree().packages[0].recipe.os
    };
    assert_eq!(
        os(json!({"a/buildinfo.json": {}, "a/build": ""})),
        Os::Linux
    );
    assert_eq!(
        os(json!({"a/buildinfo.json": {}, "a/build.ps1": ""})),
        Os::Windows
    );
    let tree = TestTree::new(&json!({
        "windows.treeinfo.json": {"variants": {"a": "windows"}},
        "a/windows.buildinfo.json": {"install": [{"copy": "extra/x", "to": "bin/"}]},
    }));
    let package = &tree.resolve("windows").outcome.unwrap().packages[0];
    assert_eq!(package.recipe.os, Os::Windows);
    assert_eq!(package.recipe.script, None);
    assert!(package.build_ids.get("build").is_none());
    assert!(package.build_ids.get("docker").is_none());
}

#[test]
fn a_script_outside_of_the_tree_is_refused() {
    let tree = one(&json!({"build_script": "../../outside"}));
    fs_err::write(tree.path.join("../outside"), "").unwrap();
    assert!(tree.faults()[0].contains("not in the tree"));
    let tree = one(&json!({"build_script": "../shared"}));
    tree.write("shared", "");
    assert!(tree.faults().is_empty());
}

#[test]
fn extra_is_hashed_by_relative_path_and_content() {
    let tree = one(&json!({}));
    let without = tree.tree().packages[0].id.clone();
    fs_err::create_dir_all(tree.path.join("a/extra/empty")).unwrap();
    tree.write("a/extra/sub/file", "hello");
    let package = tree.tree().packages.remove(0);
    assert_ne!(package.id, without);
    // H({"empty": "", "sub/file": sha1("hello")}), computed by hand.
    let file = crate::hash::sha1_hex(b"hello");
    let text = format!(
        "empty={},sub/file={}",
        crate::hash::sha1_hex(b""),
        crate::hash::sha1_hex(file.as_bytes())
    );
    assert_eq!(
        package.extra_source,
        Some(crate::hash::sha1_hex(text.as_bytes()))
    );
}

#[test]
fn an_empty_extra_still_counts() {
    let tree = one(&json!({}));
    fs_err::create_dir_all(tree.path.join("a/extra")).unwrap();
    assert_eq!(
        tree.tree().packages[0].extra_source.as_deref(),
        Some("da39a3ee5e6b4b0d3255bfef95601890afd80709")
    );
    let tree = one(&json!({}));
    tree.write("a/extra", "a file");
    assert!(tree.faults()[0].contains("not a folder"));
}

#[test]
fn packages_here_shadow_those_of_the_upstream_tree() {
    let tree = TestTree::new(&json!({
        "treeinfo.json": {},
        "upstream.json": {"kind": "git_local", "rel_path": "../upstream"},
        "a/build": "ours", "a/buildinfo.json": {"requires": ["b"]},
        "../upstream/treeinfo.json": {},
        "../upstream/a/build": "theirs", "../upstream/a/buildinfo.json": {},
        "../upstream/b/build": "theirs", "../upstream/b/buildinfo.json": {},
    }));
    assert_eq!(tree.names(), ["b", "a"]);
    let packages = tree.tree().packages;
    assert!(packages[0].recipe.folder.as_str().contains("upstream"));
    assert!(!packages[1].recipe.folder.as_str().contains("upstream"));
}

#[test]
fn an_upstream_without_a_kind_is_refused() {
    let tree = one(&json!({}));
    tree.write("upstream.json", "");
    assert!(tree.faults()[0].contains("upstream.json"));
}

#[test]
fn a_folder_that_is_not_there_is_one_fault() {
    let folder = SourceFolder::read(Utf8Path::new("/does/not/exist"), &Nothing);
    let faults = folder
        .resolve(&Variant::DEFAULT, &NOTHING)
        .outcome
        .unwrap_err();
    assert!(
        faults.iter().any(|fault| fault.hint.is_some()),
        "{faults:?}"
    );
}

#[test]
fn the_graph_is_the_same_in_every_form() {
    let tree = TestTree::new(&json!({
        "treeinfo.json": {},
        "a/build": "", "a/buildinfo.json": {"requires": ["b"]},
        "b/build": "", "b/buildinfo.json": {},
    }));
    let graph = Graph::of(&tree.tree().packages);
    assert_eq!(graph.edges.len(), 1);
    assert!(graph.render_dot().contains("\"a\" -> \"b\";"));
    assert!(graph.render_text().contains("  requires b--"));
    let picture = graph.render_svg();
    assert_eq!(picture.matches("<title>").count(), 2);
    assert_eq!(picture.matches("<path").count(), 1);
}
