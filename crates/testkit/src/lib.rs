//! Whole hosts for tests: Linux hosts as network namespaces, Windows hosts as Wine prefixes in such
//! namespaces. Whatever a test made is gone when it ends, however it ends.
//!
//! A [`Lab`] is a switch with hosts on it. Everything of a lab (processes, mounts, links, disks)
//! lives in namespaces that only the lab's keeper process holds, and the keeper ends when the pipe
//! from the test process closes. So there is nothing to sweep: a test killed with `SIGKILL` leaves
//! no process, no mount, no interface and no folder.
//!
//! A host sees the machine's own file system underneath (so that Debian's programs are there) and a
//! disk of its own on top of it: what it writes is private and survives [`Host::stop`]. Its `/run`,
//! `/tmp`, `/dev`, `/proc` and `/sys` are its own and are new at each start.
//!
//! A host's disk is an overlay, and an overlay takes none as its upper layer: whoever runs a
//! container runtime on a host mounts a tmpfs for its data there first.
#![cfg(target_os = "linux")]

mod environment;
mod eventually;
mod host;
mod http;
mod init;
mod lab;
mod namespaces;
mod network;
mod registry;
mod tree;
mod wine;

pub use environment::{
    ECHO, WINDOWS_ECHO, WINDOWS_EXE, WINE, echo_program, windows_echo_program,
    windows_transom_program,
};
pub use eventually::eventually;
pub use host::{Host, HostCommand, Output, Process, Running};
pub use http::Response;
pub use lab::Lab;
pub use registry::{Registry, digest};
