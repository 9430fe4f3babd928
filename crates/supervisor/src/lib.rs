//! Runs services from systemd unit files where systemd is not: on Windows, and on Linux without it.
//!
//! `unit` reads files into values, `engine` decides (pure, no clock, no I/O), `daemon` does what the
//! engine says, `keeper` is the small process that holds one service so that the daemon may die and
//! come back without anyone noticing.

pub mod control;
pub mod daemon;
pub mod engine;
pub mod keeper;
pub mod logs;
pub mod unit;
