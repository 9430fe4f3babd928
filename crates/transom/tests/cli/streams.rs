//! Colours, pipes and the separation of data from everything else.

use std::process::Stdio;
use std::time::Duration;

use crate::harness::{Sandbox, wait_within};

const ESCAPE: char = '\u{1b}';

#[test]
fn colours_are_used_when_asked_for_and_never_in_a_pipe_by_themselves() {
    let sandbox = Sandbox::new();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = sandbox.command();
        command.args(arguments).envs(variables.iter().copied());
        let outcome = sandbox.finish(&mut command);
        (
            outcome.stdout.contains(ESCAPE),
            outcome.stderr.contains(ESCAPE),
        )
    };
    let forced = [("CLICOLOR_FORCE", "1")];
    let refused = [("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")];
    assert_eq!(run(&["config", "show"], &[]), (false, false));
    assert_eq!(run(&["config", "show"], &forced), (true, false));
    assert_eq!(run(&["config", "show"], &refused), (false, false));
    assert_eq!(
        run(&["config", "show", "--color=always"], &refused),
        (true, false)
    );
    assert_eq!(
        run(&["config", "show", "--color=never"], &forced),
        (false, false)
    );
    assert_eq!(run(&["docter"], &[]), (false, false));
    assert_eq!(run(&["docter"], &forced), (false, true));
    assert_eq!(run(&["docter", "--color", "always"], &[]), (false, true));
    assert_eq!(run(&["--help"], &[]), (false, false));
    assert_eq!(run(&["--help"], &forced), (true, false));
    // Programs get no escape sequences, however colourful the people are.
    assert_eq!(
        run(&["config", "show", "-o", "json"], &forced),
        (false, false)
    );
}

#[test]
fn a_reader_that_goes_away_is_not_an_error() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["reference", "cli"][..],
        &["completion", "bash"],
        &["config", "show", "-o", "yaml"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        // Nobody reads, from the first byte on.
        drop(reader);
        let mut child = sandbox
            .command()
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let status = wait_within(&mut child, Duration::from_mins(1));
        let text = std::io::read_to_string(&mut stderr).unwrap();
        assert_eq!(
            (status.code(), text.as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn log_events_go_to_stderr_in_the_form_that_was_asked_for() {
    let sandbox = Sandbox::new();
    let run = |extra: &[&str]| {
        let mut command = sandbox.command();
        command.args(["version", "--short"]).args(extra);
        sandbox.finish(&mut command)
    };
    let silent = run(&[]);
    assert_eq!(silent.stderr, "");
    let text = run(&["-vv"]);
    assert_eq!(text.stdout, silent.stdout);
    assert!(text.stderr.contains("DEBUG"), "{}", text.stderr);
    let json = run(&["--log-level", "transom=debug", "--log-format", "json"]);
    let first = json.stderr.lines().next().unwrap();
    let event: serde_json::Value = serde_json::from_str(first).unwrap();
    assert_eq!(event["level"], "DEBUG");
    assert_eq!(json.stdout, silent.stdout);
}
