//! The small values of unit files: booleans, time spans, sizes, percentages, modes. Parsing is total:
//! any text gives a value or a reason.

use std::time::Duration;

/// Why a value was not understood. The text says what is expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ValueError {
    pub reason: String,
    /// What the writer may have meant.
    pub hint: Option<String>,
}

impl ValueError {
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            hint: None,
        }
    }

    pub fn with_hint(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            hint: Some(hint.into()),
        }
    }
}

/// `1 yes y true t on` and their opposites, in any case.
pub fn parse_boolean(text: &str) -> Result<bool, ValueError> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Ok(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Ok(false),
        _ => Err(ValueError::with_hint(
            format!("`{text}` is not a boolean"),
            "write yes or no",
        )),
    }
}

/// Units of time with their length in microseconds, as systemd spells them.
const TIME_UNITS: [(&[&str], u64); 9] = [
    (&["usec", "us", "µs", "μs"], 1),
    (&["msec", "ms"], 1_000),
    (&["seconds", "second", "sec", "s", ""], 1_000_000),
    (&["minutes", "minute", "min", "m"], 60_000_000),
    (&["hours", "hour", "hr", "h"], 3_600_000_000),
    (&["days", "day", "d"], 86_400_000_000),
    (&["weeks", "week", "w"], 604_800_000_000),
    (&["months", "month", "M"], 2_629_800_000_000),
    (&["years", "year", "y"], 31_557_600_000_000),
];

/// The longest span that is not infinite: longer ones are a mistake, and would overflow sums.
const LONGEST_SPAN_MICROSECONDS: u128 = 31_557_600_000_000 * 1000;

/// `1min 30s`, `1.5h`, `90` (seconds). `None` is `infinity`.
pub fn parse_time_span(text: &str) -> Result<Option<Duration>, ValueError> {
    let invalid = || {
        ValueError::with_hint(
            format!("`{text}` is not a time span"),
            "write for example 90, 1min 30s, 500ms or infinity",
        )
    };
    let mut rest = text.trim();
    if rest == "infinity" {
        return Ok(None);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut microseconds: u128 = 0;
    while !rest.is_empty() {
        let number_length = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_length);
        let after = after.trim_start();
        let unit_length = after
            .find(|character: char| {
                character.is_whitespace() || character.is_ascii_digit() || character == '.'
            })
            .unwrap_or(after.len());
        let (unit, remaining) = after.split_at(unit_length);
        let scale = TIME_UNITS
            .iter()
            .find(|(names, _)| names.contains(&unit))
            .map(|(_, scale)| *scale)
            .ok_or_else(invalid)?;
        microseconds += scaled(number, scale).ok_or_else(invalid)?;
        if microseconds > LONGEST_SPAN_MICROSECONDS {
            return Err(ValueError::with_hint(
                format!("`{text}` is longer than 1000 years"),
                "write infinity for no limit",
            ));
        }
        rest = remaining.trim_start();
    }
    let microseconds = u64::try_from(microseconds).map_err(|_| invalid())?;
    Ok(Some(Duration::from_micros(microseconds)))
}

/// A decimal number times `scale`, exact, rounded down.
fn scaled(number: &str, scale: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Digits beyond these are less than the smallest unit.
    let kept = &fraction[..fraction.len().min(15)];
    let digits: u128 = if kept.is_empty() {
        0
    } else {
        kept.parse().ok()?
    };
    let places = u32::try_from(kept.len()).ok()?;
    let scale = u128::from(scale);
    Some(u128::from(whole) * scale + digits * scale / 10_u128.pow(places))
}

/// Prints a span as systemd does: `1min 30s`; `infinity` for `None`.
pub fn format_time_span(span: Option<Duration>) -> String {
    const NAMES: [(&str, u128); 8] = [
        ("y", 31_557_600_000_000),
        ("month", 2_629_800_000_000),
        ("w", 604_800_000_000),
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("min", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1_000),
    ];
    let Some(span) = span else {
        return "infinity".to_owned();
    };
    let mut rest = span.as_micros();
    let mut parts = Vec::new();
    for (name, scale) in NAMES {
        if rest >= scale {
            parts.push(format!("{}{name}", rest / scale));
            rest %= scale;
        }
    }
    if rest > 0 {
        parts.push(format!("{rest}us"));
    }
    if parts.is_empty() {
        return "0".to_owned();
    }
    parts.join(" ")
}

/// A number of bytes with an optional suffix `K M G T P E` (powers of 1024). `None` is `infinity`.
pub fn parse_size(text: &str) -> Result<Option<u64>, ValueError> {
    if text == "infinity" {
        return Ok(None);
    }
    let invalid = || {
        ValueError::with_hint(
            format!("`{text}` is not a size"),
            "write for example 512M, 2G or infinity",
        )
    };
    let number_length = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(number_length);
    let power = match suffix.trim() {
        "" | "B" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        "E" => 6,
        _ => return Err(invalid()),
    };
    scaled(number, 1024_u64.pow(power))
        .and_then(|value| u64::try_from(value).ok())
        .map(Some)
        .ok_or_else(invalid)
}

/// `12%` or `12.5%` in hundredths of a percent.
pub fn parse_percentage(text: &str) -> Result<u64, ValueError> {
    let invalid = || {
        ValueError::with_hint(
            format!("`{text}` is not a percentage"),
            "write for example 50%",
        )
    };
    let number = text.strip_suffix('%').ok_or_else(invalid)?;
    scaled(number, 100)
        .and_then(|value| u64::try_from(value).ok())
        .ok_or_else(invalid)
}

/// A file mode in octal, up to `7777`.
pub fn parse_mode(text: &str) -> Result<u32, ValueError> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o7777 && !text.starts_with('+'))
        .ok_or_else(|| {
            ValueError::with_hint(
                format!("`{text}` is not a file mode"),
                "write octal digits such as 0755",
            )
        })
}
