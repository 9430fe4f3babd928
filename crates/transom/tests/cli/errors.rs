//! Wrong command lines: what, why, way forward, and the exit code.

use std::ffi::OsString;

use crate::harness::Sandbox;

#[test]
fn an_unknown_verb_gets_a_suggestion() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(["docter"]).transcript(), @"
    exit: 2
    --- stdout
    --- stderr
    error: unrecognized subcommand 'docter'
      hint: did you mean `doctor`?

    Usage: transom [OPTIONS] <COMMAND>
    ");
    insta::assert_snapshot!(sandbox.run(["config", "shwo"]).transcript(), @"
    exit: 2
    --- stdout
    --- stderr
    error: unrecognized subcommand 'shwo'
      hint: did you mean `show`?

    Usage: transom config [OPTIONS] <COMMAND>
    ");
    insta::assert_snapshot!(sandbox.run(["frobnicate"]).transcript(), @"
    exit: 2
    --- stdout
    --- stderr
    error: unrecognized subcommand 'frobnicate'
      hint: try --help

    Usage: transom [OPTIONS] <COMMAND>
    ");
}

#[test]
fn a_wrong_option_or_value_gets_a_suggestion() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(["version", "--shrt"]).transcript(), @"
    exit: 2
    --- stdout
    --- stderr
    error: unexpected argument '--shrt' found
      hint: did you mean `--short`?

    Usage: transom version --short
    ");
    insta::assert_snapshot!(sandbox.run(["version", "-o", "jsno"]).transcript(), @"
    exit: 2
    --- stdout
    --- stderr
    error: invalid value 'jsno' for '--output <FORM>'
      hint: did you mean `json`?
    ");
    insta::assert_snapshot!(sandbox.run(["version", "--color", "blue"]).transcript(), @"
    exit: 2
    --- stdout
    --- stderr
    error: invalid value 'blue' for '--color <WHEN>'
      hint: possible values: auto, always, never
    ");
    insta::assert_snapshot!(sandbox.run(["version", "--log-level", "inof"]).transcript(), @"
    exit: 2
    --- stdout
    --- stderr
    error: invalid value 'inof' for '--log-level <LEVEL>': `inof` is not a log level: did you mean `info`?
      hint: try --help
    ");
    insta::assert_snapshot!(sandbox.run(["completion"]).transcript(), @"
    exit: 2
    --- stdout
    --- stderr
    error: the following required arguments were not provided: <SHELL>
      hint: try --help

    Usage: transom completion <SHELL>
    ");
    insta::assert_snapshot!(sandbox.run(["version", "-q", "-v"]).transcript(), @"
    exit: 2
    --- stdout
    --- stderr
    error: the argument '--quiet' cannot be used with '--verbose...'
      hint: try --help

    Usage: transom version --quiet
    ");
}

#[test]
fn errors_are_json_when_json_was_asked_for() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(["-o", "json", "docter"]).transcript(), @r#"
    exit: 2
    --- stdout
    --- stderr
    {"error":{"message":"unrecognized subcommand 'docter'","causes":[],"hint":"did you mean `doctor`?","code":2,"kind":"usage"}}
    "#);
    insta::assert_snapshot!(sandbox.run(["-o", "json"]).transcript(), @r#"
    exit: 2
    --- stdout
    --- stderr
    {"error":{"message":"a command is needed","causes":[],"hint":"try --help","code":2,"kind":"usage"}}
    "#);
    let by_variable = sandbox
        .command()
        .arg("docter")
        .env("TRANSOM_OUTPUT", "json")
        .output();
    let error: serde_json::Value = serde_json::from_slice(&by_variable.unwrap().stderr).unwrap();
    assert_eq!(error["error"]["code"], 2);
}

#[test]
fn a_bare_noun_shows_its_verbs() {
    let outcome = Sandbox::new().run(["config"]);
    assert_eq!(outcome.code(), 2);
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("show") && outcome.stderr.contains("path"));
}

#[cfg(unix)]
fn not_text() -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(b"do\xffctor".to_vec())
}

#[cfg(windows)]
fn not_text() -> OsString {
    std::os::windows::ffi::OsStringExt::from_wide(&[0x64, 0xd800, 0x6f])
}

#[test]
fn arguments_that_are_not_text_are_refused_and_do_not_crash() {
    let sandbox = Sandbox::new();
    for arguments in [
        vec![not_text()],
        vec!["help".into(), not_text()],
        vec!["man".into(), "--dir".into(), not_text()],
        vec!["-o".into(), not_text(), "version".into()],
        vec!["version".into(), not_text()],
    ] {
        let outcome = sandbox.run(&arguments);
        assert_eq!(outcome.code(), 2, "{arguments:?}\n{}", outcome.stderr);
        assert_eq!(outcome.stdout, "");
        assert!(outcome.stderr.starts_with("error: "), "{}", outcome.stderr);
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named_with_the_way_forward() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("file", "");
    let outcome = sandbox.run([
        "man".as_ref(),
        "--dir".as_ref(),
        file.join("pages").as_os_str(),
    ]);
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"caused by: .*", "caused by: [SYSTEM]");
    settings.bind(|| {
        insta::assert_snapshot!(outcome.transcript(), @"
    exit: 1
    --- stdout
    --- stderr
    error: could not make the folder `[ROOT]/file/pages`
      caused by: [SYSTEM]
      hint: name a folder that you may write to
    ");
    });
}
