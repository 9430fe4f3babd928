//! Plain symbolic links.

use std::io;

use camino::Utf8Path;

pub(crate) fn create_symbolic_link(target: &Utf8Path, link: &Utf8Path) -> io::Result<()> {
    fs_err::os::unix::fs::symlink(target, link)
}
