//! The configuration file, variables and flags, as the real binary merges them.

use crate::harness::Sandbox;

#[test]
fn each_value_is_shown_with_its_origin() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("my.yaml", "color: never\nlog:\n  level: error\n");
    let outcome = sandbox.finish(
        sandbox
            .command()
            .env("TRANSOM_LOG_FORMAT", "json")
            .args(["config", "show", "--no-progress", "--config"])
            .arg(file),
    );
    let mut settings = insta::Settings::clone_current();
    // How wide a column is depends on the length of the folder's name.
    settings.add_filter(" {3,}", "   ");
    settings.add_filter("(Transom/var/lib|var/lib/transom)/", "[STATE]/");
    settings.bind(|| {
        insta::assert_snapshot!(outcome.transcript(), @"
        exit: 0
        --- stdout
        SETTING   VALUE   SOURCE
        output   table   default
        color   never   file [ROOT]/my.yaml
        quiet   false   default
        progress   false   flag --no-progress
        log.level   error   file [ROOT]/my.yaml
        log.format   json   variable TRANSOM_LOG_FORMAT
        server.dataDir   [ROOT]/[STATE]/server   default
        server.listen   0.0.0.0:6443   default
        server.names   default
        server.store   local   default
        server.etcd.ca   default
        server.etcd.cert   default
        server.etcd.key   default
        server.maxConnections   10000   default
        server.registries   default
        server.schedulers   default
        root   [ROOT]   variable TRANSOM_ROOT
        config   [ROOT]/my.yaml   flag --config
        --- stderr
        ");
    });
}

#[test]
fn origins_are_data_too() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.finish(
        sandbox
            .command()
            .env("TRANSOM_QUIET", "yes")
            .args(["config", "show", "-o", "json"]),
    );
    let rows: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(rows[0]["source"]["name"], "--output");
    assert_eq!(rows[2]["key"], "quiet");
    assert_eq!(rows[2]["source"]["name"], "TRANSOM_QUIET");
    let names = sandbox.run(["config", "show", "-o", "name"]);
    assert!(names.stdout.starts_with("output\ncolor\n"));
}

#[test]
fn the_file_is_found_below_the_root() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.run(["config", "path"]);
    let path = outcome.stdout.trim();
    assert!(path.starts_with("[ROOT]/"), "{path}");
    assert!(outcome.stderr.contains("no such file"));
    sandbox.write(path.trim_start_matches("[ROOT]/"), "output: json\n");
    let outcome = sandbox.run(["config", "path"]);
    assert_eq!(outcome.stderr, "");
    let rows = sandbox.run(["config", "show"]).stdout;
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    assert_eq!(rows[0]["source"]["kind"], "file");
}

#[test]
fn an_unknown_key_is_an_error_with_its_line_and_a_suggestion() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("my.yaml", "# mine\noutput: yaml\ncolour: never\n");
    let run = |extra: &[&str]| {
        let mut command = sandbox.command();
        command
            .arg("--config")
            .arg(&file)
            .arg("version")
            .args(extra);
        sandbox.finish(&mut command).transcript()
    };
    insta::assert_snapshot!(run(&[]), @"
    exit: 6
    --- stdout
    --- stderr
    error: the configuration file `[ROOT]/my.yaml` is wrong
      caused by: line 3, column 1: unknown key `colour`
        2 | output: yaml
        3 | colour: never
          | ^^^^^^
      hint: did you mean `color`?
    ");
    insta::assert_snapshot!(run(&["-o", "json"]), @r#"
    exit: 6
    --- stdout
    --- stderr
    {"error":{"message":"the configuration file `[ROOT]/my.yaml` is wrong","causes":["line 3, column 1: unknown key `colour`\n2 | output: yaml\n3 | colour: never\n  | ^^^^^^"],"hint":"did you mean `color`?","code":6,"kind":"configuration"}}
    "#);
}

#[test]
fn a_wrong_value_is_an_error_with_its_line() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("my.yaml", "log:\n  format: xml\n");
    let outcome = sandbox.run(["version".as_ref(), "--config".as_ref(), file.as_os_str()]);
    insta::assert_snapshot!(outcome.transcript(), @"
    exit: 6
    --- stdout
    --- stderr
    error: the configuration file `[ROOT]/my.yaml` is wrong
      caused by: line 2, column 11: `xml` is not possible here
        1 | log:
        2 |   format: xml
          |           ^^^
      hint: possible values: text, json
    ");
}

#[test]
fn a_named_file_must_exist_and_be_a_file() {
    let sandbox = Sandbox::new();
    let missing = sandbox.path().join("missing.yaml");
    let outcome = sandbox.run(["version".as_ref(), "--config".as_ref(), missing.as_os_str()]);
    insta::assert_snapshot!(outcome.transcript(), @"
    exit: 4
    --- stdout
    --- stderr
    error: there is no configuration file at `[ROOT]/missing.yaml`
      hint: create it, or leave out --config and TRANSOM_CONFIG
    ");
    let folder = sandbox.run([
        "version".as_ref(),
        "--config".as_ref(),
        sandbox.path().as_os_str(),
    ]);
    assert!([1, 5].contains(&folder.code()), "{}", folder.transcript());
    assert!(
        folder
            .stderr
            .starts_with("error: could not read the configuration file")
    );
}

#[test]
fn a_wrong_variable_is_named() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.finish(
        sandbox
            .command()
            .arg("version")
            .env("TRANSOM_COLOR", "nevr"),
    );
    insta::assert_snapshot!(outcome.transcript(), @"
    exit: 6
    --- stdout
    --- stderr
    error: the variable TRANSOM_COLOR cannot be `nevr`
      hint: did you mean `never`?
    ");
}

#[test]
fn a_misspelt_variable_is_noticed_where_people_look_for_it() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.finish(
        sandbox
            .command()
            .args(["config", "show"])
            .env("TRANSOM_OUPUT", "json"),
    );
    assert_eq!(outcome.code(), 0);
    assert_eq!(
        outcome.stderr,
        "warning: the variable TRANSOM_OUPUT means nothing; did you mean TRANSOM_OUTPUT?\n"
    );
    let quiet = sandbox.finish(
        sandbox
            .command()
            .args(["config", "show", "--quiet"])
            .env("TRANSOM_OUPUT", "json"),
    );
    assert_eq!(quiet.stderr, "");
}

#[test]
fn the_file_decides_the_form_of_failures_too() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("my.yaml", "output: json\n");
    let arguments = ["help", "nothing", "--config"].map(std::ffi::OsStr::new);
    let outcome = sandbox.run(arguments.iter().copied().chain([file.as_os_str()]));
    let error: serde_json::Value = serde_json::from_str(&outcome.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "not-found");
}
