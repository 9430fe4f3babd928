//! Whether an object may be: upstream's rules for every built-in kind, with its field paths and sentences.
//!
//! All faults are reported at once, in upstream's order; nothing here looks beyond the objects it is given.

pub(crate) mod amounts;
mod apps;
mod autoscaling;
mod basic;
mod batch;
mod claims;
pub(crate) mod cluster;
mod cron;
mod endpoints;
mod extensions;
pub(crate) mod fault;
pub(crate) mod formats;
mod kinds;
mod limits;
pub(crate) mod metadata;
mod networking;
mod pod;
pub(crate) mod quantities;
mod rbac;
pub(crate) mod read;
pub(crate) mod selector;
mod service;
mod sources;
#[cfg(test)]
mod tests;

pub use kinds::{create, status, subresource, update};
