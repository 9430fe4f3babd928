//! When a node is short of something, in kubelet's words: `memory.available<100Mi,nodefs.available<10%`.

use std::{fmt, str::FromStr, time::Duration};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use transom_model::Os;

use crate::quantity;

/// How long a condition is told after it was seen last.
const TRANSITION: Duration = Duration::from_mins(5);

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    MemoryAvailable,
    NodeFsAvailable,
    NodeFsInodesFree,
    /// Only of images that have a disk of their own: else the disk of the node says it all.
    ImageFsAvailable,
    PidAvailable,
}

/// All signals with their names.
const NAMES: [(Signal, &str); 5] = [
    (Signal::MemoryAvailable, "memory.available"),
    (Signal::NodeFsAvailable, "nodefs.available"),
    (Signal::NodeFsInodesFree, "nodefs.inodesFree"),
    (Signal::ImageFsAvailable, "imagefs.available"),
    (Signal::PidAvailable, "pid.available"),
];

impl Signal {
    /// As kubelet calls it.
    pub fn name(self) -> &'static str {
        let named = NAMES.iter().find(|(signal, _)| *signal == self);
        named.map_or("", |(_, name)| name)
    }
}

/// How much there must be at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Least {
    /// Bytes, or a number.
    Amount(u64),
    /// Of the whole, in thousandths of a percent.
    Share(u64),
}

impl Least {
    /// The amount, of a whole of `capacity`.
    pub(crate) fn of(self, capacity: u64) -> u64 {
        match self {
            Self::Amount(amount) => amount,
            Self::Share(share) => {
                let amount = u128::from(capacity) * u128::from(share) / 100_000;
                u64::try_from(amount).unwrap_or(u64::MAX)
            }
        }
    }
}

/// Below this something has to be done at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    pub signal: Signal,
    pub least: Least,
}

/// When pods are evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// Each signal at most once. None at all: nothing is watched.
    pub hard: Vec<Threshold>,
    /// How long a condition is told after it was seen last.
    pub transition: Duration,
}

impl Eviction {
    /// What upstream does on a system if nobody says otherwise.
    pub fn usual(os: Os) -> Self {
        const MIB: u64 = 1 << 20;
        // Windows has nobody who kills in time.
        let memory = match os {
            Os::Linux => 100 * MIB,
            Os::Windows => 500 * MIB,
        };
        let mut all = vec![
            (Signal::MemoryAvailable, Least::Amount(memory)),
            (Signal::NodeFsAvailable, Least::Share(10_000)),
            (Signal::ImageFsAvailable, Least::Share(15_000)),
        ];
        if os == Os::Linux {
            all.push((Signal::NodeFsInodesFree, Least::Share(5_000)));
        }
        Self::of(all)
    }

    /// For a machine that somebody works on: a share of its disk says nothing there, so pods go only when the disk is
    /// all but full.
    pub fn lenient(os: Os) -> Self {
        let mut usual = Self::usual(os);
        usual
            .hard
            .retain(|one| one.signal == Signal::MemoryAvailable);
        usual.hard.push(Threshold {
            signal: Signal::NodeFsAvailable,
            least: Least::Amount(1 << 30),
        });
        usual
    }

    fn of(thresholds: Vec<(Signal, Least)>) -> Self {
        let thresholds = thresholds.into_iter();
        Self {
            hard: thresholds
                .map(|(signal, least)| Threshold { signal, least })
                .collect(),
            transition: TRANSITION,
        }
    }
}

/// Why a list of thresholds makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThresholdError(String);

impl fmt::Display for ThresholdError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ThresholdError {}

/// As it is read.
impl fmt::Display for Eviction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Threshold { signal, least }) in self.hard.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let name = signal.name();
            match least {
                Least::Amount(amount) => write!(formatter, "{comma}{name}<{amount}")?,
                Least::Share(share) => {
                    let (whole, part) = (share / 1000, share % 1000);
                    write!(formatter, "{comma}{name}<{whole}.{part:03}%")?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a list as kubelet's `--eviction-hard` has it; an empty one is none at all.
impl FromStr for Eviction {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let mut hard: Vec<Threshold> = Vec::new();
        for word in text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            let threshold: Threshold = word.parse()?;
            if hard.iter().any(|one| one.signal == threshold.signal) {
                let name = threshold.signal.name();
                return Err(ThresholdError(format!("{name} is there twice")));
            }
            hard.push(threshold);
        }
        Ok(Self {
            hard,
            transition: TRANSITION,
        })
    }
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let (name, value) = text.split_once('<').ok_or_else(|| {
            ThresholdError(format!(
                "expected SIGNAL<AMOUNT, such as memory.available<100Mi, found `{text}`"
            ))
        })?;
        let known = NAMES.iter().find(|(_, known)| *known == name.trim());
        let (signal, _) = known.ok_or_else(|| {
            let all = NAMES.map(|(_, name)| name).join(", ");
            ThresholdError(format!("unknown signal `{name}`; there are {all}"))
        })?;
        let least = least(value.trim())
            .ok_or_else(|| ThresholdError(format!("`{value}` is neither an amount nor a share")))?;
        Ok(Self {
            signal: *signal,
            least,
        })
    }
}

fn least(text: &str) -> Option<Least> {
    let number = |text: &str| -> Option<u64> {
        u64::try_from(quantity::millis(&Quantity(text.to_owned()))?).ok()
    };
    match text.strip_suffix('%') {
        Some(share) => number(share)
            .filter(|share| *share <= 100_000)
            .map(Least::Share),
        None => Some(Least::Amount(number(text)? / 1000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_kubelet_reads_them() {
        let read: Eviction = "memory.available<1Gi, nodefs.available<7.5%,pid.available<100"
            .parse()
            .unwrap();
        let wanted = [
            (Signal::MemoryAvailable, Least::Amount(1 << 30)),
            (Signal::NodeFsAvailable, Least::Share(7_500)),
            (Signal::PidAvailable, Least::Amount(100)),
        ];
        assert_eq!(
            read.hard,
            wanted.map(|(signal, least)| Threshold { signal, least })
        );
        assert_eq!(read.to_string().parse::<Eviction>().unwrap(), read);
        assert_eq!(Least::Share(7_500).of(1000), 75);
        assert!("".parse::<Eviction>().unwrap().hard.is_empty());
        for wrong in [
            "memory.available",
            "memory.available>1",
            "memory<1",
            "nodefs.available<101%",
            "nodefs.available<-1%",
            "nodefs.available<x",
            "pid.available<1,pid.available<2",
        ] {
            assert!(wrong.parse::<Eviction>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn windows_gives_up_earlier_and_has_no_inodes() {
        let linux = Eviction::usual(Os::Linux);
        let windows = Eviction::usual(Os::Windows);
        assert_eq!((linux.hard.len(), windows.hard.len()), (4, 3));
        assert_eq!(windows.hard[0].least, Least::Amount(500 << 20));
        let lenient: Eviction = "memory.available<500Mi,nodefs.available<1Gi"
            .parse()
            .unwrap();
        assert_eq!(Eviction::lenient(Os::Windows), lenient);
    }
}
