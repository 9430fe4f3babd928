//! Numbers that may be written as a share of a total.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A number, or a share of a total.
pub(crate) fn scaled(value: &IntOrString, total: i32, rounds_up: bool) -> i32 {
    match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let product = percent * i64::from(total);
            let share = if rounds_up {
                (product + 99).div_euclid(100)
            } else {
                product.div_euclid(100)
            };
            i32::try_from(share).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_as_asked() {
        let percent = |text: &str| IntOrString::String(text.to_owned());
        for (value, total, up, down) in [
            (percent("25%"), 10, 3, 2),
            (percent("50%"), 10, 5, 5),
            (percent("0%"), 10, 0, 0),
            (percent("100%"), 7, 7, 7),
            (percent("odd"), 7, 0, 0),
            (IntOrString::Int(3), 1, 3, 3),
        ] {
            assert_eq!(scaled(&value, total, true), up, "{value:?}");
            assert_eq!(scaled(&value, total, false), down, "{value:?}");
        }
    }
}
