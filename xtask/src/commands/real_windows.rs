//! The tests that Wine cannot run: marked in the source, counted here, so that nobody forgets them.

use anyhow::Result;

use crate::tidy::source::{Code, Tree};
use crate::workspace::Workspace;

const MARK: &str = "needs real Windows";

/// The tests marked `#[ignore = "needs real Windows: …"]`, as `file:line: reason`.
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
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

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
