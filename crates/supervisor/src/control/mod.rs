//! The conversation between `transom service` and the daemon: one JSON document per line.

pub mod protocol;

pub mod client;

/// No request and no answer is longer.
pub const LONGEST_LINE: usize = 64 << 20;
