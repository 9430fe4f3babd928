//! `package fetch`, stopped before every single operation on the file system. Invariant: the package is then
//! there completely or not at all, nothing else has changed, and the same command succeeds afterwards. What a
//! node does on its own is walked in the library.

use serde_json::Value;

use crate::harness::{Outcome, Sandbox};

/// A folder with a signed repository of one package.
struct Published {
    sandbox: Sandbox,
    id: String,
}

impl Published {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("packages/treeinfo.json", "{}");
        sandbox.write(
            "packages/windows.treeinfo.json",
            r#"{"variants": {"a": "windows"}}"#,
        );
        let recipe = r#"{"install": [{"copy": "extra/*", "to": "etc/"}]}"#;
        sandbox.write("packages/a/buildinfo.json", recipe);
        sandbox.write("packages/a/windows.buildinfo.json", recipe);
        for at in 0..3 {
            sandbox.write(&format!("packages/a/extra/f{at}"), "content");
        }
        let variant = if cfg!(windows) { "windows" } else { "default" };
        let published = Self {
            id: good(sandbox.run(["package", "id", "a", "--variant", variant, "-o", "name"]))
                .stdout
                .trim()
                .to_owned(),
            sandbox,
        };
        good(
            published
                .sandbox
                .run(["package", "build", "--tree", "--variant", variant]),
        );
        good(
            published
                .sandbox
                .run(["repository", "init", "--repository", "published"]),
        );
        let extension = if cfg!(windows) { "zip" } else { "tar.zst" };
        let archive = format!("packages/cache/packages/a/{}.{extension}", published.id);
        good(
            published
                .sandbox
                .run(["repository", "add", "--repository", "published", &archive]),
        );
        published
    }

    /// Fetches into a root of its own, with a fault if there is one.
    fn fetch(&self, root: &str, fault: Option<&str>) -> Outcome {
        let mut command = self.sandbox.command();
        command.args([
            "package",
            "fetch",
            "--repository-url",
            "published",
            &self.id,
        ]);
        command.args([
            "--trusted-root",
            "published/metadata/1.root.json",
            "--root",
            root,
        ]);
        if let Some(fault) = fault {
            command.env("TRANSOM_FAULT", fault);
        }
        self.sandbox.finish(&mut command)
    }

    fn run(&self, root: &str, verb: &str) -> Outcome {
        self.sandbox.run(["package", verb, "--root", root])
    }
}

fn good(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code(), 0, "{}{}", outcome.stdout, outcome.stderr);
    outcome
}

#[test]
fn a_fetch_that_dies_anywhere_leaves_all_of_a_package_or_nothing() {
    let published = Published::new();
    let count = published.sandbox.path().join("points");
    let fault = format!("count:{}", count.display());
    good(published.fetch("counted", Some(&fault)));
    let points = fs_err::read_to_string(&count).unwrap().lines().count();
    assert!(points > 20, "{points} points");
    for point in 1..=points {
        let root = format!("root-{point}");
        let died = published.fetch(&root, Some(&format!("die@{point}")));
        assert!(
            !died.succeeded(),
            "point {point} of {points} was not reached"
        );
        let listed = good(published.run(&root, "list")).stdout;
        if !listed.is_empty() {
            assert_eq!(listed.trim(), published.id, "point {point}");
            let folder = published
                .sandbox
                .path()
                .join(&root)
                .join("packages")
                .join(&published.id);
            for at in 0..3 {
                let text = fs_err::read_to_string(folder.join(format!("etc/f{at}"))).unwrap();
                assert_eq!(text, "content", "point {point}");
            }
        }
        good(published.fetch(&root, None));
        let check: Value = serde_json::from_str(
            &good(
                published
                    .sandbox
                    .run(["package", "check", "--root", &root, "-o", "json"]),
            )
            .stdout,
        )
        .unwrap();
        assert_eq!(check["deviations"], serde_json::json!([]), "point {point}");
        let left = published.sandbox.path().join(&root).join("downloads");
        let left: Vec<_> = fs_err::read_dir(left).unwrap().collect();
        assert!(left.is_empty(), "point {point}: {left:?}");
    }
    eprintln!("package fetch: killed at each of {points} points");
}
