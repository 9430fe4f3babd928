//! Scripts and pages that are generated from the command line itself.

use crate::harness::Sandbox;

#[test]
fn each_shell_gets_a_script_that_knows_our_commands() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let outcome = sandbox.run(["completion", shell]);
        assert_eq!(outcome.code(), 0, "{shell}");
        assert_eq!(outcome.stderr, "");
        for word in ["version", "config", "output"] {
            assert!(
                outcome.stdout.contains(word),
                "{shell} does not know {word}"
            );
        }
    }
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path().join("a folder/man");
    let outcome = sandbox.run(["man".as_ref(), "--dir".as_ref(), folder.as_os_str()]);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "");
    let mut names: Vec<String> = fs_err::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    for verb in ["transom-service-start.1", "transom-repository-add.1"] {
        assert!(names.iter().any(|name| name == verb), "{verb}");
    }
    assert!(
        !names.iter().any(|name| name == "transom-service-keeper.1"),
        "it is hidden"
    );
    let nouns: Vec<_> = names
        .iter()
        .filter(|name| name.matches('-').count() < 2)
        .cloned()
        .collect();
    insta::assert_snapshot!(nouns.join("\n"), @r"
    transom-agent.1
    transom-apply.1
    transom-completion.1
    transom-config.1
    transom-delete.1
    transom-doctor.1
    transom-down.1
    transom-exec.1
    transom-explain.1
    transom-get.1
    transom-help.1
    transom-kubeconfig.1
    transom-logs.1
    transom-man.1
    transom-package.1
    transom-repository.1
    transom-server.1
    transom-service.1
    transom-simulate.1
    transom-token.1
    transom-top.1
    transom-up.1
    transom-version.1
    transom.1
    ");
    let first = fs_err::read_to_string(folder.join("transom.1")).unwrap();
    assert_eq!(first, sandbox.run(["man"]).stdout);
    assert!(first.contains(".TH TRANSOM 1"), "{first}");
    assert!(first.contains("Form of log events"), "{first}");
}

#[test]
fn reference_pages_are_complete_and_repeatable() {
    let sandbox = Sandbox::new();
    for page in ["cli", "config", "environment", "kubernetes", "schema"] {
        let outcome = sandbox.run(["reference", page]);
        assert_eq!(outcome.code(), 0, "{page}");
        let again = sandbox.finish(
            sandbox
                .command()
                .args(["reference", page])
                .env("COLUMNS", "40")
                .env("CLICOLOR_FORCE", "1"),
        );
        assert_eq!(
            outcome.stdout, again.stdout,
            "{page} depends on the terminal"
        );
        // What the pages say is compared with docs/reference by `cargo xtask generate --check`.
        assert!(outcome.stdout.len() > 500, "{page} is almost empty");
    }
}

#[test]
fn the_schema_refuses_what_the_program_refuses() {
    let schema = Sandbox::new().run(["reference", "schema"]).stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(
        schema["properties"]["quiet"]["type"],
        serde_json::json!(["boolean", "null"])
    );
}
