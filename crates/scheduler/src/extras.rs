//! What Rancher could say and Kubernetes cannot, as annotations.
//!
//! * `scheduler.transom.dev/require-any` on a node, `key` or `key=value` by commas: only pods that have one of
//!   these labels may come. Case does not matter.
//! * `scheduler.transom.dev/addresses` on a node, by commas: addresses that pods can have ports at. A node that
//!   names none has one, `0.0.0.0`, which is all of them together.
//! * `scheduler.transom.dev/address: auto` on a pod: its host ports are all at one of those addresses, whichever
//!   has them free. The address that was found replaces `auto` when the pod gets its node; the agent reads it.

use std::collections::BTreeMap;

use transom_model::labels::{ANY_ADDRESS, POD_ADDRESS};

use crate::{
    labels::Labels,
    text::{Text, Texts},
};

pub const REQUIRE_ANY: &str = "scheduler.transom.dev/require-any";
pub const ADDRESSES: &str = "scheduler.transom.dev/addresses";
/// All addresses of a node together, which is what one has that names none.
pub(crate) const EVERYWHERE: &str = "0.0.0.0";

type Annotations = BTreeMap<String, String>;

fn parts<'a>(annotations: Option<&'a Annotations>, name: &str) -> impl Iterator<Item = &'a str> {
    let text = annotations.and_then(|all| all.get(name));
    let parts = text.into_iter().flat_map(|text| text.split(','));
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// Labels of which a pod must have one; none means that all may come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admission(Box<[(String, Option<String>)]>);

impl Admission {
    pub(crate) fn of(annotations: Option<&Annotations>) -> Self {
        let pair = |part: &str| match part.split_once('=') {
            Some((key, value)) => (key.trim().to_lowercase(), Some(value.trim().to_lowercase())),
            None => (part.to_lowercase(), None),
        };
        Self(parts(annotations, REQUIRE_ANY).map(pair).collect())
    }

    pub(crate) fn admits(&self, labels: &Labels) -> bool {
        let is_met = |(key, value): &(String, Option<String>)| {
            labels.iter().any(|(has, with)| {
                has.to_lowercase() == *key
                    && value
                        .as_ref()
                        .is_none_or(|value| with.to_lowercase() == *value)
            })
        };
        self.0.is_empty() || self.0.iter().any(is_met)
    }
}

/// Addresses that a node offers.
pub(crate) fn addresses(annotations: Option<&Annotations>, texts: &mut Texts) -> Box<[Text]> {
    let mut addresses: Vec<Text> = parts(annotations, ADDRESSES)
        .map(|address| texts.keep(address))
        .collect();
    if addresses.is_empty() {
        addresses.push(texts.keep(EVERYWHERE));
    }
    addresses.into()
}

/// The address that a pod's ports are at, and whether it still has to be found.
pub(crate) fn address(
    annotations: Option<&Annotations>,
    texts: &mut Texts,
) -> (Option<Text>, bool) {
    match annotations.and_then(|all| all.get(POD_ADDRESS)) {
        Some(text) if text == ANY_ADDRESS => (None, true),
        Some(text) if !text.is_empty() => (Some(texts.keep(text)), false),
        _ => (None, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> Annotations {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_node_admits_only_those_who_have_one_of_its_labels() {
        for (required, labels, expected) in [
            ("", &[][..], true),
            ("team", &[][..], false),
            ("team", &[("team", "x")][..], true),
            ("Team=Red", &[("team", "red")][..], true),
            ("team=red", &[("team", "blue")][..], false),
            ("team=red, gpu", &[("GPU", "1")][..], true),
            (" , ", &[][..], true),
        ] {
            let node = map(&[(REQUIRE_ANY, required)]);
            let labels = Labels::of(Some(&map(labels)), &mut Texts::default());
            assert_eq!(
                Admission::of(Some(&node)).admits(&labels),
                expected,
                "{required} {labels:?}"
            );
        }
        assert!(Admission::of(None).admits(&Labels::default()));
    }

    #[test]
    fn an_address_is_wanted_or_had() {
        let mut texts = Texts::default();
        let mut read = |text: &str| address(Some(&map(&[(POD_ADDRESS, text)])), &mut texts);
        assert_eq!(read("auto"), (None, true));
        assert_eq!(read("10.0.0.1"), (Some(Text::from("10.0.0.1")), false));
        assert_eq!(read(""), (None, false));
    }
}
