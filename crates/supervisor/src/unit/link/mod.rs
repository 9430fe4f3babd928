//! Symbolic links, where the machine we run on has ones that work.

#[cfg(unix)]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use linux::create_symbolic_link;
#[cfg(windows)]
pub(super) use windows::create_symbolic_link;
