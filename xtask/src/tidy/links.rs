//! Links between the project's own pages lead somewhere: the file exists, and so does the heading.

use super::Problem;
use super::source::{SourceFile, Tree};

pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    pages(tree)
        .flat_map(|file| {
            links_of(&file.text)
                .into_iter()
                .filter_map(|link| dead(tree, file, link))
        })
        .collect()
}

fn pages(tree: &Tree) -> impl Iterator<Item = &SourceFile> {
    tree.files.iter().filter(|file| {
        std::path::Path::new(&file.path)
            .extension()
            .is_some_and(|end| end == "md")
    })
}

/// The targets of `[text](target)` outside of code, with their lines.
fn links_of(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second piece between backticks is code.
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("](") {
            if before.matches('`').count() % 2 == 0
                && let Some((target, _)) = after.split_once(')')
            {
                links.push((index + 1, target));
            }
            rest = after;
        }
    }
    links
}

fn dead(tree: &Tree, file: &SourceFile, (line, target): (usize, &str)) -> Option<Problem> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let problem = |what: String| {
        Some(Problem::new(
            &file.path,
            line,
            what,
            "correct the link, or write the page",
        ))
    };
    let (path, heading) = match target.split_once('#') {
        Some((path, heading)) => (path, Some(heading)),
        None => (target, None),
    };
    let Some(place) = resolve(file, path) else {
        return problem(format!("`{target}` leads out of the checkout"));
    };
    if !tree.has(&place) {
        return problem(format!("`{target}` leads nowhere"));
    }
    let page = pages(tree).find(|page| page.path == place)?;
    let missing =
        heading.is_some_and(|heading| !headings_of(&page.text).any(|there| there == heading));
    missing.then(|| problem(format!("`{place}` has no such heading: `{target}`")))?
}

/// The path of a link's target, seen from the checkout.
fn resolve(file: &SourceFile, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(file.path.clone());
    }
    let mut parts: Vec<&str> = file
        .folder()
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Headings as anchors: lower case, hyphens for blanks, no punctuation.
fn headings_of(text: &str) -> impl Iterator<Item = String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|character| character.is_alphanumeric() || " -_".contains(*character))
                .map(|character| if character == ' ' { '-' } else { character })
                .collect()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(text: &str) -> Vec<String> {
        let tree = Tree::made_of(&[
            ("docs/guides/a.md", text),
            ("README.md", "# What it is, today\n"),
            ("docs/b.svg", ""),
        ]);
        check(&tree)
            .into_iter()
            .map(|problem| problem.what)
            .collect()
    }

    #[test]
    fn links_to_files_folders_and_headings_are_followed() {
        assert!(
            whats("[a](../../README.md) ![b](../b.svg) [c](..) [d](https://x.example/y)")
                .is_empty()
        );
        assert!(whats("[a](../../README.md#what-it-is-today)\n# Here\n[b](#here)").is_empty());
    }

    #[test]
    fn dead_links_are_found() {
        assert_eq!(whats("[a](missing.md)"), ["`missing.md` leads nowhere"]);
        assert_eq!(
            whats("[a](../../../x)"),
            ["`../../../x` leads out of the checkout"]
        );
        assert_eq!(whats("[a](../../README.md#tomorrow)").len(), 1);
        assert_eq!(whats("[a](README.md) and [b](x.md)").len(), 2);
    }

    #[test]
    fn code_has_no_links() {
        assert!(whats("`[a](missing.md)`\n```\n[b](missing.md)\n```\n").is_empty());
    }
}
