//! The Kubernetes API over HTTP, from one table of kinds and one store.
//!
//! Only this crate opens the store. Everything else in the cluster, our own controllers included, is a
//! client of the router made here.

pub mod access;
pub mod admission;
pub mod apply;
pub mod cache;
mod convert;
pub mod defaults;
mod discovery;
pub mod field;
mod fields;
mod guard;
pub mod http;
mod metrics;
mod object;
mod objects;
pub mod openapi;
pub mod patch;
mod pipeline;
pub mod protobuf;
mod proxy;
pub mod registry;
pub mod schema;
pub mod selector;
pub mod server;
mod state;
pub mod status;
pub mod storage;
pub mod table;
mod telemetry;
pub mod validation;
mod verbs;

pub use guard::Guard;
pub use state::{Api, Clock, Settings};
