//! Spellings, sums and limits.

use proptest::prelude::*;

use super::*;

fn canonical(text: &str) -> String {
    Quantity::parse(text).unwrap().to_string()
}

#[test]
fn amounts_are_written_in_one_form() {
    for (given, expected) in [
        ("0", "0"),
        ("0Mi", "0"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        (".5", "500m"),
        ("1.", "1"),
        ("+5", "5"),
        ("-2000m", "-2"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1023Ki", "1023Ki"),
        ("100Mi", "100Mi"),
        ("0.0001Ki", "102400u"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("12e-3", "12e-3"),
        ("1E", "1E"),
        ("100E", "100E"),
        ("1000000Ki", "1000000Ki"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1.0000000001", "1000000001n"),
        ("128974848", "128974848"),
    ] {
        assert_eq!(canonical(given), expected, "{given}");
    }
}

#[test]
fn other_texts_are_refused_with_the_sentence_of_upstream() {
    for text in ["", "abc", "1x", "1 Gi", "1.2.3", "0x10", "½"] {
        assert_eq!(Quantity::parse(text), Err(QuantityError::Form), "{text}");
    }
    for text in ["--1", "1ki", "1K", "1mi", "1ee3", "1e", "1e99999999999"] {
        assert_eq!(Quantity::parse(text), Err(QuantityError::Suffix), "{text}");
    }
}

#[test]
fn sums_keep_the_suffix_of_the_first_that_is_not_zero() {
    let gi = Quantity::parse("1Gi").unwrap();
    let half = Quantity::parse("512Mi").unwrap();

    assert_eq!(Quantity::ZERO.plus(gi).to_string(), "1Gi");
    assert_eq!(gi.plus(half).to_string(), "1536Mi");
    assert_eq!(gi.minus(half).to_string(), "512Mi");
    assert_eq!(half.minus(gi).to_string(), "-512Mi");
}

#[test]
fn equal_amounts_are_equal_however_they_are_spelled() {
    assert_eq!(Quantity::parse("1"), Quantity::parse("1000m"));
    assert!(Quantity::parse("1G").unwrap() < Quantity::parse("1Gi").unwrap());
}

#[test]
fn numbers_are_rounded_away_from_zero() {
    assert_eq!(Quantity::parse("1500m").unwrap().value(), 2);
    assert_eq!(Quantity::parse("-1500m").unwrap().value(), -2);
    assert_eq!(Quantity::parse("1u").unwrap().milli_value(), 1);
    assert_eq!(
        Quantity::parse("1u")
            .unwrap()
            .rounded_to_milli()
            .to_string(),
        "1m"
    );
}

#[test]
fn what_is_too_large_is_cut_and_not_an_error() {
    assert_eq!(
        canonical("1e300"),
        "9223372036854775807e0".replace("e0", "")
    );
    assert_eq!(
        Quantity::parse("99999999999999999999Ei").unwrap().value(),
        i64::MAX
    );
    assert_eq!(canonical(&format!("1e-{}", i32::MAX)), "1e-9");
}

proptest! {
    #[test]
    fn no_text_is_fatal(text in "\\PC{0,40}") {
        let _ = Quantity::parse(&text);
    }

    #[test]
    fn the_canonical_form_reads_back_as_itself(
        whole in 0_u64..1_000_000_000_000,
        fraction in 0_u32..1000,
        suffix in prop::sample::select(vec!["", "m", "k", "M", "Ki", "Gi", "e3", "n"]),
    ) {
        let first = Quantity::parse(&format!("{whole}.{fraction}{suffix}")).unwrap();
        let second = Quantity::parse(&first.to_string()).unwrap();
        // A fraction of one in binary is written as a whole number, and a number without a suffix is read as a decimal
        // one: only what it says stays.
        if first.suffix == SuffixKind::Binary {
            prop_assert_eq!(first.value(), second.value());
        } else {
            prop_assert_eq!(first.to_string(), second.to_string());
            prop_assert_eq!(first, second);
        }
    }
}
