//! The conversation between `transom service` and the daemon: one JSON document per line.

pub mod protocol;
