//! `transom version` in all its forms.

use crate::harness::Sandbox;

#[test]
fn version_names_commit_compiler_and_target() {
    let outcome = Sandbox::new().run(["version"]);
    assert_eq!(outcome.code(), 0);
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(
        r"commit      ([0-9a-f]{40}( \(with local changes\))?|unknown.*)",
        "commit      [COMMIT]",
    );
    settings.add_filter(r"built from  .*", "built from  [TIME]");
    settings.add_filter(r"rustc       rustc .*", "rustc       [RUSTC]");
    settings.add_filter(r"x86_64-[a-z-]+|aarch64-[a-z-]+", "[TARGET]");
    settings.add_filter(r"debug|release", "[PROFILE]");
    settings.add_filter(env!("CARGO_PKG_VERSION"), "[VERSION]");
    settings.bind(|| {
        insta::assert_snapshot!(outcome.stdout, @"
    transom     [VERSION]
    commit      [COMMIT]
    built from  [TIME]
    rustc       [RUSTC]
    target      [TARGET]
    profile     [PROFILE]
    ");
    });
}

#[test]
fn the_short_version_is_the_version_alone() {
    let outcome = Sandbox::new().run(["version", "--short"]);
    assert_eq!(outcome.stdout, format!("{}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(outcome.stderr, "");
}

#[test]
fn version_for_programs_has_the_same_fields_in_json_and_yaml() {
    let sandbox = Sandbox::new();
    let json = sandbox.run(["version", "-o", "json"]).stdout;
    let yaml = sandbox.run(["version", "--output=yaml"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let yaml: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(json, yaml);
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    let keys: Vec<&str> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "buildTime",
            "commit",
            "dirty",
            "profile",
            "rustc",
            "target",
            "version"
        ]
    );
}

#[test]
fn version_needs_no_readable_root() {
    let sandbox = Sandbox::new();
    let missing = sandbox.path().join("missing");
    let outcome = sandbox.finish(
        sandbox
            .command()
            .arg("version")
            .env("TRANSOM_ROOT", missing),
    );
    assert_eq!(outcome.code(), 0);
}
