//! What is decided about a change after it is authorised: plugins complete objects, then accept or refuse them.
//!
//! Nothing here reads from disk or network, and nothing waits. What a plugin wants written besides the
//! object itself is part of the [`Outcome`], for the write path to commit in the same transaction.

mod accounts;
mod certificates;
mod chain;
mod edit;
mod ingress;
mod lifecycle;
mod limits;
mod nodes;
mod priority;
mod quota;
mod runtime;
mod security;
mod storage;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

pub use self::{chain::Chain, quota::QuotaChange};
use crate::{status::ApiError, validation::read::Read};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// A request on its way through the chain.
#[derive(Clone, Debug)]
pub struct Attributes {
    pub operation: Operation,
    pub group: String,
    pub version: String,
    pub kind: String,
    /// The plural.
    pub resource: String,
    /// Empty for the resource itself.
    pub subresource: String,
    /// Empty for what is not in a namespace.
    pub namespace: String,
    pub name: String,
    /// The object as it would be written; null for a deletion. Defaults are in it already.
    pub object: Value,
    /// What is there now, for updates and deletions.
    pub old: Option<Arc<Value>>,
    pub user: String,
    pub user_groups: Vec<String>,
    /// Nothing will be written.
    pub dry_run: bool,
}

impl Attributes {
    /// Whether this is about a resource of this group, and about none of its subresources.
    fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind && self.subresource.is_empty()
    }

    fn creates(&self, group: &str, kind: &str) -> bool {
        self.operation == Operation::Create && self.is(group, kind)
    }

    fn updates(&self, group: &str, kind: &str) -> bool {
        self.operation == Operation::Update && self.is(group, kind)
    }

    fn old(&self) -> &Value {
        self.old.as_deref().unwrap_or(&Value::Null)
    }

    /// The name for messages: an object that is not named yet has the start of a name.
    fn shown_name(&self) -> &str {
        let metadata = &self.object["metadata"];
        [
            self.name.as_str(),
            metadata.text("name"),
            metadata.text("generateName"),
        ]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default()
    }

    fn refuse(&self, why: impl AsRef<str>) -> ApiError {
        ApiError::forbidden(&self.group, &self.resource, self.shown_name(), why.as_ref())
    }
}

/// Other objects, as the cache of the server has them.
pub trait Objects {
    /// One object. The namespace is empty for what is not in one.
    fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;
    /// All objects of a kind in a namespace, or everywhere if the namespace is empty.
    fn list(&self, group: &str, kind: &str, namespace: &str) -> Vec<Arc<Value>>;
}

/// Whether the user of the request may do something else as well.
pub trait Access {
    fn allows(&self, verb: &str, group: &str, resource: &str, name: &str) -> bool;
}

/// What plugins may look at.
pub struct Context<'a> {
    pub objects: &'a dyn Objects,
    pub access: &'a dyn Access,
    /// Makes the random end of a name.
    pub suffix: &'a dyn Fn() -> String,
}

/// What else comes of a request that is accepted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Sentences for the client, without a code.
    pub warnings: Vec<String>,
    /// Keys and values for the audit log.
    pub audit: Vec<(String, String)>,
    /// To be committed with the object, each only if its quota is still as it was.
    pub quotas: Vec<QuotaChange>,
}

/// A step of the chain.
pub trait Plugin: Send + Sync {
    /// As upstream names it.
    fn name(&self) -> &'static str;

    /// Completes the object, or refuses it.
    fn mutate(&self, request: &mut Attributes, context: &Context<'_>) -> Result<(), ApiError> {
        let _ = (request, context);
        Ok(())
    }

    /// Accepts the object as it has become, or refuses it.
    fn validate(
        &self,
        request: &Attributes,
        context: &Context<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), ApiError> {
        let _ = (request, context, outcome);
        Ok(())
    }
}
