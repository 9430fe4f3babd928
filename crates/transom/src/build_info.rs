//! What this binary was built from, baked in by `build.rs`. Invariant: an unknown value is absent,
//! never an invented one.

use serde::Serialize;

/// The origin of this binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildInfo {
    pub version: &'static str,
    /// The commit, when the source was a git checkout.
    pub commit: Option<&'static str>,
    /// Whether tracked files differed from the commit when the build looked.
    pub dirty: Option<bool>,
    /// The time of the commit, so that equal sources give equal binaries.
    pub build_time: Option<&'static str>,
    pub rustc: Option<&'static str>,
    pub target: Option<&'static str>,
    pub profile: Option<&'static str>,
}

impl BuildInfo {
    /// Of this very binary.
    pub fn current() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: known(env!("TRANSOM_BUILD_COMMIT")),
            dirty: known(env!("TRANSOM_BUILD_DIRTY")).map(|text| text == "true"),
            build_time: known(env!("TRANSOM_BUILD_TIME")),
            rustc: known(env!("TRANSOM_BUILD_RUSTC")),
            target: known(env!("TRANSOM_BUILD_TARGET")),
            profile: known(env!("TRANSOM_BUILD_PROFILE")),
        }
    }
}

fn known(text: &'static str) -> Option<&'static str> {
    (!text.is_empty()).then_some(text)
}
