//! An agent at work on an API server in the same process, with a runtime that runs nothing.
#![expect(clippy::unwrap_used, reason = "what tests share panics as tests do")]

mod cluster;
mod health;
mod images;
mod life;
mod offline;
mod pressure;
mod resize;
mod server;
mod volumes;
