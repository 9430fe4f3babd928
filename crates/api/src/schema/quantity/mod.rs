//! Amounts like `500m`, `1.5Gi` or `1e3`: exact numbers with a suffix, never floating point.
//!
//! Two spellings of the same amount are equal, and are written the same way if they have the same kind of
//! suffix.

use std::cmp::Ordering;
use std::fmt;

/// Amounts are kept in billionths, the smallest part there is.
const NANOS: i128 = 1_000_000_000;
/// What an amount is cut to that is too large to be kept exactly.
const LARGEST: i128 = i64::MAX as i128 * NANOS;

/// An amount of something.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    suffix: SuffixKind,
}

/// Which suffixes an amount is written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuffixKind {
    /// `k`, `M`, `m`: powers of 1000.
    Decimal,
    /// `Ki`, `Mi`: powers of 1024.
    Binary,
    /// `e3`: powers of ten.
    Exponent,
}

/// Why a text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Form,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    pub const ZERO: Self = Self {
        nanos: 0,
        suffix: SuffixKind::Decimal,
    };

    /// Reads an amount. More than nine decimal places are rounded away from zero.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Form);
        }
        let (negative, rest) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = digits(rest);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => digits(rest),
            None => ("", rest),
        };
        let (suffix, power) = suffix(rest)?;
        let magnitude = magnitude(whole, fraction, suffix, power);
        let fraction_of_one = magnitude > 0 && magnitude < NANOS;
        Ok(Self {
            nanos: if negative { -magnitude } else { magnitude },
            suffix: if suffix == SuffixKind::Binary && fraction_of_one {
                SuffixKind::Decimal
            } else {
                suffix
            },
        })
    }

    /// A whole number without a suffix.
    pub fn from_integer(value: i64) -> Self {
        Self {
            nanos: i128::from(value) * NANOS,
            suffix: SuffixKind::Decimal,
        }
    }

    /// So many thousandths, as of a processor.
    pub fn from_milli(value: i64) -> Self {
        Self {
            nanos: i128::from(value) * (NANOS / 1000),
            suffix: SuffixKind::Decimal,
        }
    }

    /// The whole number, rounded away from zero.
    pub fn value(self) -> i64 {
        saturate(round_up(self.nanos, NANOS) / NANOS)
    }

    /// The number of thousandths, rounded away from zero.
    pub fn milli_value(self) -> i64 {
        let milli = NANOS / 1000;
        saturate(round_up(self.nanos, milli) / milli)
    }

    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether the amount is a whole number.
    pub fn is_whole(self) -> bool {
        self.nanos % NANOS == 0
    }

    /// Without anything smaller than a thousandth, which is how amounts of resources are kept.
    #[must_use]
    pub fn rounded_to_milli(self) -> Self {
        Self {
            nanos: round_up(self.nanos, NANOS / 1000),
            ..self
        }
    }

    /// The sum, written like `self` unless that is zero.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            suffix: if self.is_zero() {
                other.suffix
            } else {
                self.suffix
            },
        }
    }

    /// The difference, written like `self` unless that is zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self {
            nanos: -other.nanos,
            ..other
        })
    }
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

/// To the next multiple of `unit` that is not nearer to zero.
fn round_up(value: i128, unit: i128) -> i128 {
    let rest = value % unit;
    match rest.signum() {
        0 => value,
        sign => value - rest + sign * unit,
    }
}

/// The digits at the start, and what follows.
fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn suffix(text: &str) -> Result<(SuffixKind, i64), QuantityError> {
    const DECIMAL: [(&str, i64); 10] = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("", 0),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    const BINARY: [(&str, i64); 6] = [
        ("Ki", 10),
        ("Mi", 20),
        ("Gi", 30),
        ("Ti", 40),
        ("Pi", 50),
        ("Ei", 60),
    ];
    let letters = text.trim_start_matches(|character| "eEinumkKMGTP".contains(character));
    let unsigned = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if !digits(unsigned).1.is_empty() {
        return Err(QuantityError::Form);
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == text) {
        return Ok((SuffixKind::Decimal, *power));
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == text) {
        return Ok((SuffixKind::Binary, *power));
    }
    text.strip_prefix(['e', 'E'])
        .and_then(|power| power.parse::<i32>().ok())
        .map(|power| (SuffixKind::Exponent, i64::from(power)))
        .ok_or(QuantityError::Suffix)
}

/// The amount in billionths, without its sign.
fn magnitude(whole: &str, fraction: &str, suffix: SuffixKind, power: i64) -> i128 {
    let fraction = fraction.trim_end_matches('0');
    let mut number: i128 = 0;
    let mut inexact = false;
    // Past 30 digits nothing can be told from its neighbours after rounding; their places still count.
    let mut dropped = 0;
    for digit in whole
        .trim_start_matches('0')
        .bytes()
        .chain(fraction.bytes())
    {
        if number >= i128::MAX / 1_000_000_000_000 {
            inexact |= digit != b'0';
            dropped += 1;
        } else {
            number = number * 10 + i128::from(digit - b'0');
        }
    }
    if number == 0 {
        return 0;
    }
    let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let (times, ten_power) = match suffix {
        SuffixKind::Binary => (1_i128 << power, 0),
        SuffixKind::Decimal | SuffixKind::Exponent => (1, power),
    };
    let ten_power = ten_power.saturating_add(9 + dropped).saturating_sub(places);
    let scaled = match u32::try_from(ten_power) {
        Ok(up) => 10_i128
            .checked_pow(up)
            .and_then(|factor| number.checked_mul(factor))
            .and_then(|scaled| scaled.checked_mul(times)),
        Err(_) => {
            let down = u32::try_from(-ten_power).ok();
            let Some(product) = number.checked_mul(times) else {
                return LARGEST;
            };
            match down.and_then(|down| 10_i128.checked_pow(down)) {
                Some(divisor) => {
                    inexact |= product % divisor != 0;
                    Some(product / divisor)
                }
                // Smaller than any part there is.
                None => return 1,
            }
        }
    };
    match scaled {
        Some(scaled) => scaled + i128::from(inexact),
        None => LARGEST,
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: no fraction, and the largest suffix that needs none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let within_one_kibi = self.nanos.abs() < 1024 * NANOS;
        match self.suffix {
            SuffixKind::Binary if !within_one_kibi => self.fmt_binary(f),
            SuffixKind::Exponent => self.fmt_decimal(f, true),
            SuffixKind::Binary | SuffixKind::Decimal => self.fmt_decimal(f, false),
        }
    }
}

impl Quantity {
    fn fmt_binary(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let mut number = round_up(self.nanos, NANOS) / NANOS;
        let mut step = 0;
        while number % 1024 == 0 && step + 1 < NAMES.len() {
            number /= 1024;
            step += 1;
        }
        write!(f, "{number}{}", NAMES[step])
    }

    fn fmt_decimal(self, f: &mut fmt::Formatter<'_>, exponent: bool) -> fmt::Result {
        const NAMES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        let mut number = self.nanos;
        let mut step = 0;
        while number % 1000 == 0 && step + 1 < NAMES.len() {
            number /= 1000;
            step += 1;
        }
        let name = NAMES[step];
        if exponent && !name.is_empty() {
            let power = i32::try_from(step).unwrap_or_default() * 3 - 9;
            return write!(f, "{number}e{power}");
        }
        write!(f, "{number}{name}")
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

#[cfg(test)]
mod tests;
