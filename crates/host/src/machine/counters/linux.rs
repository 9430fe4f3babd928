//! Counts of a Linux machine, from /proc. Text that is not understood counts as nothing counted.

use std::time::Duration;

use super::{Counters, MemoryInUse, Traffic};

/// Links of pods come in pairs: what goes through them is counted at the other end.
const OF_PODS: &str = "veth";

pub(in super::super) fn read() -> Counters {
    let text = |path: &str| fs_err::read_to_string(path).ok();
    let faults = text("/proc/vmstat").unwrap_or_default();
    Counters {
        processor_time: text("/proc/stat")
            .and_then(|text| processor_time(&text, rustix::param::clock_ticks_per_second())),
        memory: text("/proc/meminfo").and_then(|meminfo| memory(&meminfo, &faults)),
        processes: text("/proc/loadavg").and_then(|text| processes(&text)),
        most_processes: ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"]
            .iter()
            .filter_map(|path| text(path)?.trim().parse().ok())
            .min(),
        traffic: text("/proc/net/dev").map_or_else(Vec::new, |text| traffic(&text)),
    }
}

/// The first line has user, nice, system, idle, waiting, interrupts, soft interrupts and what others took.
fn processor_time(text: &str, ticks_per_second: u64) -> Option<Duration> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .map_while(|number| number.parse().ok())
        .collect();
    let [user, nice, system, _idle, _waiting, interrupts, soft, ..] = ticks.as_slice() else {
        return None;
    };
    let busy = user + nice + system + interrupts + soft;
    let nanoseconds = u128::from(busy) * 1_000_000_000 / u128::from(ticks_per_second.max(1));
    Some(Duration::from_nanos(u64::try_from(nanoseconds).ok()?))
}

fn memory(meminfo: &str, vmstat: &str) -> Option<MemoryInUse> {
    let bytes = |key: &str| -> Option<u64> {
        let line = meminfo
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024)
    };
    let count = |key: &str| -> Option<u64> {
        let mut lines = vmstat.lines();
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok())
    };
    let usage = bytes("MemTotal")?.saturating_sub(bytes("MemFree")?);
    Some(MemoryInUse {
        usage,
        working_set: usage.saturating_sub(bytes("Inactive(file)")?),
        resident: bytes("AnonPages"),
        page_faults: count("pgfault"),
        major_page_faults: count("pgmajfault"),
    })
}

/// The fourth word is `running/all`.
fn processes(loadavg: &str) -> Option<u64> {
    let word = loadavg.split_whitespace().nth(3)?;
    word.split_once('/')?.1.parse().ok()
}

fn traffic(text: &str) -> Vec<Traffic> {
    let link = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let name = name.trim();
        let numbers: Vec<u64> = numbers
            .split_whitespace()
            .map_while(|number| number.parse().ok())
            .collect();
        let is_ours = name != "lo" && !name.starts_with(OF_PODS);
        (is_ours && numbers.len() >= 11).then(|| Traffic {
            link: name.to_owned(),
            received_bytes: numbers[0],
            receive_errors: numbers[2],
            sent_bytes: numbers[8],
            send_errors: numbers[10],
        })
    };
    text.lines().filter_map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_work_when_they_neither_idle_nor_wait() {
        let text = "cpu  100 20 30 9999 888 7 3 50 0 0\ncpu0 1 1 1 1\n";
        assert_eq!(processor_time(text, 100), Some(Duration::from_millis(1600)));
        for torn in ["", "cpu  1 2 3", "cpu0 1 2 3 4 5 6 7 8"] {
            assert_eq!(processor_time(torn, 100), None, "{torn}");
        }
    }

    #[test]
    fn files_that_nobody_looked_at_lately_are_not_in_the_working_set() {
        let meminfo = "MemTotal: 1000 kB\nMemFree: 200 kB\nInactive: 400 kB\nInactive(file): 300 kB\nAnonPages: 100 kB\n";
        let found = memory(meminfo, "pgfault 70\npgfault_x 1\npgmajfault 3\n").unwrap();
        let wanted = MemoryInUse {
            usage: 800 << 10,
            working_set: 500 << 10,
            resident: Some(100 << 10),
            page_faults: Some(70),
            major_page_faults: Some(3),
        };
        assert_eq!(found, wanted);
        assert_eq!(memory("MemTotal: 1000 kB\nMemFree: 200 kB\n", ""), None);
    }

    #[test]
    fn links_of_pods_and_loopback_are_left_out() {
        let text = "Inter-| Receive | Transmit\n face |bytes packets\n    \
            lo: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n  \
            eth0: 1000 10 4 0 0 0 0 0 200 2 6 0 0 0 0 0\n  \
            veth1: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n  broken: 1 2\n";
        let wanted = Traffic {
            link: "eth0".to_owned(),
            received_bytes: 1000,
            receive_errors: 4,
            sent_bytes: 200,
            send_errors: 6,
        };
        assert_eq!(traffic(text), [wanted]);
    }

    #[test]
    fn this_machine_counts() {
        let now = read();
        assert!(now.processor_time.is_some_and(|time| !time.is_zero()));
        assert!(
            now.memory
                .is_some_and(|memory| memory.working_set <= memory.usage)
        );
        assert!(now.processes.is_some_and(|count| count > 0));
    }

    #[test]
    fn processes_are_all_and_not_those_that_run_just_now() {
        assert_eq!(processes("0.5 0.25 0.00 1/100 42"), Some(100));
        assert_eq!(processes("0.5 0.25"), None);
    }
}
