//! What only Windows has.

use super::harness::Case;

pub fn cases() -> Vec<Case> {
    Vec::new()
}
