//! Signals by name and number. The numbers are those of Linux on every system, because a Windows
//! command may speak to a Linux machine; which of them can be delivered is the host's business.

use std::fmt;
use std::str::FromStr;

/// A signal. `FromStr` reads `SIGTERM`, `term` and `15`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    Terminate,
    Hangup,
    Interrupt,
    Quit,
    User1,
    User2,
    Kill,
    /// Any other, by its number on Linux.
    Number(i32),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a signal: use a name such as SIGTERM, or a number from 1 to {LAST}")]
pub struct UnknownSignal {
    pub text: String,
}

const LAST: i32 = 64;

const NAMES: [(&str, i32); 31] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

impl Signal {
    pub fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            1 => Self::Hangup,
            2 => Self::Interrupt,
            3 => Self::Quit,
            9 => Self::Kill,
            10 => Self::User1,
            12 => Self::User2,
            15 => Self::Terminate,
            other if (1..=LAST).contains(&other) => Self::Number(other),
            _ => return None,
        })
    }

    pub fn number(self) -> i32 {
        match self {
            Self::Hangup => 1,
            Self::Interrupt => 2,
            Self::Quit => 3,
            Self::Kill => 9,
            Self::User1 => 10,
            Self::User2 => 12,
            Self::Terminate => 15,
            Self::Number(number) => number,
        }
    }
}

impl FromStr for Signal {
    type Err = UnknownSignal;

    fn from_str(text: &str) -> Result<Self, UnknownSignal> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let named = NAMES.iter().find(|(known, _)| *known == name);
        named
            .map(|(_, number)| *number)
            .or_else(|| text.parse().ok())
            .and_then(Self::from_number)
            .ok_or_else(|| UnknownSignal {
                text: text.to_owned(),
            })
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number();
        match NAMES.iter().find(|(_, known)| *known == number) {
            Some((name, _)) => write!(f, "SIG{name}"),
            None => write!(f, "{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_spellings_of_a_signal_are_one_signal() {
        for text in ["SIGTERM", "TERM", "term", "15", "sigterm"] {
            assert_eq!(text.parse(), Ok(Signal::Terminate), "{text}");
        }
        assert_eq!("34".parse(), Ok(Signal::Number(34)));
    }

    #[test]
    fn every_signal_reads_back_what_it_prints() {
        for number in 1..=LAST {
            let signal = Signal::from_number(number).unwrap();
            assert_eq!(signal.number(), number);
            assert_eq!(signal.to_string().parse(), Ok(signal));
        }
    }

    #[test]
    fn what_is_not_a_signal_is_refused() {
        for text in [
            "",
            "SIG",
            "0",
            "-1",
            "65",
            "SIGNOTHING",
            "15 ",
            "SIGSIGTERM",
        ] {
            assert!(text.parse::<Signal>().is_err(), "{text:?} was accepted");
        }
    }
}
