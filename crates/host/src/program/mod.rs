//! This program itself: which files it takes to run it where nothing else is, as in an image of its own.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use std::io;

use camino::Utf8PathBuf;

/// A file that the program needs, and where it looks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it has to be.
    pub path: Utf8PathBuf,
    /// Where it is on this machine.
    pub file: Utf8PathBuf,
}

/// The program, and the files besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    pub program: Utf8PathBuf,
    /// Empty for a program that was linked statically, and on Windows, whose images have the rest.
    pub besides: Vec<Part>,
}

/// What this program consists of.
pub fn parts() -> io::Result<Parts> {
    let program = std::env::current_exe()?;
    let program = Utf8PathBuf::try_from(program).map_err(io::Error::other)?;
    #[cfg(target_os = "linux")]
    let besides = linux::besides(&program)?;
    #[cfg(windows)]
    let besides = windows::besides();
    Ok(Parts { program, besides })
}
