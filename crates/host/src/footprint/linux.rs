//! As Linux counts it: `/proc/self/statm`, in pages.

use std::io;

/// Bytes of this process that are in memory.
pub fn resident() -> io::Result<u64> {
    let text = fs_err::read_to_string("/proc/self/statm")?;
    let pages: Option<u64> = text
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok());
    let page = rustix::param::page_size() as u64;
    pages
        .and_then(|pages| pages.checked_mul(page))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, text))
}
