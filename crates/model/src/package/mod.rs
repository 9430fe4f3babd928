//! The identifiers of packages: names, versions, ids, variants, and the accounts that packages ask for.
//! A value of these types is valid: there is no way to hold a bad one.

mod account;
mod id;
mod variant;

pub use account::{GroupName, UserName};
pub use id::{PackageId, PackageName, PackageVersion};
pub use variant::Variant;

/// Why a text is not the identifier that it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentifierError {
    #[error(
        "`{text}` is not a package name: it starts with a letter, a digit or one of `@_+`, and \
         consists of letters, digits and `@._+-`"
    )]
    Name { text: String },
    #[error("`{text}` is not a package version: it consists of letters, digits and `@_+:.`")]
    Version { text: String },
    #[error(
        "`{text}` is not a package id: it is a name and a version with exactly one `--` between \
         them"
    )]
    Id { text: String },
    #[error(
        "`{text}` is not a variant: it consists of letters, digits and `@._+-`, and starts with \
         none of `.-`"
    )]
    Variant { text: String },
    #[error("`{text}` is not a user name for a package: it is `dcos_` and then some of `a-z0-9_`")]
    User { text: String },
    #[error(
        "`{text}` is not a group name: it starts with one of `a-z_` and consists of `a-z0-9_-`"
    )]
    Group { text: String },
}

/// Whether `text` begins with a character that `first` accepts, and all of it is accepted by `rest`.
fn is_made_of(text: &str, first: fn(u8) -> bool, rest: fn(u8) -> bool) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(first) && bytes.all(rest)
}

#[cfg(test)]
mod tests;
