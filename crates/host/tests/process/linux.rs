//! What only Linux has.

pub(crate) const TESTS: &[(&str, fn())] = &[];
