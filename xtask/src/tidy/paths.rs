//! No file names the folder it was written in: what works only there does not work.

use super::Problem;
use super::source::{Tree, line_of};
use crate::workspace::Workspace;

/// Folders that exist on every machine: naming them betrays nothing.
const SYSTEM_FOLDERS: [&str; 14] = [
    "/", "/builds", "/data", "/etc", "/home", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp",
    "/usr", "/var", "/var/lib",
];
const PRIVATE: [&str; 3] = [".cargo", ".rustup", ".cache"];

/// The folders of this machine that no file should name.
pub(crate) fn workplace(workspace: &Workspace) -> Vec<String> {
    let mut folders: Vec<String> = workspace
        .root
        .ancestors()
        .filter_map(|folder| folder.to_str())
        .filter(|folder| !SYSTEM_FOLDERS.contains(folder))
        .map(str::to_owned)
        .collect();
    if let Some(home) = workspace
        .environment
        .get("HOME")
        .and_then(|home| home.to_str())
    {
        folders.extend(PRIVATE.iter().map(|private| format!("{home}/{private}")));
    }
    folders
}

pub(crate) fn check(tree: &Tree, workplace: &[String]) -> Vec<Problem> {
    tree.files
        .iter()
        .flat_map(|file| {
            let places = workplace
                .iter()
                .flat_map(|folder| mentions(&file.text, folder));
            let mut lines: Vec<usize> = places.map(|at| line_of(&file.text, at)).collect();
            lines.sort_unstable();
            lines.dedup();
            lines.into_iter().map(|line| {
                let fix = "use a path relative to the checkout, or a variable";
                Problem::new(
                    &file.path,
                    line,
                    "names a folder of the machine it was written on",
                    fix,
                )
            })
        })
        .collect()
}

/// Where `folder` or something below it is named as an absolute path.
fn mentions<'t>(text: &'t str, folder: &'t str) -> impl Iterator<Item = usize> + 't {
    let continues = |character: char| character.is_alphanumeric() || "._-".contains(character);
    text.match_indices(folder)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let before = text[..at].chars().next_back();
            let after = text[at + folder.len()..].chars().next();
            !before.is_some_and(|before| continues(before) || before == '/' || before == '}')
                && after == Some('/')
        })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::environment::Environment;

    fn found(text: &str) -> Vec<usize> {
        let folders = ["/yard/ship".to_owned(), "/yard".to_owned()];
        let problems = check(&Tree::made_of(&[("docs/a.md", text)]), &folders);
        problems.into_iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn absolute_paths_into_the_workplace_are_found_once_a_line() {
        assert_eq!(found("see\n`/yard/ship/a.md` and /yard/b\n"), [2]);
        assert_eq!(found("path=/yard/x"), [1]);
    }

    #[test]
    fn longer_names_and_relative_paths_are_something_else() {
        assert!(found("$x}/yard/c https://a.example/yard/b").is_empty());
        assert!(found("a/yard/b /yardstick/c").is_empty());
    }

    #[test]
    fn the_workplace_is_every_unusual_folder_above_the_checkout() {
        let workspace = Workspace {
            root: Path::new("/opt/yard/ship").into(),
            tools: "/t".into(),
            target: "/t".into(),
            sysroot: "/usr".into(),
            environment: Environment::made_of(&[("HOME", "/root")]),
            is_root: true,
        };
        let folders = workplace(&workspace);
        assert_eq!(
            folders[..2],
            ["/opt/yard/ship".to_owned(), "/opt/yard".to_owned()]
        );
        assert!(
            folders
                .iter()
                .all(|folder| folder != "/opt" && folder != "/")
        );
    }
}
