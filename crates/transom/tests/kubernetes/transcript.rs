//! What a person sees who types commands: each line, its output on both streams, and its exit code if
//! that is not zero. What differs from run to run is replaced by names.

use std::fmt::Write as _;

use crate::server::Server;

/// Runs `lines` one after the other, whatever they answer.
pub(crate) fn transcript(server: &Server, lines: &str) -> String {
    let mut text = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (output, code) = server.shell(line);
        text.push_str("$ ");
        text.push_str(line);
        text.push('\n');
        for line in output.lines() {
            // Editors and reviewers take away spaces at the ends of lines.
            text.push_str(line.trim_end());
            text.push('\n');
        }
        if code != 0 {
            writeln!(text, "[exit {code}]").unwrap();
        }
    }
    let folder = server.path("").display().to_string();
    text.replace(folder.trim_end_matches('/'), "[folder]")
        .replace(server.address(), "[address]")
}

/// Names for what no two runs have in common.
pub(crate) fn filters() -> insta::internals::SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    for (pattern, name) in [
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "[uid]"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[time]"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "[time]"),
        (
            r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000",
            "[time]",
        ),
        (
            r#"resourceVersion: "\d+""#,
            r#"resourceVersion: "[version]""#,
        ),
        (r"X509SHA256=[0-9a-f]{64}", "X509SHA256=[hash]"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:[port]"),
        (r"at revision \d+", "at revision [revision]"),
        (r"/tmp/(LIVE|MERGED)-\d+/", "/tmp/$1/"),
        (r"TargetPort:( +)\d+/TCP", "TargetPort:$1[port]/TCP"),
        // Ages, with the spaces behind them: a longer one takes those of the column.
        (r"(?m) \d+(?:s|m(?:\d+s)?)(?: +|$)", " [age] "),
        (r"(?m)\bAGE\b +", "AGE "),
        (r"(?m) +$", ""),
    ] {
        settings.add_filter(pattern, name);
    }
    settings.bind_to_scope()
}

/// Asserts what a person sees.
macro_rules! assert_transcript {
    ($server:expr, $lines:expr, @$expected:literal) => {{
        let seen = $crate::transcript::transcript(&$server, $lines);
        let _filters = $crate::transcript::filters();
        insta::assert_snapshot!(seen, @$expected);
    }};
}
pub(crate) use assert_transcript;
