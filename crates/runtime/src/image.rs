//! Images: what a container starts from.

use std::fmt;
use std::sync::Arc;

use transom_model::images::ImagePlatform;

use crate::images::Description;

/// An image that is here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The digest of its configuration: the same content has the same id.
    pub id: String,
    /// `name:tag`, all of them.
    pub tags: Vec<String>,
    /// `name@sha256:…`, all of them.
    pub digests: Vec<String>,
    pub size: u64,
    /// The user its configuration names: a number, a name, or neither.
    pub user: String,
    /// `linux` or `windows`.
    pub os: String,
    pub architecture: String,
    /// The build of Windows it was made for, as `10.0.20348.1668`.
    pub os_version: Option<String>,
    /// Never removed to make room.
    pub pinned: bool,
}

impl Image {
    /// Whether it was made or loaded on this node, so that no registry need have it.
    pub fn is_of_this_node(&self) -> bool {
        self.pinned || self.digests.is_empty()
    }

    /// What an image without a registry is for. Of one that was pulled, a runtime that keeps only its own node's
    /// part does not know what else there is: to tell that part would keep it from all other nodes.
    pub(crate) fn describe_local(self) -> Option<Description> {
        let is_known = !self.os.is_empty() && !self.architecture.is_empty();
        (is_known && self.digests.is_empty()).then(|| Description {
            digest: self.id,
            platforms: vec![ImagePlatform {
                os: self.os,
                architecture: self.architecture,
                os_version: self.os_version,
            }],
        })
    }
}

/// An image that is wanted.
#[derive(Clone)]
pub struct Pull {
    pub reference: String,
    /// Tried in turn; without any, the registry is asked anonymously.
    pub credentials: Vec<Credentials>,
    /// Told from time to time how far it is.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
}

impl fmt::Debug for Pull {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pull")
            .field("reference", &self.reference)
            .finish_non_exhaustive()
    }
}

/// How far a pull is. `total` grows until all layers are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// Who asks a registry. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    Password { user: String, password: String },
    Token(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials(…)")
    }
}
