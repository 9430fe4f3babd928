//! The order in which units start: each after those it depends on. Pure text in, names out; what a unit
//! file means beyond its order is for those who run it.

use std::collections::{BTreeMap, BTreeSet};

/// Sorts units so that each comes after those it names in `After=`, and before those in `Before=`.
/// Names decide among equals; a circle is broken at the name that comes first.
pub(in crate::node) fn in_start_order(units: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let mut after: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let known = |name: &str| units.get_key_value(name).map(|(name, _)| name.as_str());
    for (name, text) in units {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let of = |keys: &[&str]| listed(text, keys).into_iter().filter_map(&known);
        after.entry(name).or_default().extend(of(&[
            "After",
            "Requires",
            "Wants",
            "BindsTo",
            "Requisite",
        ]));
        for later in of(&["Before"]) {
            after.entry(later).or_default().insert(name);
        }
    }
    let mut ordered: Vec<String> = Vec::new();
    while !after.is_empty() {
        let ready = after
            .iter()
            .find(|(name, before)| before.iter().all(|other| other == *name))
            .or_else(|| after.iter().next())
            .map(|(name, _)| *name);
        let Some(next) = ready else { break };
        after.remove(next);
        for before in after.values_mut() {
            before.remove(next);
        }
        ordered.push(next.to_owned());
    }
    ordered
}

/// The names in all lines of the given keys.
fn listed<'a>(text: &'a str, keys: &[&str]) -> Vec<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| keys.contains(&key.trim()))
        .flat_map(|(_, names)| names.split_whitespace())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(units: &[(&str, &str)]) -> Vec<String> {
        let units = units.iter();
        in_start_order(
            &units
                .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()))
                .collect(),
        )
    }

    #[test]
    fn units_follow_those_they_depend_on() {
        assert_eq!(
            order(&[
                ("a.service", "[Unit]\nAfter=c.service network.target\n"),
                ("b.service", "[Unit]\nRequires = a.service\n"),
                ("c.service", ""),
                ("d.service", "Before=c.service"),
            ]),
            ["d.service", "c.service", "a.service", "b.service"]
        );
    }

    #[test]
    fn a_circle_is_broken_and_a_unit_after_itself_is_none() {
        assert_eq!(
            order(&[
                ("a.service", "After=b.service"),
                ("b.service", "After=a.service"),
                ("c.service", "After=c.service"),
            ]),
            ["c.service", "a.service", "b.service"]
        );
    }
}
