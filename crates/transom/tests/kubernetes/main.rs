//! The Kubernetes API as its users meet it: the real binary, the real kubectl, client libraries of
//! others. Invariant: every test has a server of its own, on a port of its own, and leaves no process.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what tests share panics as tests do")]

mod access;
mod changes;
mod client;
mod client_pods;
mod controllers;
mod creation;
mod durability;
mod errors;
mod figures;
mod guide;
mod images;
mod joining;
mod keys;
mod nodes;
mod python;
mod reading;
mod scheduling;
mod server;
mod starting;
mod transcript;
mod workloads;
