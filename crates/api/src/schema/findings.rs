//! What a strict reader has to say about an object that it could read anyway.
//!
//! A request says whether findings refuse it, warn about it, or are ignored.

use crate::status::ApiError;

/// Upstream stops counting here, and so do we: the list comes from outside.
const MOST: usize = 100;

/// Sentences, each once, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(Vec<String>);

/// What findings lead to: the `fieldValidation` of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Strict,
    #[default]
    Warn,
    Ignore,
}

impl FieldValidation {
    /// Reads the parameter of a request.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "Strict" => Some(Self::Strict),
            "Warn" | "" => Some(Self::Warn),
            "Ignore" => Some(Self::Ignore),
            _ => None,
        }
    }
}

impl Findings {
    pub fn unknown(&mut self, path: &str) {
        self.add(format!("unknown field {path:?}"));
    }

    pub fn duplicate(&mut self, path: &str) {
        self.add(format!("duplicate field {path:?}"));
    }

    fn add(&mut self, finding: String) {
        if self.0.len() < MOST && !self.0.contains(&finding) {
            self.0.push(finding);
        }
    }

    /// Adds what others found later.
    pub fn extend(&mut self, later: Self) {
        for finding in later.0 {
            self.add(finding);
        }
    }

    /// The same findings, made in an object that is at `path` of another one.
    #[must_use]
    pub(super) fn below(self, path: &str) -> Self {
        let inside = |finding: String| finding.replacen(" \"", &format!(" \"{path}."), 1);
        Self(self.0.into_iter().map(inside).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sentences, as warnings have them.
    pub fn sentences(&self) -> &[String] {
        &self.0
    }

    /// The warnings that a request gets for these findings, or its refusal.
    pub fn judge(
        self,
        validation: FieldValidation,
        kind: &str,
        version: &str,
    ) -> Result<Vec<String>, ApiError> {
        match validation {
            FieldValidation::Strict if !self.0.is_empty() => Err(cannot_be_handled(
                kind,
                version,
                &format!("strict decoding error: {}", self.0.join(", ")),
            )),
            FieldValidation::Strict | FieldValidation::Ignore => Ok(Vec::new()),
            FieldValidation::Warn => Ok(self.0),
        }
    }
}

/// The refusal of a body that is not the object it should be.
pub fn cannot_be_handled(kind: &str, version: &str, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
    ))
}
