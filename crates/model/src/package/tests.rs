//! What is a name, a version, an id, a variant, an account: the open examples and our own.

use super::*;

/// The open examples, copied into the tree so that a clone can test itself.
const EXAMPLES: &str = include_str!("../../../package/tests/vectors/identifiers.json");

/// Whether a text is what it should be.
type Judge = fn(&str) -> bool;

#[test]
fn the_open_examples_are_count_as_they_say() {
    let examples: serde_json::Value = serde_json::from_str(EXAMPLES).unwrap();
    let judges: [(&str, Judge); 5] = [
        ("names", |text| text.parse::<PackageName>().is_ok()),
        ("versions", |text| text.parse::<PackageVersion>().is_ok()),
        ("ids", |text| text.parse::<PackageId>().is_ok()),
        ("usernames", |text| text.parse::<UserName>().is_ok()),
        // No group is written as the empty text: the readers of recipes know that, the type does not.
        ("groups", |text| {
            text.is_empty() || text.parse::<GroupName>().is_ok()
        }),
    ];
    let mut count = 0;
    for (kind, judge) in judges {
        for (text, expected) in examples[kind].as_object().unwrap() {
            // The original lets a trailing newline pass. We do not.
            let expected = expected.as_bool().unwrap() && !text.ends_with('\n');
            assert_eq!(judge(text), expected, "{kind}: {text:?}");
            count += 1;
        }
    }
    assert!(count > 40);
}

#[test]
fn an_id_gives_back_its_parts() {
    let id: PackageId = "mesos-agent--0.22.0:rc1".parse().unwrap();
    assert_eq!(id.name_str(), "mesos-agent");
    assert_eq!(id.version_str(), "0.22.0:rc1");
    assert_eq!(PackageId::new(&id.name(), &id.version()).unwrap(), id);
}

#[test]
fn a_name_with_two_dashes_makes_no_id() {
    let name: PackageName = "a--b".parse().unwrap();
    let version: PackageVersion = "1".parse().unwrap();
    assert!(PackageId::new(&name, &version).is_err());
}

#[test]
fn line_ends_and_other_alphabets_are_refused() {
    for text in ["a\n", "a--1\n", "ä--1", "a--ä", "a--1\0", "a--1 "] {
        assert!(text.parse::<PackageId>().is_err(), "{text:?}");
    }
}

#[test]
fn named_variants_come_before_the_default() {
    let mut variants: Vec<Variant> = ["default", "windows", "a"]
        .map(|text| text.parse().unwrap())
        .to_vec();
    variants.sort();
    let names: Vec<String> = variants.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["a", "windows", "default"]);
}

#[test]
fn the_default_variant_is_nothing_in_a_file_name() {
    assert_eq!(Variant::DEFAULT.file_prefix(), "");
    assert_eq!(
        "windows".parse::<Variant>().unwrap().file_prefix(),
        "windows."
    );
    assert!(Variant::from_prefix("..").is_err());
    assert!(Variant::from_prefix("a/b").is_err());
}
