//! What only Windows has.

use super::harness::Case;

pub(crate) fn cases() -> Vec<Case> {
    Vec::new()
}
