//! The nouns of Transom: operating systems, builds, labels, places. Nothing here does I/O or reads a
//! clock, so every rule is a table or a function that a test can walk.

pub mod layout;
pub mod os;
pub mod windows;
