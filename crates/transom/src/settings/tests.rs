//! Precedence and origins, without a process.

use super::*;

fn environment(pairs: &[(&str, &str)]) -> Environment {
    Environment::new(Os::Linux, pairs.iter().copied())
}

/// A root folder whose configuration file holds `text`.
fn root_with(text: &str) -> (tempfile::TempDir, GlobalOptions) {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    fs_err::create_dir_all(root.join("etc/transom")).unwrap();
    fs_err::write(root.join("etc/transom/transom.yaml"), text).unwrap();
    let options = GlobalOptions {
        root: Some(root),
        ..GlobalOptions::default()
    };
    (folder, options)
}

#[test]
fn flag_wins_over_variable_over_file_over_default() {
    let (_folder, mut options) = root_with("output: yaml\n");
    let resolve = |options: &GlobalOptions, pairs| {
        let settings = Settings::resolve(Os::Linux, options, &environment(pairs)).unwrap();
        settings.output
    };

    let file = resolve(&options, &[]);
    assert_eq!(file.value, Format::Yaml);
    assert!(matches!(file.source, Source::File { .. }));

    let variable = resolve(&options, &[("TRANSOM_OUTPUT", "Wide")]);
    assert_eq!(variable.value, Format::Wide);
    assert_eq!(variable.source.to_string(), "variable TRANSOM_OUTPUT");

    options.output = Some(Format::Name);
    let flag = resolve(&options, &[("TRANSOM_OUTPUT", "wide")]);
    assert_eq!(flag.value, Format::Name);
    assert_eq!(flag.source.to_string(), "flag --output");

    let (_empty, options) = root_with("");
    assert_eq!(resolve(&options, &[]).source, Source::Default);
}

#[test]
fn a_file_that_nobody_asked_for_may_be_missing_and_a_named_one_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    let mut options = GlobalOptions {
        root: Some(root.clone()),
        ..GlobalOptions::default()
    };
    let settings = Settings::resolve(Os::Linux, &options, &environment(&[])).unwrap();
    assert!(!settings.config_exists);

    options.config = Some(root.join("nowhere.yaml"));
    let error = Settings::resolve(Os::Linux, &options, &environment(&[])).unwrap_err();
    assert_eq!(error.exit(), Some(Exit::NotFound));
    assert!(error.hint().is_some());
}

#[test]
fn a_wrong_variable_is_an_error_even_below_a_flag() {
    let (_folder, mut options) = root_with("");
    options.output = Some(Format::Json);
    let pairs = [("TRANSOM_OUTPUT", "jsno")];
    let error = Settings::resolve(Os::Linux, &options, &environment(&pairs)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the variable TRANSOM_OUTPUT cannot be `jsno`"
    );
    assert_eq!(error.hint().as_deref(), Some("did you mean `json`?"));
}

#[test]
fn switches_are_read_in_every_common_spelling() {
    for (text, value) in [("1", true), ("ON", true), ("no", false), ("false", false)] {
        assert_eq!(switch(text), Ok(value));
    }
    assert!(switch("perhaps").is_err());
}

#[test]
fn the_standard_file_is_where_the_system_keeps_such_files() {
    let resolve = |host| {
        let options = GlobalOptions::default();
        let places = Places::resolve(host, &options, &environment(&[])).unwrap();
        places.config.value
    };
    assert_eq!(resolve(Os::Linux), "/etc/transom/transom.yaml");
    assert_eq!(resolve(Os::Windows), r"C:\Transom\etc\transom.yaml");
}

#[test]
fn every_setting_is_described_with_its_own_variable() {
    let (_folder, options) = root_with("");
    let settings = Settings::resolve(Os::Linux, &options, &environment(&[])).unwrap();
    for description in DESCRIPTIONS {
        assert_eq!(description.variable.setting, Some(description.key));
        let (value, source) = (description.effective)(&settings);
        if let (Source::Default, Usual::Value(usual)) = (source, description.default) {
            assert_eq!(value, usual, "{}", description.key);
        }
    }
    let set = environment::ALL
        .iter()
        .filter(|variable| variable.setting.is_some());
    assert_eq!(set.count(), DESCRIPTIONS.len());
}
