//! Packages that somebody else has built already.

use std::error::Error;

use camino::Utf8Path;
use transom_model::Os;
use transom_model::package::PackageId;

/// A place that may have packages ready.
pub trait Repository: Sync {
    /// Puts the archive of a package at `destination`, whose folder exists. `false`: it has none. What it
    /// gives is unpacked and compared with its manifest before it is used.
    fn fetch(
        &self,
        id: &PackageId,
        os: Os,
        destination: &Utf8Path,
    ) -> Result<bool, Box<dyn Error + Send + Sync>>;
}
