//! A folder held open while a tree is built in it, so that what is built lands in it and nowhere else,
//! whatever others do to the path meanwhile.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;
#[cfg(target_os = "linux")]
pub(super) use linux::FolderAnchor;
#[cfg(windows)]
pub(super) use windows::FolderAnchor;
