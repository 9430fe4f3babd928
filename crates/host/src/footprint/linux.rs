//! As Linux counts it: `/proc/self/statm`, in pages; `/proc/self/maps` tells which of them are code.
#![expect(unsafe_code, reason = "giving pages back has no safe form")]

use std::ffi::c_void;
use std::io;
use std::ops::Range;

use rustix::mm::{Advice, madvise};

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

/// Gives back the code that was needed to start and is not needed to go on. What is called again comes back by
/// itself, from the file.
pub fn give_back() -> io::Result<()> {
    let maps = fs_err::read_to_string("/proc/self/maps")?;
    for range in maps.lines().filter_map(code) {
        // SAFETY: the kernel told of this mapping as code of a file that nobody may write to through it. Such pages
        // are never changed, so what is read from the file again is the same; the range stays mapped.
        unsafe {
            madvise(
                std::ptr::with_exposed_provenance_mut::<c_void>(range.start),
                range.len(),
                Advice::LinuxDontNeed,
            )?;
        }
    }
    Ok(())
}

/// The addresses of a mapping, if it is code of a file. Data that the loader changed before it was made read-only is
/// not code.
fn code(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_whitespace();
    let (addresses, rights) = (words.next()?, words.next()?);
    let (start, end) = addresses.split_once('-')?;
    let inode: u64 = words.nth(2)?.parse().ok()?;
    if rights != "r-xp" || inode == 0 {
        return None;
    }
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files_is_given_back() {
        let line = |rights: &str, inode: &str| {
            code(&format!(
                "55d0a000-55d0c000 {rights} 00002000 fe:00 {inode}  /opt/transom"
            ))
        };
        assert_eq!(line("r-xp", "77"), Some(0x55d0_a000..0x55d0_c000));
        assert_eq!(line("r--p", "77"), None);
        assert_eq!(line("rwxp", "77"), None);
        assert_eq!(line("r-xp", "0"), None);
        assert_eq!(
            code("7ffd2000-7ffd4000 r-xp 00000000 00:00 0   [vdso]"),
            None
        );
        assert_eq!(code("something else"), None);
    }
}
