//! Where a package's sources come from.

/// One source of a package, pinned to its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A commit of a git repository. A warning tells when `origin`, the branch or tag it was taken
    /// from, has moved.
    Git {
        url: String,
        commit: String,
        origin: String,
    },
    /// The committed state of a repository beside the recipe: its tracked files must be clean.
    GitLocal { path: String },
    /// A file, as it is. `file://` paths start at the package's folder.
    Url { url: String, sha1: String },
    /// An archive, unpacked without its first folder.
    UrlExtract { url: String, sha1: String },
}
