//! Amounts of resources, exact down to a billionth.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Amount(i128);

const ONE: i128 = 1_000_000_000;
const BINARY: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];
const DECIMAL: [(&str, i32); 10] = [
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
/// Longer texts are no amounts that anybody means.
const LONGEST: usize = 64;

impl Amount {
    pub(crate) const ZERO: Self = Self(0);

    pub(crate) fn whole(number: i64) -> Self {
        Self(i128::from(number) * ONE)
    }

    pub(crate) fn from_thousandths(number: i128) -> Self {
        Self(number.saturating_mul(ONE / 1000))
    }

    /// Thousandths, rounded up.
    pub(crate) fn thousandths(self) -> i128 {
        let step = ONE / 1000;
        (self.0 + step - 1).div_euclid(step)
    }

    pub(crate) fn of(quantity: &Quantity) -> Option<Self> {
        Self::parse(&quantity.0)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let is_number = |each: char| each.is_ascii_digit() || matches!(each, '.' | '+' | '-');
        let end = text.find(|each| !is_number(each)).unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (digits, point) = parse_decimal(number)?;
        if let Some((_, bits)) = BINARY.iter().find(|(name, _)| *name == suffix) {
            let scaled = digits.checked_mul(1_i128.checked_shl(*bits)?)?;
            return scale(scaled, 9 - point).map(Self);
        }
        let named = DECIMAL.iter().find(|(name, _)| *name == suffix);
        let exponent = match named {
            Some((_, exponent)) => *exponent,
            None => suffix.strip_prefix(['e', 'E'])?.parse().ok()?,
        };
        scale(digits, exponent.checked_add(9 - point)?).map(Self)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// As people write it: whole numbers of the largest binary unit if it is a size, else decimal.
    pub(crate) fn quantity(self, is_size: bool) -> Quantity {
        let number = self.0;
        if number % ONE == 0 {
            let whole = number / ONE;
            if is_size {
                let fitting = BINARY.iter().rev().find(|(_, bits)| {
                    let unit = 1_i128 << bits;
                    whole != 0 && whole % unit == 0
                });
                if let Some((name, bits)) = fitting {
                    return Quantity(format!("{}{name}", whole >> bits));
                }
            }
            return Quantity(whole.to_string());
        }
        for (suffix, unit) in [("m", ONE / 1_000), ("u", ONE / 1_000_000)] {
            if number % unit == 0 {
                return Quantity(format!("{}{suffix}", number / unit));
            }
        }
        Quantity(format!("{number}n"))
    }
}

/// Digits without the point, and how many of them were behind it.
fn parse_decimal(text: &str) -> Option<(i128, i32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.trim_start_matches(['+', '-']).is_empty() && fraction.is_empty() {
        return None;
    }
    let fraction: String = fraction.chars().take(18).collect();
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((digits, i32::try_from(fraction.len()).ok()?))
}

/// Times a power of ten; what is smaller than one is rounded up, away from nothing.
fn scale(number: i128, exponent: i32) -> Option<i128> {
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return number.checked_mul(power?);
    }
    let power = power?;
    let away = number.signum() * (power - 1);
    Some((number.checked_add(away)?) / power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written_as_people_write_them() {
        for (text, is_size, expected) in [
            ("0", false, "0"),
            ("100m", false, "100m"),
            ("1500m", false, "1500m"),
            ("2000m", false, "2"),
            ("0.5", false, "500m"),
            ("1Gi", true, "1Gi"),
            ("1536Mi", true, "1536Mi"),
            ("1.5Gi", true, "1536Mi"),
            ("2Gi", false, "2147483648"),
            ("1e3", false, "1000"),
            ("5G", true, "5000000000"),
            ("7n", false, "7n"),
            ("-3", false, "-3"),
            ("+.5", false, "500m"),
        ] {
            let amount = Amount::parse(text).unwrap();
            assert_eq!(amount.quantity(is_size).0, expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_none() {
        for text in [
            "",
            ".",
            "m",
            "1x",
            "1.2.3",
            "--1",
            "1e99",
            "9999999999999999999999999999999E",
        ] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
        assert_eq!(Amount::parse(&"9".repeat(100)), None);
    }

    #[test]
    fn amounts_compare_by_size_and_round_up() {
        let amount = |text| Amount::parse(text).unwrap();
        assert!(amount("1Gi") > amount("1G"));
        assert_eq!(amount("1").plus(amount("500m")), amount("1.5"));
        assert_eq!(amount("0.0000000001"), amount("1n"));
        assert_eq!(amount("1500u").thousandths(), 2);
        assert_eq!(Amount::whole(3), amount("3"));
    }
}
