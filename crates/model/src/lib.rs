//! The nouns of Transom: operating systems, builds, labels, places. Nothing here does I/O or reads a
//! clock, so every rule is a table or a function that a test can walk.

pub mod arch;
pub mod images;
pub mod labels;
pub mod layout;
pub mod node;
pub mod os;
pub mod package;
pub mod platform;
pub mod windows;

pub use arch::Arch;
pub use os::Os;
pub use platform::Platform;
