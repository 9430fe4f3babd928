//! The scheduler at work on an API server in the same process.
#![expect(clippy::unwrap_used, reason = "what tests share panics as tests do")]

mod cluster;
mod data;
mod placing;
mod preempting;
mod trouble;
