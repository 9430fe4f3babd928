//! Windows builds, their marketing names, and which container build runs on which host build. A
//! build is compared by number; names are only for people.

mod compatibility;
mod release;
mod version;

pub use compatibility::{HostNeed, Isolation, Reason, Verdict, compatibility};
pub use release::{Channel, Date, Product, RELEASES, Release, release};
pub use version::{ParseVersionError, VersionFault, WindowsVersion};

#[cfg(test)]
mod tests;
