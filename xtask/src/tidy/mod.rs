//! The rules of the code's shape that no compiler checks. Every rule is a function from the tree to its
//! problems, so each is tested on a tree of a few lines.

mod edges;
mod habits;
mod lexer;
mod links;
mod paths;
mod placement;
mod shape;
pub(crate) mod source;

use anyhow::{Result, bail};

use crate::console;
use crate::workspace::Workspace;
use source::Tree;

/// One place that breaks a rule, and the way out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    path: String,
    line: usize,
    what: String,
    fix: &'static str,
}

impl Problem {
    fn new(path: &str, line: usize, what: impl Into<String>, fix: &'static str) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
            fix,
        }
    }
}

/// Checks the checkout and reports every problem.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let tree = Tree::of_checkout(&workspace.root)?;
    let mut problems = Vec::new();
    problems.extend(edges::check(&tree, &edges::of_workspace(workspace)?));
    problems.extend(placement::check(&tree));
    problems.extend(shape::check(&tree));
    problems.extend(habits::check(&tree));
    problems.extend(paths::check(&tree, &paths::workplace(workspace)));
    problems.extend(links::check(&tree));
    problems.sort();
    console::line(&format!("  {}", shape::Sizes::of(&tree)));
    for problem in &problems {
        console::line(&format!(
            "  {}:{}: {}",
            problem.path, problem.line, problem.what
        ));
        console::line(&format!("      fix: {}", problem.fix));
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("tidy found {} problems", problems.len())
}
