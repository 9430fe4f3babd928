//! Labels and what selects by them. A selector is compiled once and compares texts only afterwards.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::text::{Text, Texts};

/// Labels of an object, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(Box<[(Text, Text)]>);

impl Labels {
    pub(crate) fn of(labels: Option<&BTreeMap<String, String>>, texts: &mut Texts) -> Self {
        let pairs = labels.into_iter().flatten();
        Self(
            pairs
                .map(|(key, value)| (texts.keep(key), texts.keep(value)))
                .collect(),
        )
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Text> {
        let found = self.0.binary_search_by(|(known, _)| (**known).cmp(key));
        found.ok().map(|place| &self.0[place].1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Text, Text)> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Operator {
    In(Box<[Text]>),
    NotIn(Box<[Text]>),
    Exists,
    DoesNotExist,
    GreaterThan(i64),
    LessThan(i64),
    /// An operator that nobody knows, or a number that is none: matches nothing.
    Never,
}

/// What one label must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Requirement {
    key: Text,
    operator: Operator,
}

impl Requirement {
    pub(crate) fn equals(key: &str, value: &str, texts: &mut Texts) -> Self {
        Self {
            key: texts.keep(key),
            operator: Operator::In([texts.keep(value)].into()),
        }
    }

    pub(crate) fn of(key: &str, operator: &str, values: &[String], texts: &mut Texts) -> Self {
        let mut kept = || values.iter().map(|value| texts.keep(value)).collect();
        let number = || values.first().and_then(|value| value.parse().ok());
        let operator = match operator {
            "In" => Operator::In(kept()),
            "NotIn" => Operator::NotIn(kept()),
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            "Gt" => number().map_or(Operator::Never, Operator::GreaterThan),
            "Lt" => number().map_or(Operator::Never, Operator::LessThan),
            _ => Operator::Never,
        };
        Self {
            key: texts.keep(key),
            operator,
        }
    }

    /// The label and its only value, if that is what is asked for.
    pub(crate) fn as_pair(&self) -> Option<(&Text, &Text)> {
        match &self.operator {
            Operator::In(values) if values.len() == 1 => Some((&self.key, &values[0])),
            _ => None,
        }
    }

    pub(crate) fn matches<'a>(&self, get: impl FnOnce(&Text) -> Option<&'a Text>) -> bool {
        let value = get(&self.key);
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan(least) => number(value).is_some_and(|number| number > *least),
            Operator::LessThan(most) => number(value).is_some_and(|number| number < *most),
            Operator::Never => false,
        }
    }
}

fn number(value: Option<&Text>) -> Option<i64> {
    value?.parse().ok()
}

/// Which labels are meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Selector {
    Nothing,
    All(Box<[Requirement]>),
}

impl Selector {
    /// No selector selects nothing, an empty one everything.
    pub(crate) fn of(selector: Option<&LabelSelector>, texts: &mut Texts) -> Self {
        let Some(selector) = selector else {
            return Self::Nothing;
        };
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            requirements.push(Requirement::equals(key, value, texts));
        }
        for one in selector.match_expressions.iter().flatten() {
            let values = one.values.as_deref().unwrap_or_default();
            requirements.push(Requirement::of(&one.key, &one.operator, values, texts));
        }
        Self::All(requirements.into())
    }

    /// The same, and one label more.
    pub(crate) fn and(self, more: impl IntoIterator<Item = Requirement>) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::All(requirements) => Self::All(requirements.into_iter().chain(more).collect()),
        }
    }

    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => requirements
                .iter()
                .all(|one| one.matches(|key| labels.get(key))),
        }
    }

    pub(crate) fn is_everything(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::All(requirements) => requirements.is_empty(),
        }
    }

    /// Pairs of which an object must have one to be selected, if there is such a requirement at all.
    pub(crate) fn any_pair(&self) -> Option<impl Iterator<Item = (&Text, &Text)>> {
        let Self::All(requirements) = self else {
            return None;
        };
        let by_values = |one: &&Requirement| match &one.operator {
            Operator::In(values) => Some(values.len()),
            _ => None,
        };
        let best = requirements
            .iter()
            .filter(|one| by_values(one).is_some())
            .min_by_key(by_values)?;
        let Operator::In(values) = &best.operator else {
            return None;
        };
        Some(values.iter().map(|value| (&best.key, value)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn labels(value: Value) -> Labels {
        let map: BTreeMap<String, String> = serde_json::from_value(value).unwrap();
        Labels::of(Some(&map), &mut Texts::default())
    }

    fn selects(selector: Value, on: &Labels) -> bool {
        let selector: Option<LabelSelector> = serde_json::from_value(selector).unwrap();
        Selector::of(selector.as_ref(), &mut Texts::default()).matches(on)
    }

    #[test]
    fn selectors_mean_what_they_mean_everywhere() {
        let on = labels(json!({"app": "web", "size": "12"}));
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, expected) in [
            (json!(null), false),
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "web", "x": "y"}}), false),
            (expression("app", "In", &["db", "web"]), true),
            (expression("app", "NotIn", &["db"]), true),
            (expression("none", "NotIn", &["db"]), true),
            (expression("app", "NotIn", &["web"]), false),
            (expression("app", "Exists", &[]), true),
            (expression("none", "Exists", &[]), false),
            (expression("none", "DoesNotExist", &[]), true),
            (expression("app", "DoesNotExist", &[]), false),
            (expression("app", "Like", &["web"]), false),
        ] {
            assert_eq!(selects(selector.clone(), &on), expected, "{selector}");
        }
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let on = labels(json!({"size": "12", "word": "big"}));
        let mut texts = Texts::default();
        for (key, operator, value, expected) in [
            ("size", "Gt", "9", true),
            ("size", "Gt", "12", false),
            ("size", "Lt", "100", true),
            ("size", "Lt", "12", false),
            ("word", "Gt", "1", false),
            ("none", "Lt", "1", false),
            ("size", "Gt", "few", false),
        ] {
            let one = Requirement::of(key, operator, &[value.to_owned()], &mut texts);
            let matches = one.matches(|key| on.get(key));
            assert_eq!(matches, expected, "{key} {operator} {value}");
        }
    }

    #[test]
    fn the_pairs_to_look_for_are_the_fewest() {
        let selector: LabelSelector = serde_json::from_value(json!({
            "matchLabels": {"b": "1"},
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}],
        }))
        .unwrap();
        let selector = Selector::of(Some(&selector), &mut Texts::default());
        let pairs: Vec<_> = selector.any_pair().unwrap().collect();
        assert_eq!(pairs.len(), 1);
        assert_eq!(*pairs[0].0, "b");
        assert!(Selector::Nothing.any_pair().is_none());
    }
}
