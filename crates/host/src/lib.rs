//! Everything that differs by operating system. Each concern is a folder: `mod.rs` says what both
//! systems promise, `linux.rs` and `windows.rs` keep the promise, `fake.rs` keeps it in memory.

pub mod access;
pub mod account;
pub mod files;
pub mod firewall;
pub mod footprint;
pub mod ipc;
pub mod machine;
pub mod notify;
pub mod process;
pub mod program;
pub mod route;
pub mod sandbox;
pub mod service;
pub mod terminal;
