//! Reading the texts that Linux tells its facts in: `meminfo`, `os-release`, `mountinfo`, `loadavg`.
//! Pure functions; text that is not understood gives None, never a guess.

use std::collections::BTreeMap;

use super::{Load, Memory};

/// Reads `/proc/meminfo`.
pub(super) fn memory(text: &str) -> Option<Memory> {
    let value = |key: &str| -> Option<u64> {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024)
    };
    Some(Memory {
        total: value("MemTotal")?,
        available: value("MemAvailable").or_else(|| value("MemFree"))?,
        swap_total: value("SwapTotal").unwrap_or(0),
        swap_free: value("SwapFree").unwrap_or(0),
    })
}

/// Reads `/proc/loadavg`.
pub(super) fn load(text: &str) -> Option<Load> {
    let mut numbers = text.split_whitespace().map(str::parse);
    Some(Load {
        one: numbers.next()?.ok()?,
        five: numbers.next()?.ok()?,
        fifteen: numbers.next()?.ok()?,
    })
}

/// Reads the assignments of `/etc/os-release`, which are quoted as a shell would.
pub(super) fn os_release(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter_map(|line| {
            let (key, value) = line.trim().split_once('=')?;
            Some((key.to_owned(), unquoted(value)))
        })
        .collect()
}

fn unquoted(value: &str) -> String {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(literal) = inner('\'') {
        return literal.to_owned();
    }
    let value = inner('"').unwrap_or(value);
    let mut text = String::with_capacity(value.len());
    let mut escaped = false;
    for c in value.chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            text.push(c);
            escaped = false;
        }
    }
    text
}

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub path: String,
    pub file_system: String,
    pub read_only: bool,
}

/// Reads `/proc/self/mountinfo`; of several mounts on one point only the last is visible.
pub(super) fn mounts(text: &str) -> Vec<Mount> {
    let mut visible: BTreeMap<String, Mount> = BTreeMap::new();
    for mount in text.lines().filter_map(mount) {
        visible.insert(mount.path.clone(), mount);
    }
    visible.into_values().collect()
}

fn mount(line: &str) -> Option<Mount> {
    let (front, back) = line.split_once(" - ")?;
    let front: Vec<&str> = front.split(' ').collect();
    let (path, options) = (front.get(4)?, front.get(5)?);
    Some(Mount {
        path: without_octal(path),
        file_system: back.split(' ').next()?.to_owned(),
        read_only: options.split(',').any(|option| option == "ro"),
    })
}

/// The kernel writes spaces and the like as `\040`.
fn without_octal(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text
            .get(at + 1..at + 4)
            .filter(|_| bytes[at] == b'\\')
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 4 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Counts the processors of `/proc/stat`.
pub(super) fn processor_count(text: &str) -> usize {
    text.lines()
        .filter(|line| {
            line.strip_prefix("cpu")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_in_bytes() {
        let text = "MemTotal:        8000 kB\nMemFree:  10 kB\nMemAvailable:    4000 kB\nSwapTotal: 0 kB\n";
        assert_eq!(
            memory(text),
            Some(Memory {
                total: 8_192_000,
                available: 4_096_000,
                swap_total: 0,
                swap_free: 0
            })
        );
        assert_eq!(memory("MemTotal: many kB"), None);
        assert_eq!(memory(""), None);
    }

    #[test]
    fn os_release_is_unquoted_as_by_a_shell() {
        let release =
            os_release("# c\nPRETTY_NAME=\"Debian \\\"12\\\"\"\nID=debian\nX='a\\b'\nbroken\n");
        assert_eq!(release["PRETTY_NAME"], "Debian \"12\"");
        assert_eq!(release["ID"], "debian");
        assert_eq!(release["X"], "a\\b");
        assert_eq!(release.len(), 3);
    }

    #[test]
    fn of_two_mounts_on_one_point_the_later_is_seen() {
        let text = "22 1 0:20 / /mnt/a\\040b rw,relatime shared:1 - ext4 /dev/sda rw\n\
                    23 1 0:21 / /mnt/a\\040b ro,relatime - tmpfs tmpfs rw\n\
                    nonsense\n";
        assert_eq!(
            mounts(text),
            [Mount {
                path: "/mnt/a b".to_owned(),
                file_system: "tmpfs".to_owned(),
                read_only: true
            }]
        );
    }

    #[test]
    fn processors_are_counted_without_their_sum() {
        assert_eq!(processor_count("cpu  1 2\ncpu0 1 2\ncpu1 1 2\nintr 5\n"), 2);
    }

    #[test]
    fn a_load_that_is_no_number_is_no_load() {
        assert_eq!(
            load("0.5 0.25 0.00 1/100 42").map(|load| load.five),
            Some(0.25)
        );
        assert_eq!(load("a b c"), None);
    }
}
