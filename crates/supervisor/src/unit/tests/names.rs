//! Names, patterns, escapes.

use transom_model::os::Os;

use crate::unit::name::{UnitName, UnitNameError, UnitPattern, escape, glob_matches, unescape};

#[test]
fn names_without_suffix_mean_services_on_the_command_line_only() {
    assert_eq!(
        UnitName::from_command_line("web").unwrap().as_str(),
        "web.service"
    );
    assert_eq!(
        UnitName::from_command_line("v1.2").unwrap().as_str(),
        "v1.2.service"
    );
    assert_eq!(
        UnitName::from_command_line("a b").unwrap().as_str(),
        r"a\x20b.service"
    );
    assert!(matches!(
        UnitName::new("web"),
        Err(UnitNameError::NoSuffix { .. })
    ));
    assert!(matches!(
        UnitName::from_command_line("/etc/x"),
        Err(UnitNameError::Path { .. })
    ));
}

#[test]
fn names_that_cannot_be_say_why() {
    for (text, part) in [
        ("", "empty"),
        ("a.socket", "not supported"),
        ("a.servce", "unknown suffix"),
        ("a/b.service", "`/`"),
        (".service", "nothing before"),
        ("@x.service", "nothing before"),
        ("ü.service", "`ü`"),
    ] {
        let error = UnitName::new(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    assert_eq!(
        UnitName::new(&format!("{}.service", "a".repeat(300))),
        Err(UnitNameError::TooLong)
    );
}

#[test]
fn templates_and_instances_know_each_other() {
    let instance = UnitName::new("worker@a@b.service").unwrap();
    assert_eq!(
        (instance.prefix(), instance.instance()),
        ("worker", Some("a@b"))
    );
    let template = instance.template().unwrap();
    assert!(template.is_template());
    assert_eq!(template.with_instance("a@b").unwrap(), instance);
    assert_eq!(
        UnitName::new("a-b-c@1.service").unwrap().drop_in_names(),
        [
            "service",
            "a-@.service",
            "a-b-@.service",
            "a-b-c@.service",
            "a-b-c@1.service"
        ]
    );
}

#[test]
fn escapes_can_be_taken_back() {
    for text in ["/dev/sda 1", "a-b_c.d", "ünï", ".hidden", r"C:\x"] {
        assert_eq!(unescape(&escape(text)).as_deref(), Some(text));
    }
    assert_eq!(escape("/dev/sda"), "-dev-sda");
    assert_eq!(unescape(r"\xff"), None);
    assert_eq!(unescape(r"\x4"), None);
}

#[test]
fn names_never_leave_their_folder_as_windows_files() {
    let name = UnitName::new(r"..\x:y.service").unwrap();
    assert_eq!(name.file_name(Os::Windows), "..%5Cx%3Ay.service");
    assert_eq!(
        UnitName::from_file_name(&name.file_name(Os::Windows), Os::Windows),
        Ok(name)
    );
}

#[test]
fn patterns_match_as_in_a_shell() {
    for (pattern, text, expected) in [
        ("web*", "web.service", true),
        ("*.t?mer", "a.timer", true),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[]]", "]", true),
        ("[open", "[open", true),
        ("a*b*c", "aXXbYYc", true),
        ("a*b*c", "aXXbYY", false),
        ("", "", true),
    ] {
        assert_eq!(glob_matches(pattern, text), expected, "{pattern} {text}");
    }
    let slow = format!("{}b", "a*".repeat(50));
    assert!(!glob_matches(&slow, &"a".repeat(200)));
    let web = UnitName::new("web.service").unwrap();
    assert!(UnitPattern::new("web").matches(&web));
    assert!(!UnitPattern::new("web.timer").matches(&web));
}
