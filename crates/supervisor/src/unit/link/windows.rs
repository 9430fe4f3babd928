//! No symbolic links: they need a privilege, and units for Windows use pointer files instead.

use std::io;

use camino::Utf8Path;

pub(crate) fn create_symbolic_link(target: &Utf8Path, link: &Utf8Path) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "cannot link `{link}` to `{target}`: unit folders for Linux cannot be changed from Windows"
        ),
    ))
}
