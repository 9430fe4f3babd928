//! Things that are fine while one works and not when one is done.

use super::Problem;
use super::source::{Code, SourceFile, Tree, line_of, occurrences};

/// What must not stand in code, why, and what to do.
const LEFT_OVERS: [(&str, &str, &str); 5] = [
    (
        "todo!",
        "unfinished code",
        "finish it, or leave the feature out",
    ),
    (
        "unimplemented!",
        "unfinished code",
        "finish it, or leave the feature out",
    ),
    (
        "dbg!",
        "a trace for debugging",
        "remove it, or log through tracing",
    ),
    (
        "#[allow(",
        "a lint switched off for good",
        "write #[expect(…, reason = \"…\")]",
    ),
    (
        "#![allow(",
        "a lint switched off for good",
        "write #![expect(…, reason = \"…\")]",
    ),
];
const NOTES: [&str; 3] = ["TODO", "FIXME", "XXX"];

pub(crate) fn check(tree: &Tree) -> Vec<Problem> {
    tree.rust_files()
        .flat_map(|file| {
            let code = Code::of(&file.text);
            let mut problems = left_overs(file, &code);
            problems.extend(notes_without_issue(file, &code));
            problems.extend(ignored_without_reason(file, &code));
            problems
        })
        .collect()
}

fn left_overs(file: &SourceFile, code: &Code) -> Vec<Problem> {
    LEFT_OVERS
        .into_iter()
        .flat_map(|(phrase, what, fix)| {
            let lines = code.lines_with(phrase).into_iter();
            lines
                .map(move |line| Problem::new(&file.path, line, format!("`{phrase}`: {what}"), fix))
        })
        .collect()
}

fn notes_without_issue(file: &SourceFile, code: &Code) -> Vec<Problem> {
    let comments = code.comments();
    NOTES
        .into_iter()
        .flat_map(|note| occurrences(comments, note).map(move |at| (note, at)))
        .map(|(note, at)| (note, line_of(comments, at)))
        .filter(|(_, line)| !names_an_issue(comments.lines().nth(line - 1).unwrap_or_default()))
        .map(|(note, line)| {
            let fix = "do it, or file an issue and name it as #number";
            Problem::new(&file.path, line, format!("{note} without an issue"), fix)
        })
        .collect()
}

fn names_an_issue(line: &str) -> bool {
    line.split('#')
        .skip(1)
        .any(|after| after.starts_with(|first: char| first.is_ascii_digit()))
}

fn ignored_without_reason(file: &SourceFile, code: &Code) -> Vec<Problem> {
    code.ignore_reasons(&file.text)
        .into_iter()
        .filter(|(_, reason)| reason.is_none_or(|reason| reason.trim().is_empty()))
        .map(|(line, _)| {
            let fix = "write #[ignore = \"needs …: why\"] on one line";
            Problem::new(&file.path, line, "a test is ignored without a reason", fix)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(text: &str) -> Vec<(usize, String)> {
        let problems = check(&Tree::made_of(&[("crates/a/src/b.rs", text)]));
        problems
            .into_iter()
            .map(|problem| (problem.line, problem.what))
            .collect()
    }

    #[test]
    fn what_is_left_over_from_working_is_found_in_code_only() {
        assert_eq!(
            whats("\nfn f() { todo!() }"),
            [(2, "`todo!`: unfinished code".into())]
        );
        assert_eq!(whats("dbg!(a); unimplemented!(\"b\");").len(), 2);
        assert_eq!(whats("#[allow(dead_code)]\n#![allow(unused)]").len(), 2);
        assert!(whats("// todo!() dbg!()\nlet a = \"#[allow(x)]\"; #[expect(x, reason = \"y\")] my_todo!();").is_empty());
    }

    #[test]
    fn a_note_names_its_issue() {
        assert_eq!(
            whats("// TODO: later"),
            [(1, "TODO without an issue".into())]
        );
        assert_eq!(whats("a(); /* FIXME */").len(), 1);
        assert!(whats("// TODO #12: later\nlet a = \"TODO\";").is_empty());
        assert_eq!(whats("// TODO #later").len(), 1);
    }

    #[test]
    fn an_ignored_test_says_why() {
        assert_eq!(whats("#[ignore]\nfn f() {}").len(), 1);
        assert_eq!(whats("#[ignore = \" \"]\nfn f() {}").len(), 1);
        assert!(whats("#[ignore = \"needs real Windows: junctions\"]\nfn f() {}").is_empty());
    }
}
