//! Package archives: written byte for byte the same from the same files, and unpacked only if each byte
//! is what the archive's own manifest says. `tar.zst` is for Linux, `zip` for Windows; either can be
//! made and read on either system.

mod compression;
mod digest;
mod manifest;
mod pack;
mod sbom;
mod tar_writer;
mod unpack;
mod verifier;
mod walk;
mod zip_writer;

use transom_model::Os;

pub use compression::{Format, FormatError};
pub use digest::{Digest, DigestError};
pub use manifest::{Kind, Manifest, ManifestEntry, ManifestError};
pub use pack::{Description, PackError, Packed, pack};
pub use sbom::{Origin, Pin};
pub(crate) use unpack::ahead;
pub use unpack::{Unpack, UnpackError, Unpacked, default_limits, read_manifest, unpack};
pub use verifier::VerifyError;

/// The first entry of every archive: what the others are.
pub const MANIFEST: &str = "manifest.json";
/// What the package was made of, as a `CycloneDX` bill of materials.
pub const SBOM: &str = "sbom.cdx.json";
/// How the package was built.
pub const BUILD_INFO: &str = "buildinfo.full.json";

/// What the file name of an archive for `os` ends with.
pub fn extension(os: Os) -> &'static str {
    match os {
        Os::Linux => "tar.zst",
        Os::Windows => "zip",
    }
}
