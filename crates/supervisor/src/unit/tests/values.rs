//! Time spans, sizes, signals, environment files.

use std::time::Duration;

use camino::Utf8Path;
use transom_model::os::Os;

use crate::unit::environment_file;
use crate::unit::signal::{ExitStatusSet, Signal};
use crate::unit::values::{
    format_time_span, parse_boolean, parse_percentage, parse_size, parse_time_span,
};

#[test]
fn time_spans_read_as_in_systemd() {
    for (text, microseconds) in [
        ("90", 90_000_000),
        ("1min 30s", 90_000_000),
        ("1m30s", 90_000_000),
        ("1.5h", 5_400_000_000),
        ("2 days", 172_800_000_000),
        ("500ms", 500_000),
        ("10us", 10),
        ("1M", 2_629_800_000_000),
        ("0", 0),
    ] {
        let span = parse_time_span(text).unwrap();
        assert_eq!(span, Some(Duration::from_micros(microseconds)), "{text}");
        assert_eq!(parse_time_span(&format_time_span(span)).unwrap(), span);
    }
    assert_eq!(parse_time_span("infinity"), Ok(None));
    for text in [
        "",
        "soon",
        "-5",
        "1 fortnight",
        "1..5s",
        ".",
        "s",
        "99999999999999999999",
        "2000y",
        "1min infinity",
    ] {
        parse_time_span(text).unwrap_err();
    }
}

#[test]
fn sizes_percentages_and_booleans_refuse_nonsense() {
    assert_eq!(parse_size("1.5K"), Ok(Some(1536)));
    assert_eq!(parse_size("infinity"), Ok(None));
    assert_eq!(parse_percentage("12.5%"), Ok(1250));
    assert_eq!(parse_boolean("On"), Ok(true));
    for text in ["", "K", "1KB", "-1", "99999999999E", "1 2"] {
        parse_size(text).unwrap_err();
    }
    parse_percentage("50").unwrap_err();
    parse_boolean("maybe").unwrap_err();
}

#[test]
fn signals_have_names_and_numbers() {
    for text in ["SIGTERM", "TERM", "sigterm", "15"] {
        assert_eq!(Signal::parse(text), Ok(Signal::TERM));
    }
    assert_eq!(Signal::parse("SIGRTMIN+3").unwrap().number(), 37);
    assert_eq!(Signal::parse("RTMAX-1").unwrap().to_string(), "SIGRTMIN+29");
    for text in ["", "0", "32", "65", "SIG", "RTMIN+99", "RTMIN+"] {
        Signal::parse(text).unwrap_err();
    }
    let mut set = ExitStatusSet::default();
    set.insert("4294967295").unwrap();
    set.insert("TEMPFAIL").unwrap();
    set.insert("HUP").unwrap();
    set.insert("4294967296").unwrap_err();
    assert_eq!(set.codes.into_iter().collect::<Vec<_>>(), [75, u32::MAX]);
}

#[test]
fn environment_files_have_shell_quotes() {
    let text = "# comment\nA=1\nB = \"two words\" \nC='it''s'\nD=a\\ b\\\nc\nE=\"x\ny\"\nbad line\nF=\n=x\n";
    let content = environment_file::parse(text, Utf8Path::new("env"), Os::Linux, |_| None);
    let expected = [
        ("A", "1"),
        ("B", "two words"),
        ("C", "its"),
        ("D", "a bc"),
        ("E", "x\ny"),
        ("F", ""),
    ];
    let found: Vec<(&str, &str)> = content
        .variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(found, expected);
    let lines: Vec<Option<u32>> = content
        .problems
        .iter()
        .map(|problem| problem.line)
        .collect();
    assert_eq!(lines, [Some(9), Some(11)]);
}

#[test]
fn environment_files_of_windows_keep_backslashes_and_know_powershell() {
    let content = environment_file::parse(
        "A=C:\\new\\\nB=\"C:\\t\"\n",
        Utf8Path::new("env"),
        Os::Windows,
        |_| None,
    );
    assert_eq!(
        content.variables,
        [
            ("A".to_owned(), r"C:\new\".to_owned()),
            ("B".to_owned(), r"C:\t".to_owned())
        ]
    );
    let text =
        "$env:A=\"one\"\n$Env:B = \"$env:A;${env:PATH};`$env:A\"\n$env:C='$env:A'\nGet-Date\n";
    let content = environment_file::parse(text, Utf8Path::new(r"C:\x.PS1"), Os::Windows, |name| {
        (name == "PATH").then(|| "C:\\bin".to_owned())
    });
    let values: Vec<&str> = content
        .variables
        .iter()
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(values, ["one", r"one;C:\bin;$env:A", "$env:A"]);
    assert_eq!(content.problems.len(), 1);
}
