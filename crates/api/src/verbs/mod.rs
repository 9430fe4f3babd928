//! What can be done with objects: one file for each verb.
//!
//! A verb gets a [`Call`], which is a request that was understood and permitted, and gives a [`Reply`], which
//! knows nothing of HTTP but its status code.

mod binding;
pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod eviction;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod review;
mod scale;
pub(crate) mod subresource;
pub(crate) mod update;
pub(crate) mod watch;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::{
    access::authentication::User,
    cache::{Cached, Listing, Selection},
    http::{negotiate::Form, options::Options, path::ResourcePath},
    registry::Kind,
    selector::{FieldSelector, LabelSelector},
    status::ApiError,
};

/// A request for a resource.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) kind: Arc<Kind>,
    pub(crate) path: ResourcePath,
    pub(crate) options: Options,
    pub(crate) form: Form,
    pub(crate) user: User,
    pub(crate) user_agent: String,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

/// What a verb answers.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) body: ReplyBody,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum ReplyBody {
    /// An object of the call's kind, with all metadata.
    Object(Value),
    /// An object of another type, complete with `kind` and `apiVersion`.
    Other(Value),
    Cached(Arc<Cached>),
    List(Listing, Option<String>),
}

impl Reply {
    pub(crate) fn object(code: u16, value: Value, warnings: Vec<String>) -> Self {
        Self {
            code,
            body: ReplyBody::Object(value),
            warnings,
        }
    }

    pub(crate) fn other(code: u16, value: Value) -> Self {
        Self {
            code,
            body: ReplyBody::Other(value),
            warnings: Vec::new(),
        }
    }
}

impl Call {
    /// The objects that selectors and the namespace leave.
    pub(crate) fn selection(&self) -> Result<Selection, ApiError> {
        let mut fields = FieldSelector::parse(&self.options.field_selector, &self.kind)?;
        // A watch on one object's path is a watch of its name.
        if !self.path.name.is_empty() {
            fields.0.push(crate::selector::FieldTerm {
                field: crate::selector::FieldName::Name,
                value: self.path.name.clone(),
                equal: true,
            });
        }
        Ok(Selection {
            namespace: self.path.namespace.clone(),
            labels: LabelSelector::parse(&self.options.label_selector)?,
            fields,
        })
    }

    pub(crate) fn not_found(&self, name: &str) -> ApiError {
        ApiError::not_found(&self.kind.group, &self.kind.plural, name)
    }
}
