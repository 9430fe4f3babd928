//! What only Linux has.

pub const TESTS: &[(&str, fn())] = &[];
