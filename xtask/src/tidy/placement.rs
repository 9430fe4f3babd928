//! Where code that differs by operating system may stand, and where `unsafe` may.

use super::Problem;
use super::source::{Code, SourceFile, Tree, occurrences};

const SYSTEM_WORDS: [&str; 5] = [
    "windows",
    "unix",
    "target_os",
    "target_family",
    "target_env",
];
const UNSAFE_FOLDERS: [&str; 2] = ["crates/host/", "crates/runtime/src/oci/"];

pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    tree.rust_files()
        .flat_map(|file| {
            let code = Code::of(&file.text);
            let mut problems = misplaced_unsafe(file, &code);
            problems.extend(misplaced_cfg(tree, file, &code));
            problems
        })
        .collect()
}

fn misplaced_cfg(tree: &Tree, file: &SourceFile, code: &Code) -> Vec<Problem> {
    if may_have_cfg(tree, file) {
        return Vec::new();
    }
    ["cfg(", "cfg!(", "cfg_attr("]
        .into_iter()
        .flat_map(|opening| code.arguments_of(opening))
        .filter(|(_, arguments)| {
            // What is applied when the condition holds does not matter here, the condition does.
            SYSTEM_WORDS
                .iter()
                .any(|word| occurrences(arguments, word).next().is_some())
        })
        .map(|(line, arguments)| {
            Problem::new(
                &file.path,
                line,
                format!("an OS `cfg` in the wrong place: `{}`", arguments.trim()),
                "put it in a mod.rs beside its windows.rs, or decide by a value of `model::Os`",
            )
        })
        .collect()
}

fn may_have_cfg(tree: &Tree, file: &SourceFile) -> bool {
    let beside = |name: &str| tree.has(&format!("{}/{name}", file.folder()));
    match file.name() {
        "main.rs" => true,
        // Hosts for tests are made of Linux namespaces: there is nothing of it on Windows.
        "lib.rs" if file.path == "crates/testkit/src/lib.rs" => true,
        "mod.rs" if beside("windows.rs") || beside("windows/mod.rs") => true,
        _ => file.path.split('/').any(|part| part == "tests"),
    }
}

fn misplaced_unsafe(file: &SourceFile, code: &Code) -> Vec<Problem> {
    if UNSAFE_FOLDERS
        .iter()
        .any(|folder| file.path.starts_with(folder))
    {
        return Vec::new();
    }
    code.lines_with("unsafe")
        .into_iter()
        .map(|line| {
            let fix = "move it into crates/host behind a safe function";
            Problem::new(&file.path, line, "`unsafe` outside of crates/host", fix)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let problems = check(&Tree::made_of(files));
        problems
            .into_iter()
            .map(|problem| (problem.path, problem.line))
            .collect()
    }

    #[test]
    fn the_testkit_as_a_whole_is_for_linux() {
        let text = "//! x\n#![cfg(target_os = \"linux\")]\n";
        assert!(lines(&[("crates/testkit/src/lib.rs", text)]).is_empty());
        assert_eq!(lines(&[("crates/model/src/lib.rs", text)]).len(), 1);
    }

    #[test]
    fn an_os_cfg_stands_beside_its_windows_file() {
        let text = "//! x\n#[cfg(windows)]\nmod windows;\n";
        assert!(
            lines(&[
                ("crates/a/src/b/mod.rs", text),
                ("crates/a/src/b/windows.rs", "")
            ])
            .is_empty()
        );
        assert_eq!(
            lines(&[("crates/a/src/b/mod.rs", text)]),
            [("crates/a/src/b/mod.rs".into(), 2)]
        );
        assert_eq!(
            lines(&[
                ("crates/a/src/lib.rs", text),
                ("crates/a/src/windows.rs", "")
            ])
            .len(),
            1
        );
    }

    #[test]
    fn main_and_test_folders_are_free() {
        let text = "if cfg!(target_os = \"linux\") {}";
        assert!(
            lines(&[
                ("crates/a/src/main.rs", text),
                ("crates/a/tests/b.rs", text)
            ])
            .is_empty()
        );
        assert_eq!(lines(&[("crates/a/src/tests.rs", text)]).len(), 1);
    }

    #[test]
    fn other_cfgs_and_words_in_text_are_free() {
        let text =
            "#[cfg(test)]\nmod windows; // cfg(windows)\nlet a = \"cfg(windows)\"; /* unsafe */\n";
        assert!(lines(&[("crates/a/src/b.rs", text)]).is_empty());
    }

    #[test]
    fn nested_conditions_are_found() {
        let text = "#[cfg_attr(\n  all(not(test), unix),\n  expect(dead_code))]\nfn f() {}";
        assert_eq!(
            lines(&[("crates/a/src/b.rs", text)]),
            [("crates/a/src/b.rs".into(), 1)]
        );
    }

    #[test]
    fn unsafe_stands_in_host_only() {
        let text = "//! x\n#![expect(unsafe_code, reason = \"x\")]\nunsafe {}\n";
        assert!(
            lines(&[
                ("crates/host/src/a.rs", text),
                ("crates/runtime/src/oci/a.rs", text)
            ])
            .is_empty()
        );
        assert_eq!(
            lines(&[("crates/runtime/src/a.rs", text)]),
            [("crates/runtime/src/a.rs".into(), 3)]
        );
    }
}
