//! Amounts as Kubernetes writes them, such as `100m`, `1.5Gi` or `2e3`, rounded up as it rounds them.

const NANO: i128 = 1_000_000_000;

/// An amount in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amount(i128);

impl Amount {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (sign, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let digits: i128 = format!("{whole}{fraction}0").parse::<i128>().ok()? / 10;
        let (factor, divisor) = scale(suffix)?;
        let divisor = divisor.checked_mul(power(10, fraction.len())?)?;
        let nano = digits.checked_mul(factor)?.checked_mul(NANO)?;
        // What is smaller than a billionth counts as one, as upstream has it.
        Some(Self(sign * ceiling(nano, divisor)))
    }

    /// Whole units, rounded up.
    pub(crate) fn units(self) -> i64 {
        clamp(ceiling(self.0, NANO))
    }

    /// Thousandths, rounded up.
    pub(crate) fn thousandths(self) -> i64 {
        clamp(ceiling(self.0, NANO / 1000))
    }
}

fn scale(suffix: &str) -> Option<(i128, i128)> {
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, NANO),
        "u" => (1, 1_000_000),
        "m" => (1, 1_000),
        "k" => (1_000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let size = usize::try_from(exponent.unsigned_abs()).ok()?;
            if exponent >= 0 {
                (power(10, size)?, 1)
            } else {
                (1, power(10, size)?)
            }
        }
    })
}

fn power(base: i128, exponent: usize) -> Option<i128> {
    base.checked_pow(u32::try_from(exponent).ok()?)
}

fn ceiling(value: i128, divisor: i128) -> i128 {
    let whole = value / divisor;
    if value % divisor > 0 {
        whole + 1
    } else {
        whole
    }
}

fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value > 0 { i64::MAX } else { i64::MIN })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_are_read_and_rounded_up() {
        for (text, units, thousandths) in [
            ("0", 0, 0),
            ("1", 1, 1_000),
            ("100m", 1, 100),
            ("1.5", 2, 1_500),
            (".5", 1, 500),
            ("0.0001", 1, 1),
            ("1500u", 1, 2),
            ("1k", 1_000, 1_000_000),
            ("1Ki", 1_024, 1_024_000),
            ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
            ("2e3", 2_000, 2_000_000),
            ("2E-3", 1, 2),
            ("-1", -1, -1_000),
            ("16Ei", i64::MAX, i64::MAX),
        ] {
            let amount = Amount::parse(text).unwrap();
            assert_eq!(
                (amount.units(), amount.thousandths()),
                (units, thousandths),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_amount_is_none() {
        for text in [
            "",
            "m",
            "1x",
            "1.2.3",
            "1 Gi",
            "--1",
            "e3",
            "1e",
            "1e999",
            "9".repeat(60).as_str(),
        ] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-+0-9.eEkmMGi]{0,40}|\\PC{0,10}") {
            if let Some(amount) = Amount::parse(&text) {
                prop_assert!(amount.units() <= amount.thousandths().max(0));
            }
        }
    }
}
