//! `transom repository`, as its users meet it: exit codes, hints, and data for programs.

use serde_json::Value;

use crate::harness::{Outcome, Sandbox};

const ID: &str = "etcd--0c15143d32850b279197a08ac3f306cb97fb83f4";

fn run(sandbox: &Sandbox, arguments: &str) -> Outcome {
    let words = arguments.split_whitespace();
    sandbox.run(["repository"].into_iter().chain(words))
}

fn done(sandbox: &Sandbox, arguments: &str) -> Outcome {
    let outcome = run(sandbox, arguments);
    assert_eq!(outcome.code(), 0, "{arguments}: {}", outcome.transcript());
    outcome
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}", outcome.transcript()))
}

/// With an archive of DC/OS in it.
fn filled() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(&format!("{ID}.tar.xz"), "not really an archive");
    done(
        &sandbox,
        "init --repository repository --keys 2 --threshold 2",
    );
    done(
        &sandbox,
        &format!("add --repository repository --unsigned {ID}.tar.xz"),
    );
    sandbox
}

#[test]
fn a_repository_lives_from_its_making_to_its_mirror() {
    let sandbox = filled();
    let listed = json(&done(&sandbox, "list --repository repository -o json"));
    assert_eq!(listed[0]["id"], ID);
    assert_eq!(listed[0]["os"], "linux");
    assert_eq!(listed[0]["unsigned"], true);
    assert_eq!(listed[0]["path"], format!("packages/etcd/{ID}.tar.xz"));
    done(&sandbox, "sign --repository repository --expires 12h");
    done(&sandbox, "rotate --repository repository --role timestamp");
    done(&sandbox, "sign --repository repository --role root");
    let shown = json(&done(&sandbox, "show --repository repository -o json"));
    assert_eq!(shown["roles"][0]["version"], 3);
    let digest = shown["root_sha256"].as_str().unwrap();
    done(&sandbox, "export --repository repository site.bundle");
    done(
        &sandbox,
        &format!("import --repository mirror --root-sha256 {digest} site.bundle"),
    );
    let verified = json(&done(&sandbox, "verify --repository mirror -o json"));
    assert_eq!(verified["packages"], 1);
    done(&sandbox, &format!("remove --repository repository {ID}"));
    let gone = json(&done(&sandbox, "gc --repository repository -o json"));
    let paths: Vec<&str> = gone
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["path"].as_str().unwrap())
        .collect();
    assert!(
        paths.iter().any(|path| path.ends_with(".tar.xz")),
        "{paths:?}"
    );
    done(&sandbox, "verify --repository repository");
}

#[test]
fn an_archive_without_a_manifest_needs_a_decision() {
    let sandbox = filled();
    sandbox.write("web--1.tar.xz", "x");
    let refused = run(&sandbox, "add --repository repository web--1.tar.xz");
    assert_eq!(refused.code(), 1);
    assert!(refused.stderr.contains("--unsigned"), "{}", refused.stderr);
    let taken = done(
        &sandbox,
        "add --repository repository --unsigned --os windows web--1.tar.xz",
    );
    assert!(taken.stderr.contains("nobody vouched"), "{}", taken.stderr);
    let listed = json(&done(
        &sandbox,
        "list --repository repository --os windows -o json",
    ));
    assert_eq!(listed[0]["id"], "web--1");
}

#[test]
fn what_is_wrong_with_a_repository_is_said_completely() {
    let sandbox = filled();
    sandbox.write(&format!("repository/packages/etcd/{ID}.tar.xz"), "altered");
    sandbox.write("repository/packages/stray", "x");
    let verified = run(&sandbox, "verify --repository repository -o json");
    assert_eq!(verified.code(), 1);
    assert_eq!(json(&verified)["problems"].as_array().unwrap().len(), 2);
    let verified = run(&sandbox, "verify --repository repository");
    assert!(
        verified.stdout.ends_with("; 2 problems\n"),
        "{}",
        verified.stdout
    );
}

#[test]
fn missing_things_have_their_exit_code_and_a_way_forward() {
    let sandbox = filled();
    for (arguments, code, hint) in [
        ("list", 4, "transom repository init"),
        ("sign --repository nowhere", 4, "transom repository init"),
        (
            "show --repository repository web--9",
            4,
            "transom repository list",
        ),
        (
            "remove --repository repository web--9",
            4,
            "transom repository list",
        ),
        (
            "import --repository mirror repository/metadata/1.root.json",
            1,
            "cut off or damaged",
        ),
        ("init --repository repository", 1, "transom repository add"),
        (
            "init --repository other --key-folder other/keys",
            1,
            "everybody could fetch",
        ),
        (
            "init --repository other --threshold 2",
            1,
            "cannot be reached",
        ),
        (
            "sign --repository repository --key-folder elsewhere",
            1,
            "--key",
        ),
        ("sign --repository repository --expires soon", 2, "30d"),
    ] {
        let outcome = run(&sandbox, arguments);
        assert_eq!(
            outcome.code(),
            code,
            "{arguments}: {}",
            outcome.transcript()
        );
        assert!(
            outcome.stderr.contains(hint),
            "{arguments}: {}",
            outcome.stderr
        );
    }
    assert!(!sandbox.path().join("mirror").exists());
    assert!(!sandbox.path().join("other").exists());
}

#[test]
fn a_root_is_signed_by_keys_that_are_never_together() {
    let sandbox = Sandbox::new();
    done(
        &sandbox,
        "init --repository repository --threshold 2 --root-key a.pem --root-key b.pem",
    );
    let waits = done(
        &sandbox,
        "sign --repository repository --role root --key a.pem",
    );
    assert!(
        waits.stderr.contains("waits for signatures"),
        "{}",
        waits.stderr
    );
    let shown = json(&done(&sandbox, "show --repository repository -o json"));
    assert_eq!(shown["root_waits_for_signatures"], true);
    let published = done(
        &sandbox,
        "sign --repository repository --role root --key b.pem",
    );
    assert!(
        published.stderr.contains("version 2"),
        "{}",
        published.stderr
    );
    done(&sandbox, "verify --repository repository");
}
