//! On Windows all libraries we use belong to the system, and every image has them.

use super::Part;

pub(super) fn besides() -> Vec<Part> {
    Vec::new()
}
