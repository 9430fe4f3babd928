//! Reads `/proc`. Every value is as of one instant and may be stale at the next: whoever acts on it
//! must pin the process first (`pidfd`) and check its start time after.

use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;

use super::super::{GroupId, Identity, MARKER};

/// The most that is read of one process's environment or command line.
const LARGEST: u64 = 2 << 20;

/// One process, as `/proc/PID/stat` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) identity: Identity,
    pub(super) name: String,
    pub(super) state: u8,
    pub(super) parent: u32,
    pub(super) session: u32,
    /// Clock ticks of the process and of the children that it waited for.
    pub(super) cpu_ticks: u64,
    pub(super) resident_pages: u64,
}

impl Entry {
    /// A zombie is only a number that waits to be read.
    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }
}

fn read(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "processes vanish all the time: callers drop this error, so its path is of no use"
    )]
    File::open(path)?.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn entry(pid: u32) -> Option<Entry> {
    parse_stat(&String::from_utf8_lossy(
        &read(&format!("/proc/{pid}/stat")).ok()?,
    ))
}

pub(super) fn identify(pid: u32) -> Option<Identity> {
    Some(entry(pid)?.identity)
}

/// All processes that this process can see.
pub(super) fn all() -> Vec<Entry> {
    let Ok(folder) = fs_err::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .filter_map(|item| item.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(entry)
        .collect()
}

/// The name is in parentheses and may itself contain spaces and parentheses.
fn parse_stat(text: &str) -> Option<Entry> {
    let (head, tail) = text.rsplit_once(')')?;
    let (pid, name) = head.split_once('(')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    // `fields[0]` is field 3 of proc_pid_stat(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let cpu_ticks = (14..=17).map_while(number).sum();
    Some(Entry {
        identity: Identity {
            pid: pid.trim().parse().ok()?,
            started: number(22)?,
        },
        name: name.to_owned(),
        state: *fields.first()?.as_bytes().first()?,
        parent: u32::try_from(number(4)?).ok()?,
        session: u32::try_from(number(6)?).ok()?,
        cpu_ticks,
        resident_pages: number(24)?,
    })
}

/// Whether the environment that `pid` was started with carries the marker of `group`.
pub(super) fn is_marked(pid: u32, group: &GroupId) -> bool {
    let wanted = format!("{MARKER}={group}");
    read(&format!("/proc/{pid}/environ")).is_ok_and(|environment| {
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
    })
}

pub(super) fn command(entry: &Entry) -> String {
    let line = read(&format!("/proc/{}/cmdline", entry.identity.pid)).unwrap_or_default();
    let words: Vec<_> = line
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy)
        .collect();
    let joined = words.join(" ");
    match joined.trim_end() {
        "" => format!("[{}]", entry.name),
        line => line.to_owned(),
    }
}

pub(super) fn ticks_per_second() -> u64 {
    static TICKS: OnceLock<u64> = OnceLock::new();
    *TICKS.get_or_init(rustix::param::clock_ticks_per_second)
}

/// Now, on the clock that start times are measured with.
pub(super) fn now_in_ticks() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds * ticks_per_second() + nanoseconds * ticks_per_second() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line =
            "42 (a) S (b c) S 7 42 40 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 999 8192 55 0";
        let entry = parse_stat(line).unwrap();
        assert_eq!(entry.name, "a) S (b c");
        assert_eq!((entry.identity.pid, entry.identity.started), (42, 999));
        assert_eq!((entry.parent, entry.session, entry.state), (7, 40, b'S'));
        assert_eq!((entry.cpu_ticks, entry.resident_pages), (100, 55));
    }

    #[test]
    fn a_torn_line_is_no_process() {
        for torn in ["", "42", "42 (x", "42 (x)", "42 (x) S 1 2", "x (x) S 1 1 1"] {
            assert_eq!(parse_stat(torn), None, "{torn:?}");
        }
    }

    #[test]
    fn this_test_finds_itself_and_started_in_the_past() {
        let me = entry(std::process::id()).unwrap();
        assert!(me.is_alive());
        assert!(me.identity.started <= now_in_ticks());
        assert!(all().iter().any(|entry| entry.identity == me.identity));
    }
}
