//! Wine 10 beside whatever Wine the system has, and the Windows machines made with it. Debian 12's own
//! Wine 8 lacks a library that every Rust program loads.

pub(crate) mod install;
pub(crate) mod machine;
pub(crate) mod sources;
pub(crate) mod template;
pub(crate) mod winrun;
