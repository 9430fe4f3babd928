//! Agents whose containers are run by other programs: Debian's containerd and Docker, with images that were made
//! here and come from no registry.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what tests share panics as tests do")]

mod containerd;
mod docker;
mod image;
mod machine;
