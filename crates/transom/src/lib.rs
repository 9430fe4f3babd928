//! The `transom` command as a library, so that tests can run it without a process.
//!
//! An `invocation` is all that a process was given. `programs` chooses the entry by the name it was
//! called by; `commands` parses the arguments; `settings` merges flags, `environment` and file; a
//! `context` carries `output`, `progress` and settings to the handler; `failure` turns what went
//! wrong into text or JSON and an exit code. Invariant: nothing but `output`, `progress`, `logging`
//! and `failure` writes to a stream, and only data goes to stdout.

pub mod arguments;
pub mod build_info;
mod client;
mod cluster;
pub mod commands;
pub mod context;
mod control_plane;
pub mod environment;
pub mod failure;
pub mod invocation;
pub mod logging;
mod long_running;
mod node;
pub mod output;
pub mod programs;
pub mod progress;
mod registries;
pub mod settings;
pub mod suggestion;
pub mod usage;

pub use programs::run;
