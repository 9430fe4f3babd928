//! What somebody wants to do, in the terms that rules are written in.
//!
//! Either a resource is meant or a path, never both.

use std::sync::Arc;

use crate::{access::authentication::User, status::ApiError};

/// One question: may this user do that?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    pub user: Arc<User>,
    pub verb: String,
    pub target: Target,
}

/// What it is to be done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Resource(Resource),
    /// A path that leads to no resource, like `/metrics`.
    Path(String),
}

/// A resource, or all of them that fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    pub group: String,
    pub version: String,
    /// The plural.
    pub resource: String,
    pub subresource: String,
    /// Empty for the whole cluster.
    pub namespace: String,
    /// Empty for all.
    pub name: String,
    /// What a list is narrowed to, as `key = value`.
    pub fields: Vec<(String, String)>,
}

impl Resource {
    /// The resource as rules name it: `pods`, or `pods/log`.
    pub fn combined(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

impl Attributes {
    pub fn resource(
        user: impl Into<Arc<User>>,
        verb: impl Into<String>,
        resource: Resource,
    ) -> Self {
        Self {
            user: user.into(),
            verb: verb.into(),
            target: Target::Resource(resource),
        }
    }

    pub fn path(
        user: impl Into<Arc<User>>,
        verb: impl Into<String>,
        path: impl Into<String>,
    ) -> Self {
        Self {
            user: user.into(),
            verb: verb.into(),
            target: Target::Path(path.into()),
        }
    }

    /// The answer to somebody who may not.
    pub fn forbidden(&self, reason: &str) -> ApiError {
        let user = &self.user.name;
        let because = |sentence: String| {
            if reason.is_empty() {
                sentence
            } else {
                format!("{sentence}: {reason}")
            }
        };
        match &self.target {
            Target::Path(path) => {
                let sentence = format!("User {user:?} cannot {} path {path:?}", self.verb);
                ApiError::forbidden("", "", "", &because(sentence))
            }
            Target::Resource(about) => {
                let place = if about.namespace.is_empty() {
                    "at the cluster scope".to_owned()
                } else {
                    format!("in the namespace {:?}", about.namespace)
                };
                let sentence = format!(
                    "User {user:?} cannot {} resource {:?} in API group {:?} {place}",
                    self.verb,
                    about.combined(),
                    about.group,
                );
                ApiError::forbidden(
                    &about.group,
                    &about.resource,
                    &about.name,
                    &because(sentence),
                )
            }
        }
    }
}

/// An answer, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// Nobody else is asked.
    Deny,
    NoOpinion,
}

/// What an authorizer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub decision: Decision,
    pub reason: String,
}

impl Verdict {
    pub fn allow(reason: impl Into<String>) -> Self {
        Self {
            decision: Decision::Allow,
            reason: reason.into(),
        }
    }

    pub fn no_opinion(reason: impl Into<String>) -> Self {
        Self {
            decision: Decision::NoOpinion,
            reason: reason.into(),
        }
    }

    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}
