//! Amounts of resources as Kubernetes writes them. Exact in thousandths; what is finer is rounded up.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The amount in thousandths; `None` for text that is no quantity.
pub(crate) fn millis(quantity: &Quantity) -> Option<i128> {
    let text = quantity.0.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (numerator, denominator) = scale(suffix)?;
    let (negative, number) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || whole.len() > 24 || fraction.len() > 12 {
        return None;
    }
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let below = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let scaled = digits.checked_mul(numerator)?.checked_mul(1000)?;
    let divisor = below.checked_mul(denominator)?;
    let amount = scaled / divisor + i128::from(scaled % divisor != 0);
    Some(if negative { -amount } else { amount })
}

fn scale(suffix: &str) -> Option<(i128, i128)> {
    let power = |base: i128, exponent: u32| base.checked_pow(exponent).map(|value| (value, 1));
    match suffix {
        "" => Some((1, 1)),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1000)),
        "k" => power(1000, 1),
        "M" => power(1000, 2),
        "G" => power(1000, 3),
        "T" => power(1000, 4),
        "P" => power(1000, 5),
        "E" => power(1000, 6),
        "Ki" => power(1024, 1),
        "Mi" => power(1024, 2),
        "Gi" => power(1024, 3),
        "Ti" => power(1024, 4),
        "Pi" => power(1024, 5),
        "Ei" => power(1024, 6),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let value = 10_i128.checked_pow(exponent.unsigned_abs())?;
            Some(if exponent < 0 { (1, value) } else { (value, 1) })
        }
    }
}

/// Writes thousandths of a core: whole cores without a suffix.
pub(crate) fn cpu(millis: u64) -> Quantity {
    Quantity(if millis.is_multiple_of(1000) {
        (millis / 1000).to_string()
    } else {
        format!("{millis}m")
    })
}

/// Writes bytes the way nodes do.
pub(crate) fn memory(bytes: u64) -> Quantity {
    Quantity(format!("{}Ki", bytes / 1024))
}

/// Writes bytes as Kubernetes does: with the largest binary unit that leaves the number whole.
pub(crate) fn binary(number: u64) -> String {
    shortened(number, 1024, &["", "Ki", "Mi", "Gi", "Ti", "Pi"])
}

/// Writes a number with the largest decimal unit that leaves it whole.
pub(crate) fn decimal(number: u64) -> String {
    shortened(number, 1000, &["", "k", "M", "G", "T", "P"])
}

fn shortened(mut number: u64, step: u64, units: &[&str]) -> String {
    let mut unit = 0;
    while number > 0 && number.is_multiple_of(step) && unit + 1 < units.len() {
        number /= step;
        unit += 1;
    }
    format!("{number}{}", units[unit])
}

pub(crate) fn count(number: u64) -> Quantity {
    Quantity(number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_in_thousandths() {
        for (text, wanted) in [
            ("100m", Some(100)),
            ("1.5", Some(1500)),
            ("2", Some(2000)),
            ("1Ki", Some(1_024_000)),
            ("1e3", Some(1_000_000)),
            ("1E-3", Some(1)),
            (".5", Some(500)),
            ("1n", Some(1)),
            ("-1", Some(-1000)),
            ("", None),
            (".", None),
            ("1x", None),
            ("1.2.3", None),
            ("1e99999999999", None),
            ("9999999999999999999999999", None),
        ] {
            assert_eq!(millis(&Quantity(text.to_owned())), wanted, "{text}");
        }
    }
}
