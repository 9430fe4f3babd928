//! Several packages: what is there is reused, failures stop what depends on them, and a killed build
//! leaves nothing behind.

use std::time::Duration;

use camino::Utf8Path;
use transom_host::files::{FileError, Files, Native};
use transom_model::Os;
use transom_model::package::PackageId;
use transom_package::build::{Cache, Options, Outcome, Repository};

use super::{SourceTree, read};

/// Packages of one file each, without a script.
fn declare(tree: &SourceTree, name: &str, requires: &str, good: bool) {
    tree.write(&format!("{name}/extra/file"), name);
    let copy = if good { "extra/file" } else { "extra/nothing" };
    let recipe = format!(
        r#"{{"requires": [{requires}], "install": [{{"copy": "{copy}", "to": "share/{name}"}}]}}"#
    );
    tree.write(&format!("{name}/buildinfo.json"), recipe);
}

#[test]
fn what_was_built_is_reused() {
    let tree = SourceTree::new();
    declare(&tree, "a", "", true);
    declare(&tree, "b", r#""a""#, true);
    let first = tree.build(&["b"]).good();
    assert!(matches!(first.outcome("a"), Outcome::Built));
    let again = tree.build(&["b"]).good();
    assert!(matches!(again.outcome("a"), Outcome::Reused));
    assert!(matches!(again.outcome("b"), Outcome::Reused));
    let latest = read(&tree.folder.join("cache/packages/a/latest"));
    assert_eq!(latest, first.package("a").id.as_str());
}

#[test]
fn a_failure_stops_only_what_depends_on_it_if_all_else_shall_go_on() {
    let tree = SourceTree::new();
    declare(&tree, "a", "", false);
    declare(&tree, "b", r#""a""#, true);
    declare(&tree, "c", "", true);
    let options = Options {
        keep_going: true,
        jobs: 1,
        ..Options::default()
    };
    let ran = tree.build_with(&["a", "b", "c"], &options);
    assert!(ran.failure("a").contains("matches no file"));
    assert!(matches!(ran.outcome("b"), Outcome::Skipped { because } if because.name_str() == "a"));
    assert!(matches!(ran.outcome("c"), Outcome::Built));
}

#[test]
fn a_second_build_waits_and_names_the_first() {
    let tree = SourceTree::new();
    let first = tree.cache();
    let mut named = None;
    let told = std::cell::Cell::new(None);
    let error = Cache::open(&tree.folder, Duration::from_millis(50), &|holder| {
        told.set(holder);
    })
    .unwrap_err();
    if let FileError::Locked { holder, .. } = error {
        named = holder;
    }
    assert_eq!(named, Some(std::process::id()));
    assert_eq!(told.get(), Some(std::process::id()));
    drop(first);
    tree.cache();
}

#[test]
fn what_a_killed_build_left_is_swept() {
    let tree = SourceTree::new();
    tree.write("cache/work/old/src/file", "half");
    tree.cache();
    let left = fs_err::read_dir(tree.folder.join("cache/work")).unwrap();
    assert_eq!(left.count(), 0);
}

/// Gives what another tree has built.
struct Elsewhere<'a> {
    tree: &'a SourceTree,
    spoil: bool,
}

impl Repository for Elsewhere<'_> {
    fn fetch(
        &self,
        id: &PackageId,
        os: Os,
        destination: &Utf8Path,
    ) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
        let archive = self.tree.cache().archive(id, os);
        if Native.metadata(&archive).is_err() {
            return Ok(false);
        }
        let mut bytes = fs_err::read(archive)?;
        if self.spoil {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        fs_err::write(destination, bytes)?;
        Ok(true)
    }
}

#[test]
fn what_a_repository_has_is_fetched_and_checked() {
    let (here, there) = (SourceTree::new(), SourceTree::new());
    for tree in [&here, &there] {
        declare(tree, "a", "", true);
    }
    declare(&here, "b", r#""a""#, true);
    there.build(&["a"]).good();
    for spoil in [true, false] {
        let repository = Elsewhere {
            tree: &there,
            spoil,
        };
        let options = Options {
            repository: Some(&repository),
            jobs: 1,
            ..Options::default()
        };
        let ran = here.build_with(&["b"], &options);
        if spoil {
            assert!(ran.failure("a").contains("is not the package"));
        } else {
            let ran = ran.good();
            assert!(matches!(ran.outcome("a"), Outcome::Fetched));
            assert!(matches!(ran.outcome("b"), Outcome::Built));
        }
    }
}
