//! The tests that Wine cannot run: marked in the source, counted here, so that nobody forgets them.

use anyhow::Result;

use crate::tidy::source::{Code, Tree};
use crate::workspace::Workspace;

const MARK: &str = "needs real Windows";
/// How a test binary with a harness of its own names the reason.
const OWN_HARNESS: &str = "Some(\"needs real Windows";

/// The tests marked `#[ignore = "needs real Windows: …"]`, or so in a harness of their own, as
/// `file:line: reason`.
pub(crate) fn marked_tests(workspace: &Workspace) -> Result<Vec<String>> {
    Ok(marked_in(&Tree::of_checkout(&workspace.root)?))
}

fn marked_in(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust_files() {
        for (line, reason) in Code::of(&file.text).ignore_reasons(&file.text) {
            if let Some(reason) = reason.filter(|reason| reason.starts_with(MARK)) {
                found.push(format!("{}:{line}: {reason}", file.path));
            }
        }
        let in_own_harness = file.path.contains("/tests/");
        for (index, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            if in_own_harness && line.starts_with(OWN_HARNESS) {
                let reason = line.trim_start_matches("Some(\"").trim_end_matches("\"),");
                found.push(format!("{}:{}: {reason}", file.path, index + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harness_of_its_own_has_marks_of_its_own() {
        let text = "(\n    \"a\",\n    Some(\"needs real Windows: limits\"),\n    a,\n),\n";
        let tree = Tree::made_of(&[("crates/host/tests/process/windows.rs", text)]);
        assert_eq!(
            marked_in(&tree),
            ["crates/host/tests/process/windows.rs:3: needs real Windows: limits"]
        );
    }

    #[test]
    fn only_tests_with_the_mark_are_counted() {
        let tree = Tree::made_of(&[(
            "crates/host/src/a.rs",
            "#[ignore = \"needs real Windows: junctions\"]\nfn a() {}\n\
             #[ignore = \"slow\"]\nfn b() {}\n// #[ignore = \"needs real Windows\"]\n",
        )]);
        assert_eq!(
            marked_in(&tree),
            ["crates/host/src/a.rs:1: needs real Windows: junctions"]
        );
    }
}
