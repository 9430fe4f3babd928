//! How many of some: a number, or a part of all.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// `30%`, or `25`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    Count(usize),
    Percent(u8),
}

/// Why a text is no share.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("write a number such as `25`, or a part such as `30%`, at most `100%`")]
pub struct InvalidShare;

impl Share {
    /// How many that is of `all`: never more, and rounded to the nearest.
    pub fn of(self, all: usize) -> usize {
        match self {
            Self::Count(count) => count.min(all),
            Self::Percent(percent) => (all * usize::from(percent) + 50) / 100,
        }
    }
}

impl FromStr for Share {
    type Err = InvalidShare;

    fn from_str(text: &str) -> Result<Self, InvalidShare> {
        match text.strip_suffix('%') {
            Some(percent) => match percent.parse() {
                Ok(percent @ 0..=100) => Ok(Self::Percent(percent)),
                _ => Err(InvalidShare),
            },
            None => text.parse().map(Self::Count).map_err(|_| InvalidShare),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(formatter, "{count}"),
            Self::Percent(percent) => write!(formatter, "{percent}%"),
        }
    }
}

impl Serialize for Share {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_numbers_are_read() {
        let of = |text: &str, all| text.parse::<Share>().map(|share| share.of(all));
        assert_eq!(of("30%", 5000), Ok(1500));
        assert_eq!(of("5%", 10), Ok(1));
        assert_eq!(of("25", 10), Ok(10));
        assert_eq!(of("0", 10), Ok(0));
        for bad in ["", "%", "101%", "-1", "-5%", "1.5", "many"] {
            assert_eq!(of(bad, 10), Err(InvalidShare), "{bad}");
        }
    }
}
