//! The conversation between `transom service` and the daemon: one JSON document per line.

pub mod client;
pub mod protocol;

/// No request and no answer is longer.
pub const LONGEST_LINE: usize = 64 << 20;
