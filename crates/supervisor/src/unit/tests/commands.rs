//! Command lines on both systems.

use transom_model::os::Os;

use crate::unit::command::ExecCommand;
use crate::unit::values::ValueError;

fn parse(text: &str, os: Os) -> Result<Vec<ExecCommand>, ValueError> {
    ExecCommand::parse_line(text, os, |word| Ok(word.to_owned())).map(|parsed| parsed.commands)
}

fn arguments(text: &str, os: Os) -> Vec<String> {
    parse(text, os).unwrap().remove(0).args
}

#[test]
fn quotes_and_escapes_of_linux_are_systemds() {
    let words = arguments(
        r#"/bin/x a"b c"d 'e\tf' \x41\102\u00e4 "" \; "\"" g\sh"#,
        Os::Linux,
    );
    assert_eq!(words, ["ab cd", "e\tf", "ABä", "", ";", "\"", "g h"]);
}

#[test]
fn backslashes_of_windows_are_backslashes() {
    let text = r#"C:\a\new.exe C:\temp \\server\share "C:\two words\\" "a\"b" \"c d\" C:\end\"#;
    let words = arguments(text, Os::Windows);
    assert_eq!(
        words,
        [
            r"C:\temp",
            r"\\server\share",
            r"C:\two words\",
            "a\"b",
            "\"c",
            "d\"",
            r"C:\end\"
        ]
    );
}

#[test]
fn marks_are_taken_once_each_in_any_order() {
    let command = parse("-@:+/bin/x name a", Os::Linux).unwrap().remove(0);
    assert!(command.ignore_failure && command.no_environment_expansion && command.full_privileges);
    assert_eq!(
        (command.argv0.as_deref(), command.program.as_str()),
        (Some("name"), "/bin/x")
    );
    assert_eq!(parse("!!/bin/x", Os::Linux).unwrap()[0].program, "/bin/x");
    assert_eq!(parse("/bin/a b ; -/bin/c", Os::Linux).unwrap().len(), 2);
}

#[test]
fn programs_that_cannot_be_are_refused() {
    for (text, os) in [
        ("", Os::Linux),
        ("-", Os::Linux),
        (";", Os::Linux),
        ("bin/x", Os::Linux),
        ("/bin/", Os::Linux),
        ("|/bin/x", Os::Linux),
        ("@/bin/x", Os::Linux),
        ("\"/bin/x", Os::Linux),
        (r"/bin/x \xff", Os::Linux),
        (r"bin\x.exe", Os::Windows),
        ("C:x.exe", Os::Windows),
    ] {
        assert!(parse(text, os).is_err(), "{text}");
    }
}

#[test]
fn arguments_that_no_system_can_hand_on_are_refused() {
    for os in [Os::Linux, Os::Windows] {
        assert!(parse("x a\0b", os).is_err());
        assert!(parse("@x a\0b", os).is_err());
    }
}

#[test]
fn variables_are_filled_in_by_word_or_within_words() {
    let command = parse(
        "/bin/x $LIST ${LIST} a${ONE}b $$ONE $UNSET ${UNSET} $ONE-x ${bad name} $",
        Os::Linux,
    )
    .unwrap()
    .remove(0);
    let lookup = |name: &str| match name {
        "LIST" => Some("p 'q r'  s".to_owned()),
        "ONE" => Some("1".to_owned()),
        _ => None,
    };
    assert_eq!(
        command.expand(lookup),
        [
            "p",
            "q r",
            "s",
            "p 'q r'  s",
            "a1b",
            "$ONE",
            "",
            "$ONE-x",
            "${bad",
            "name}",
            "$"
        ]
    );
    assert_eq!(
        command.variables().into_iter().collect::<Vec<_>>(),
        ["LIST", "ONE", "UNSET"]
    );
    let literal = parse(":/bin/x $LIST $$", Os::Linux).unwrap().remove(0);
    assert_eq!(literal.expand(lookup), ["$LIST", "$$"]);
}
