//! What the query of a request asks for.
//!
//! A query that cannot be read is a bad request; one that asks for what is not there is invalid, in the words that
//! its verb has for it.

use crate::{
    field::{FieldError, FieldErrorKind, Path},
    http::path::decode,
    registry::Verb,
    schema::FieldValidation,
    status::ApiError,
};

/// How long the name of a manager may be, in bytes.
const LONGEST_MANAGER: usize = 128;

/// How a list's `resourceVersion` is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    NotOlderThan,
    Exact,
}

/// All query parameters that have a meaning.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub limit: Option<usize>,
    pub continues: String,
    pub resource_version: String,
    pub version_match: Option<VersionMatch>,
    pub label_selector: String,
    pub field_selector: String,
    pub watch: bool,
    pub timeout_seconds: Option<u64>,
    pub bookmarks: bool,
    pub initial_events: Option<bool>,
    pub dry_run: bool,
    pub field_manager: String,
    pub field_validation: FieldValidation,
    pub force: Option<bool>,
    pub grace_period_seconds: Option<i64>,
    pub propagation_policy: Option<String>,
    pub pretty: bool,
    pub include_object: String,
    /// Everything, also what has no field here: for logs, exec and reviews.
    pub all: Vec<(String, String)>,
    /// What is wrong with parameters that not every verb looks at.
    pub(crate) faults: Vec<FieldError>,
}

impl Options {
    pub fn parse(query: &str) -> Result<Self, ApiError> {
        let mut options = Self {
            all: pairs(query)?,
            ..Self::default()
        };
        for (name, value) in options.all.clone() {
            options.take(&name, &value)?;
        }
        Ok(options)
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        match name {
            "limit" => {
                let limit: i64 = number(name, value)?;
                self.limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
            }
            "continue" => value.clone_into(&mut self.continues),
            "resourceVersion" => value.clone_into(&mut self.resource_version),
            "resourceVersionMatch" => {
                self.version_match = match value {
                    "" => None,
                    "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                    "Exact" => Some(VersionMatch::Exact),
                    other => {
                        self.faults.push(FieldError::not_supported(
                            &Path::new(name),
                            other,
                            &["Exact", "NotOlderThan", ""],
                        ));
                        None
                    }
                };
            }
            "labelSelector" => value.clone_into(&mut self.label_selector),
            "fieldSelector" => value.clone_into(&mut self.field_selector),
            "watch" => self.watch = flag(value),
            "timeoutSeconds" if !value.is_empty() => {
                self.timeout_seconds = u64::try_from(number(name, value)?)
                    .ok()
                    .filter(|seconds| *seconds > 0);
            }
            "allowWatchBookmarks" => self.bookmarks = flag(value),
            "sendInitialEvents" => self.initial_events = Some(flag(value)),
            "dryRun" => match value {
                "" => {}
                "All" => self.dry_run = true,
                other => self.faults.push(dry_run_fault([other])),
            },
            "fieldManager" => {
                if value.len() > LONGEST_MANAGER {
                    let fault = FieldError::too_long(&Path::new(name), LONGEST_MANAGER);
                    self.faults.push(fault);
                }
                value.clone_into(&mut self.field_manager);
            }
            "fieldValidation" => {
                self.field_validation = FieldValidation::parse(value).unwrap_or_else(|| {
                    self.faults.push(FieldError::not_supported(
                        &Path::new(name),
                        value,
                        &["", "Ignore", "Strict", "Warn"],
                    ));
                    FieldValidation::default()
                });
            }
            "force" => self.force = Some(flag(value)),
            "gracePeriodSeconds" if !value.is_empty() => {
                self.grace_period_seconds = Some(number(name, value)?);
            }
            "propagationPolicy" if !value.is_empty() => {
                self.propagation_policy = Some(value.to_owned());
            }
            "pretty" => self.pretty = flag(value),
            "includeObject" => value.clone_into(&mut self.include_object),
            _ => {}
        }
        Ok(())
    }
}

impl Options {
    /// Whether the parameters that a verb looks at are ones that it knows.
    pub fn check(&self, verb: Verb) -> Result<(), ApiError> {
        let looked_at: &[(&str, &[&str])] = match verb {
            Verb::Get => &[],
            Verb::List | Verb::Watch => &[LISTS],
            Verb::Delete => &[DELETIONS],
            Verb::DeleteCollection => &[DELETIONS, LISTS],
            Verb::Create => &[("CreateOptions", WRITES)],
            Verb::Update => &[("UpdateOptions", WRITES)],
            Verb::Patch => &[("PatchOptions", WRITES)],
        };
        for (kind, parameters) in looked_at {
            let is_looked_at = |fault: &&FieldError| parameters.contains(&fault.path.as_str());
            let faults: Vec<FieldError> =
                self.faults.iter().filter(is_looked_at).cloned().collect();
            if !faults.is_empty() {
                return Err(invalid_options(kind, &faults));
            }
        }
        Ok(())
    }
}

/// The parameters of every write.
const WRITES: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const LISTS: (&str, &[&str]) = ("ListOptions", &["resourceVersionMatch"]);
const DELETIONS: (&str, &[&str]) = ("DeleteOptions", &["dryRun"]);

/// Faults of options, which have a kind but no name.
pub(crate) fn invalid_options(kind: &str, faults: &[FieldError]) -> ApiError {
    ApiError::invalid("meta.k8s.io", kind, "", faults)
}

/// A mode of a dry run that is none. Upstream repeats the list in the notation of Go.
pub(crate) fn dry_run_fault<'a>(modes: impl IntoIterator<Item = &'a str>) -> FieldError {
    let modes: Vec<String> = modes.into_iter().map(|mode| format!("{mode:?}")).collect();
    FieldError {
        kind: FieldErrorKind::NotSupported,
        path: Path::new("dryRun"),
        value: None,
        detail: format!(
            "[]string{{{}}}: supported values: \"All\"",
            modes.join(", ")
        ),
    }
}

/// A flag of a query: given without a value it is set.
fn flag(value: &str) -> bool {
    !matches!(value, "0" | "false" | "f" | "F" | "FALSE" | "False")
}

fn number(name: &str, value: &str) -> Result<i64, ApiError> {
    value
        .parse()
        .map_err(|_| ApiError::bad_request(format!("{name}: {value:?} is not a number")))
}

fn pairs(query: &str) -> Result<Vec<(String, String)>, ApiError> {
    query
        .split('&')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let part = part.replace('+', " ");
            let (name, value) = part.split_once('=').unwrap_or((&part, ""));
            match (decode(name), decode(value)) {
                (Some(name), Some(value)) => Ok((name, value)),
                _ => Err(ApiError::bad_request(format!(
                    "the query has a broken part: {part:?}"
                ))),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_kubectl_is_understood() {
        let options = Options::parse(
            "allowWatchBookmarks=true&fieldSelector=metadata.name%3Dp1&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=400&watch=true&labelSelector=a+in+%28b%29",
        )
        .unwrap();
        assert!(options.watch && options.bookmarks);
        assert_eq!(options.initial_events, Some(true));
        assert_eq!(options.field_selector, "metadata.name=p1");
        assert_eq!(options.label_selector, "a in (b)");
        assert_eq!(options.timeout_seconds, Some(400));
    }

    #[test]
    fn a_query_that_makes_no_sense_is_a_bad_request() {
        for query in ["limit=x", "a=%z"] {
            assert_eq!(Options::parse(query).unwrap_err().code, 400, "{query}");
        }
    }

    #[test]
    fn a_value_that_a_verb_does_not_know_is_invalid_in_its_words() {
        let manager = format!("fieldManager={}", "m".repeat(129));
        for (query, verb, message) in [
            (
                "dryRun=Some",
                Verb::Create,
                r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: []string{"Some"}: supported values: "All""#,
            ),
            (
                "dryRun=Some",
                Verb::DeleteCollection,
                r#"DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: []string{"Some"}: supported values: "All""#,
            ),
            (
                "fieldValidation=Maybe",
                Verb::Update,
                r#"UpdateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn""#,
            ),
            (
                &manager,
                Verb::Patch,
                r#"PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes"#,
            ),
            (
                "resourceVersionMatch=1",
                Verb::List,
                r#"ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "1": supported values: "Exact", "NotOlderThan", """#,
            ),
        ] {
            let options = Options::parse(query).unwrap();
            let error = options.check(verb).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (422, message));
            assert_eq!(options.check(Verb::Get), Ok(()), "{query}");
        }
    }

    #[test]
    fn a_watch_without_a_value_is_a_watch() {
        assert!(Options::parse("watch").unwrap().watch);
        assert!(Options::parse("watch=1").unwrap().watch);
        assert!(!Options::parse("watch=false").unwrap().watch);
    }
}
