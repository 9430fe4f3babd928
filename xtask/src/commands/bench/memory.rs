//! What processes have in memory, in the words of the kernel.

use std::path::Path;

use anyhow::{Context as _, Result};

pub(super) const MEBIBYTE: u64 = 1 << 20;

/// What a process has in memory.
pub(super) fn resident(process: u32) -> Result<u64> {
    let status = fs_err::read_to_string(format!("/proc/{process}/status"))?;
    kibibytes(&status, "VmRSS:").context("the kernel does not tell the memory of a process")
}

/// What a process has in memory, with its share of what others have, too.
pub(super) fn proportional(process: &Path) -> Option<u64> {
    let maps = fs_err::read_to_string(process.join("smaps_rollup")).ok()?;
    kibibytes(&maps, "Pss:")
}

fn kibibytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(number * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_the_words_of_the_kernel() {
        let text = "VmPeak:\t  9 kB\nVmRSS:\t    2048 kB\n";
        assert_eq!(kibibytes(text, "VmRSS:"), Some(2 * MEBIBYTE));
        assert_eq!(kibibytes(text, "VmSwap:"), None);
    }
}
