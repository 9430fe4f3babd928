//! A shim at rest gives back what it can read again: the pages of its program. The binary is large, and there is
//! a shim for every pod.
//!
//! Invariant: only pages that nobody wrote to are given back; the kernel reads them from the file when they are
//! needed again.

#![expect(
    unsafe_code,
    reason = "pages are given back by madvise, which has no safe form"
)]

use rustix::mm::{Advice, madvise};

/// Gives back the pages of program and libraries that are as they are in their files.
pub(super) fn give_back_pages() {
    let Ok(text) = fs_err::read_to_string("/proc/self/smaps") else {
        return;
    };
    for (start, end) in clean_mappings(&text) {
        // SAFETY: these are mappings of files that may only be read, none of whose pages differ from the file;
        // whoever touches one afterwards gets the same content again.
        let _ = unsafe {
            madvise(
                std::ptr::with_exposed_provenance_mut(start),
                end - start,
                Advice::LinuxDontNeed,
            )
        };
    }
}

/// Mappings of files that can only be read, without a page of their own.
fn clean_mappings(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut current = None;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some((start, end)) = first.split_once('-') {
            let range = usize::from_str_radix(start, 16)
                .ok()
                .zip(usize::from_str_radix(end, 16).ok());
            let may_only_read = words
                .next()
                .is_some_and(|access| access.starts_with("r-") && access.ends_with('p'));
            let is_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
            current = range.filter(|_| may_only_read && is_file);
        } else if first == "Private_Dirty:" && words.next() == Some("0") {
            found.extend(current.take());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_equals_its_file_is_given_back() {
        let text = "\
1000-3000 r-xp 00000000 fe:00 1   /bin/program
Private_Clean:       4 kB
Private_Dirty:       0 kB
3000-4000 r--p 00002000 fe:00 1   /bin/program
Private_Dirty:       4 kB
4000-5000 rw-p 00003000 fe:00 1   /bin/program
Private_Dirty:       0 kB
5000-6000 r--p 00000000 00:00 0
Private_Dirty:       0 kB
7000-8000 r-xp 00000000 00:00 0   [vdso]
Private_Dirty:       0 kB
8000-9000 r--s 00000000 fe:00 2   /shared
Private_Dirty:       0 kB
";
        assert_eq!(clean_mappings(text), [(0x1000, 0x3000)]);
    }
}
