//! Operating system and architecture of a node, an image or a package, as data. What a node runs is
//! never `cfg!`: a Linux machine plans, renders and tests everything meant for a Windows node.

use serde::{Deserialize, Serialize};

/// The operating system of a node, an image or a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    Linux,
    Windows,
}
