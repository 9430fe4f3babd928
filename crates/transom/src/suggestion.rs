//! "Did you mean …?" for words that people type. Invariant: no suggestion is better than a wrong one,
//! so only close spellings are offered.

/// Below this likeness a suggestion would rather confuse.
const CLOSE_ENOUGH: f64 = 0.75;

/// The candidate closest to `word`, if any is close.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let likeness = strsim::jaro_winkler(&word, &candidate.to_lowercase());
            (likeness, candidate)
        })
        .filter(|(likeness, _)| *likeness >= CLOSE_ENOUGH)
        .max_by(|(first, _), (second, _)| first.total_cmp(second))
        .map(|(_, candidate)| candidate)
}

/// A hint that offers the closest candidate, and all of them when none is close.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match closest(word, candidates.clone()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("possible values: {}", list(candidates)),
    }
}

/// `a, b, c`.
pub fn list<'a>(candidates: impl IntoIterator<Item = &'a str>) -> String {
    candidates.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_a_foreign_word_is_not() {
        let keys = ["output", "color", "quiet", "progress", "log"];
        assert_eq!(closest("colour", keys), Some("color"));
        assert_eq!(closest("OUPUT", keys), Some("output"));
        assert_eq!(closest("registry", keys), None);
        assert_eq!(closest("", keys), None);
        assert_eq!(
            hint("zzz", ["auto", "never"]),
            "possible values: auto, never"
        );
    }
}
