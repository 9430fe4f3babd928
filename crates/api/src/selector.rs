//! Label and field selectors: which objects a list or a watch is about.

use crate::{registry::Kind, status::ApiError};

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

/// All conditions must hold. Without conditions everything is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

impl LabelSelector {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels, given by a look-up, satisfy all conditions.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0
            .iter()
            .all(|requirement| requirement.matches(get(&requirement.key)))
    }

    /// Reads the text of a query parameter, like `app in (a, b),!old,tier!=web`.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        Parser { rest: text }.selector().map_err(|reason| {
            ApiError::bad_request(format!("unable to parse requirement: {reason}"))
        })
    }
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        match (&self.test, value) {
            (Test::Exists, value) => value.is_some(),
            (Test::Absent, value) => value.is_none(),
            (Test::In(values), Some(value)) => values.iter().any(|wanted| wanted == value),
            (Test::NotIn(values), Some(value)) => values.iter().all(|unwanted| unwanted != value),
            (Test::NotIn(_), None) => true,
            (Test::Greater(limit), Some(value)) => {
                value.parse().is_ok_and(|value: i64| value > *limit)
            }
            (Test::Less(limit), Some(value)) => {
                value.parse().is_ok_and(|value: i64| value < *limit)
            }
            (Test::In(_) | Test::Greater(_) | Test::Less(_), None) => false,
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn selector(mut self) -> Result<LabelSelector, String> {
        let mut requirements = Vec::new();
        self.skip_space();
        while !self.rest.is_empty() {
            requirements.push(self.requirement()?);
            self.skip_space();
            if !self.take(",") {
                break;
            }
            self.skip_space();
            if self.rest.is_empty() {
                return Err("found '', expected: identifier after ','".to_owned());
            }
        }
        if self.rest.is_empty() {
            Ok(LabelSelector(requirements))
        } else {
            Err(format!(
                "found '{}', expected: ',' or 'end of string'",
                self.word_or_symbol()
            ))
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        if self.take("!") {
            self.skip_space();
            let key = self.key()?;
            return Ok(Requirement {
                key,
                test: Test::Absent,
            });
        }
        let key = self.key()?;
        self.skip_space();
        let test = if self.take("==") || self.take("=") {
            Test::In(vec![self.value()?])
        } else if self.take("!=") {
            Test::NotIn(vec![self.value()?])
        } else if self.take(">") {
            Test::Greater(self.number(&key)?)
        } else if self.take("<") {
            Test::Less(self.number(&key)?)
        } else if self.rest.is_empty() || self.rest.starts_with(',') {
            Test::Exists
        } else {
            match self.word() {
                "in" => Test::In(self.values()?),
                "notin" => Test::NotIn(self.values()?),
                other => {
                    return Err(format!(
                        "found '{other}', expected: in, notin, =, ==, !=, gt, lt"
                    ));
                }
            }
        };
        Ok(Requirement { key, test })
    }

    fn key(&mut self) -> Result<String, String> {
        let key = self.word();
        if key.is_empty() {
            return Err(format!(
                "found '{}', expected: !, identifier, or 'end of string'",
                self.word_or_symbol()
            ));
        }
        Ok(key.to_owned())
    }

    fn number(&mut self, key: &str) -> Result<i64, String> {
        let value = self.value()?;
        value.parse().map_err(|_| format!("values[0][{key}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"))
    }

    fn value(&mut self) -> Result<String, String> {
        self.skip_space();
        let word = self.word().to_owned();
        self.skip_space();
        if self.rest.is_empty() || self.rest.starts_with(',') || self.rest.starts_with(')') {
            Ok(word)
        } else {
            Err(format!(
                "found '{}', expected: ',' or 'end of string'",
                self.word_or_symbol()
            ))
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        self.skip_space();
        if !self.take("(") {
            return Err(format!("found '{}' expected: '('", self.word_or_symbol()));
        }
        let mut values = vec![self.value()?];
        while self.take(",") {
            values.push(self.value()?);
        }
        if self.take(")") {
            Ok(values)
        } else {
            Err("found '', expected: ',' or ')'".to_owned())
        }
    }

    fn word(&mut self) -> &'a str {
        let end = self
            .rest
            .find(|letter: char| letter.is_whitespace() || "=!,()<>".contains(letter))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn word_or_symbol(&mut self) -> String {
        let word = self.word();
        if word.is_empty() {
            self.rest.chars().take(1).collect()
        } else {
            word.to_owned()
        }
    }

    fn take(&mut self, symbol: &str) -> bool {
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

/// One condition on a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    pub field: FieldName,
    pub value: String,
    pub equal: bool,
}

/// A field that a selector names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldName {
    Name,
    Namespace,
    /// The place in [`Kind::fields`].
    Selectable(usize),
}

/// All terms must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(pub Vec<FieldTerm>);

impl FieldSelector {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that a field must have, if the selector demands one.
    pub fn exact(&self, field: FieldName) -> Option<&str> {
        self.0
            .iter()
            .find(|term| term.field == field && term.equal)
            .map(|term| term.value.as_str())
    }

    /// Whether fields, given by a look-up, satisfy all terms.
    pub fn matches<'a>(&self, get: impl Fn(FieldName) -> &'a str) -> bool {
        self.0
            .iter()
            .all(|term| (get(term.field) == term.value) == term.equal)
    }

    /// Reads the text of a query parameter, like `metadata.name=a,status.phase!=Failed`.
    pub fn parse(text: &str, kind: &Kind) -> Result<Self, ApiError> {
        let mut terms = Vec::new();
        for RawTerm { name, value, equal } in raw_terms(text)? {
            let field = match name.as_str() {
                "metadata.name" => FieldName::Name,
                "metadata.namespace" if kind.namespaced => FieldName::Namespace,
                name => kind
                    .fields
                    .iter()
                    .position(|field| field.name == name && field.offered)
                    .map(FieldName::Selectable)
                    .ok_or_else(|| {
                        ApiError::bad_request(format!("field label not supported: {name}"))
                    })?,
            };
            terms.push(FieldTerm {
                field,
                value,
                equal,
            });
        }
        Ok(Self(terms))
    }
}

/// One condition as it was written, about a field that nobody may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawTerm {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) equal: bool,
}

/// The terms of a field selector of any kind. Lists and the question who may list read a selector by this alone:
/// if they understood it differently, somebody would see more than was permitted.
pub(crate) fn raw_terms(text: &str) -> Result<Vec<RawTerm>, ApiError> {
    let parts = split_escaped(text).into_iter();
    parts
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, value, equal) = split_term(&part).ok_or_else(|| {
                ApiError::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                ))
            })?;
            Ok(RawTerm {
                name: name.to_owned(),
                value: unescape(value),
                equal,
            })
        })
        .collect()
}

/// Splits at commas that no backslash stands before.
fn split_escaped(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for letter in text.chars() {
        if letter == ',' && !escaped {
            parts.push(String::new());
            continue;
        }
        escaped = letter == '\\' && !escaped;
        if let Some(last) = parts.last_mut() {
            last.push(letter);
        }
    }
    parts
}

fn split_term(part: &str) -> Option<(&str, &str, bool)> {
    let at = part.find(['=', '!'])?;
    let (name, rest) = part.split_at(at);
    let rest = rest
        .strip_prefix("!=")
        .map(|value| (value, false))
        .or_else(|| {
            rest.strip_prefix("==")
                .or_else(|| rest.strip_prefix('='))
                .map(|value| (value, true))
        })?;
    Some((name, rest.0, rest.1))
}

fn unescape(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' {
            plain.extend(letters.next());
        } else {
            plain.push(letter);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        LabelSelector::parse(selector).unwrap().matches(|key| {
            labels
                .iter()
                .find(|(name, _)| *name == key)
                .map(|(_, value)| *value)
        })
    }

    #[test]
    fn a_label_selector_has_all_forms_of_kubectl() {
        let labels = [("app", "web"), ("tier", "front"), ("n", "5")];
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web", true),
            ("app = web , tier = front", true),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (db, web)", true),
            ("app notin (db,web)", false),
            ("other notin (a)", true),
            ("app", true),
            ("!app", false),
            ("!other", true),
            ("other", false),
            ("n>4", true),
            ("n<5", false),
            ("app=", false),
            ("x in (),!y", false),
        ] {
            assert_eq!(selects(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn a_broken_label_selector_is_a_bad_request() {
        for text in ["app in", "app in (a", "=a", "a b", "a,", "n>x", "a in b"] {
            assert_eq!(LabelSelector::parse(text).unwrap_err().code, 400, "{text}");
        }
    }

    #[test]
    fn a_field_selector_knows_the_fields_of_its_kind() {
        let registry = crate::registry::Registry::builtin();
        let kinds = registry.kinds();
        let pods = kinds.resource("", "v1", "pods").unwrap();
        let selector = FieldSelector::parse("spec.nodeName=a,status.phase!=Failed", pods).unwrap();
        assert_eq!(selector.exact(FieldName::Selectable(0)), Some("a"));
        assert!(
            selector.matches(|field| if field == FieldName::Selectable(0) {
                "a"
            } else {
                "Running"
            })
        );
        assert!(
            !selector.matches(|field| if field == FieldName::Selectable(0) {
                "a"
            } else {
                "Failed"
            })
        );
        let error = FieldSelector::parse("spec.foo=1", pods).unwrap_err();
        assert_eq!(error.message, "field label not supported: spec.foo");
        assert_eq!(
            FieldSelector::parse("metadata.name", pods)
                .unwrap_err()
                .code,
            400
        );
    }

    #[test]
    fn commas_in_a_field_selector_can_be_escaped() {
        let registry = crate::registry::Registry::builtin();
        let kinds = registry.kinds();
        let pods = kinds.resource("", "v1", "pods").unwrap();
        let selector = FieldSelector::parse(r"metadata.name=a\,b", pods).unwrap();
        assert_eq!(selector.exact(FieldName::Name), Some("a,b"));
    }
}
