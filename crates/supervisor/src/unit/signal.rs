//! Signals and sets of exit statuses as data. The numbers are Linux's; on Windows the executor
//! decides what a signal becomes (a polite request or a kill).

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use transom_host::process::{self, Exit};

use super::values::ValueError;

/// Names by number, without `SIG`; index 0 is no signal.
const NAMES: [&str; 32] = [
    "", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The lowest and highest real-time signal.
const REAL_TIME: std::ops::RangeInclusive<u8> = 34..=64;

/// A signal by its Linux number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signal(u8);

impl Signal {
    pub const HUP: Self = Self(1);
    pub const INT: Self = Self(2);
    pub const QUIT: Self = Self(3);
    pub const ABRT: Self = Self(6);
    pub const KILL: Self = Self(9);
    pub const PIPE: Self = Self(13);
    pub const TERM: Self = Self(15);
    pub const CONT: Self = Self(18);

    pub fn number(self) -> u8 {
        self.0
    }

    pub fn from_number(number: u8) -> Option<Self> {
        ((1..=31).contains(&number) || REAL_TIME.contains(&number)).then_some(Self(number))
    }

    /// Accepts `SIGTERM`, `TERM`, `15`, `SIGRTMIN+3`, `RTMAX-1`.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let invalid = || {
            ValueError::with_hint(
                format!("`{text}` is not a signal"),
                "write for example SIGTERM or 15",
            )
        };
        if let Ok(number) = text.parse::<u8>() {
            return Self::from_number(number).ok_or_else(invalid);
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let real_time = |offset: &str, base: u8, add: bool| {
            let offset: u8 = if offset.is_empty() {
                0
            } else {
                offset[1..].parse().ok()?
            };
            let number = if add {
                base.checked_add(offset)
            } else {
                base.checked_sub(offset)
            };
            number.filter(|number| REAL_TIME.contains(number)).map(Self)
        };
        if let Some(offset) = name
            .strip_prefix("RTMIN")
            .filter(|rest| rest.is_empty() || rest.starts_with('+'))
        {
            return real_time(offset, *REAL_TIME.start(), true).ok_or_else(invalid);
        }
        if let Some(offset) = name
            .strip_prefix("RTMAX")
            .filter(|rest| rest.is_empty() || rest.starts_with('-'))
        {
            return real_time(offset, *REAL_TIME.end(), false).ok_or_else(invalid);
        }
        let alias = match name {
            "POLL" => "IO",
            "IOT" => "ABRT",
            "CLD" => "CHLD",
            other => other,
        };
        NAMES
            .iter()
            .skip(1)
            .position(|known| *known == alias)
            .and_then(|index| u8::try_from(index + 1).ok())
            .map(Self)
            .ok_or_else(invalid)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.get(usize::from(self.0)) {
            Some(name) => write!(formatter, "SIG{name}"),
            None => write!(
                formatter,
                "SIGRTMIN+{}",
                self.0.saturating_sub(*REAL_TIME.start())
            ),
        }
    }
}

/// Exit codes and signals that mean something special to a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitStatusSet {
    pub codes: BTreeSet<u32>,
    pub signals: BTreeSet<Signal>,
}

impl From<Signal> for process::Signal {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::TERM => Self::Terminate,
            Signal::HUP => Self::Hangup,
            Signal::INT => Self::Interrupt,
            Signal::QUIT => Self::Quit,
            Signal::KILL => Self::Kill,
            other => Self::Number(i32::from(other.number())),
        }
    }
}

impl ExitStatusSet {
    /// Whether a process that ended like this is meant.
    pub fn contains(&self, exit: Exit) -> bool {
        match exit {
            Exit::Code(code) => self.codes.contains(&code.cast_unsigned()),
            Exit::Signal(number) => self
                .signals
                .iter()
                .any(|signal| i32::from(signal.number()) == number),
            Exit::Unknown => false,
        }
    }

    /// Adds one word: a code, the name of one (`TEMPFAIL`), or a signal by name.
    pub fn insert(&mut self, word: &str) -> Result<(), ValueError> {
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            // Windows has 32 bits of exit code; Linux never produces more than 255.
            let code = word.parse().map_err(|_| {
                ValueError::new(format!(
                    "`{word}` is not an exit code: the highest is {}",
                    u32::MAX
                ))
            })?;
            self.codes.insert(code);
            return Ok(());
        }
        if let Some((_, code)) = EXIT_NAMES.iter().find(|(name, _)| *name == word) {
            self.codes.insert(*code);
            return Ok(());
        }
        let signal = Signal::parse(word).map_err(|_| {
            ValueError::with_hint(
                format!("`{word}` is neither an exit code nor a signal"),
                "write for example 143, TEMPFAIL or SIGTERM",
            )
        })?;
        self.signals.insert(signal);
        Ok(())
    }
}

/// Exit codes with names: the C library's, BSD's and the init scripts'.
const EXIT_NAMES: [(&str, u32); 23] = [
    ("SUCCESS", 0),
    ("FAILURE", 1),
    ("INVALIDARGUMENT", 2),
    ("NOTIMPLEMENTED", 3),
    ("NOPERMISSION", 4),
    ("NOTINSTALLED", 5),
    ("NOTCONFIGURED", 6),
    ("NOTRUNNING", 7),
    ("USAGE", 64),
    ("DATAERR", 65),
    ("NOINPUT", 66),
    ("NOUSER", 67),
    ("NOHOST", 68),
    ("UNAVAILABLE", 69),
    ("SOFTWARE", 70),
    ("OSERR", 71),
    ("OSFILE", 72),
    ("CANTCREAT", 73),
    ("IOERR", 74),
    ("TEMPFAIL", 75),
    ("PROTOCOL", 76),
    ("NOPERM", 77),
    ("CONFIG", 78),
];
