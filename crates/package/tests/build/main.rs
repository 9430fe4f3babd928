//! Building packages, and the archives that come of it: on this system's real files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod archive;
