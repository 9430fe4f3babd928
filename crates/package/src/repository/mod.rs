//! Repositories: archives and package lists under signed metadata that expires and never goes back, in
//! a folder or on any web server. Invariant: a reader sees all of a change or nothing of it, because
//! `timestamp.json` is written last and names everything else by version and digest.

mod bundle;
mod check;
mod client;
mod collect;
mod editor;
mod entry;
mod error;
mod identity;
mod keys;
mod metadata;
mod names;
mod overview;
mod packages;
mod plain;
mod rotation;
mod source;
mod trust;

pub use bundle::{BundleError, Exported, Imported, Selection, export, import, read_bundle};
pub use check::{Problem, Report, check};
pub use client::{RepositoryClient, TrustedRoot};
pub use collect::{Collected, collect};
pub use editor::{Editor, Expiry};
pub use entry::{Entry, ListEntry, PackageEntry};
pub use error::{EditError, RepositoryError};
pub use identity::{Identity, IdentityError};
pub use keys::{KeyError, KeyRing, SigningKey};
pub use metadata::parse_metadata;
pub use names::{Form, PackageListId, PackageListIdError, location};
pub use overview::{Overview, RoleOverview};
pub use packages::{Added, Addition};
pub use plain::PlainRepository;
pub use rotation::{Keyholders, RootChange, RootOutcome};
pub use tough::schema::RoleType;
