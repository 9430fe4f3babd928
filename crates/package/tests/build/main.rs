//! Building packages, and the archives that come of it: on this system's real files.
#![expect(clippy::unwrap_used, reason = "what tests share panics as tests do")]

mod archive;
mod builds;
