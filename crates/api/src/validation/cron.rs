//! The times at which cron jobs run, in the syntax of cron.
//!
//! Only whether an expression is one is decided here, with the sentences of the library that upstream uses.

use super::fault::{Faults, Report};
use crate::field::Path;

/// What a field may hold: its least and largest number, and names for numbers.
struct Bounds {
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds {
        least: 0,
        most: 59,
        names: &[],
    },
    Bounds {
        least: 0,
        most: 23,
        names: &[],
    },
    Bounds {
        least: 1,
        most: 31,
        names: &[],
    },
    Bounds {
        least: 1,
        most: 12,
        names: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    },
    Bounds {
        least: 0,
        most: 6,
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];

const DESCRIPTORS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// Says what is wrong with an expression.
pub(super) fn schedule(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let text = match text
        .strip_prefix("TZ=")
        .or_else(|| text.strip_prefix("CRON_TZ="))
    {
        Some(rest) => rest
            .split_once(' ')
            .map(|(_, rest)| rest.trim())
            .ok_or_else(|| format!("provided bad location {rest}"))?,
        None => text,
    };
    if text.starts_with('@') {
        return descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (field, bounds) in fields.into_iter().zip(&FIELDS) {
        field
            .split(',')
            .filter(|part| !part.is_empty())
            .try_for_each(|part| range(part, bounds))?;
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    if let Some(duration) = text.strip_prefix("@every ") {
        return if is_duration(duration) {
            Ok(())
        } else {
            Err(format!(
                "failed to parse duration {text}: time: invalid duration {duration:?}"
            ))
        };
    }
    Err(format!("unrecognized descriptor: {text}"))
}

/// Numbers with units, like `1h30m`.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest
            .find(|each: char| !each.is_ascii_digit() && each != '.')
            .unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        let unit = after
            .find(|each: char| each.is_ascii_digit() || each == '.')
            .unwrap_or(after.len());
        let (name, after) = after.split_at(unit);
        let known = matches!(name, "ns" | "us" | "µs" | "ms" | "s" | "m" | "h");
        if !known || digits.is_empty() || digits == "." || digits.matches('.').count() > 1 {
            return false;
        }
        rest = after;
    }
    true
}

/// One part of a field: `*`, a number, `a-b`, and any of them with a step.
fn range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?"] => (bounds.least, bounds.most),
        [one] => {
            let only = number(one, bounds)?;
            (only, only)
        }
        [first, last] => (number(first, bounds)?, number(last, bounds)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            if ends.len() == 1 {
                end = bounds.most;
            }
            plain_number(step)?
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < bounds.least {
        return Err(format!(
            "beginning of range ({start}) below minimum ({}): {text}",
            bounds.least
        ));
    }
    if end > bounds.most {
        return Err(format!(
            "end of range ({end}) above maximum ({}): {text}",
            bounds.most
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {text}"
        ));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number(text: &str, bounds: &Bounds) -> Result<u32, String> {
    let lower = text.to_ascii_lowercase();
    match bounds.names.iter().position(|name| *name == lower) {
        Some(position) => Ok(bounds.least + u32::try_from(position).unwrap_or_default()),
        None => plain_number(text),
    }
}

fn plain_number(text: &str) -> Result<u32, String> {
    if let Some(digits) = text.strip_prefix('-')
        && digits.parse::<u32>().is_ok()
    {
        return Err(format!("negative number ({text}) not allowed: {text}"));
    }
    text.parse::<u32>().map_err(|_| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
    })
}

/// A time zone by name; whether it exists is known where the tables of zones are.
pub(super) fn time_zone(faults: &mut Faults, zone: Option<&str>, path: &Path) {
    let Some(zone) = zone else {
        return;
    };
    if zone.is_empty() {
        faults.invalid(path, zone, "must be nil or non-empty string");
    } else if zone.eq_ignore_ascii_case("Local") {
        faults.invalid(
            path,
            zone,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        );
    } else {
        let fine = !zone.starts_with(['/', '\\'])
            && !zone.contains("..")
            && zone
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte));
        if !fine {
            faults.invalid(path, zone, format!("unknown time zone {zone}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_cron_are_known() {
        for text in [
            "* * * * *",
            "*/5 * * * *",
            "0 0 1 jan MON-FRI",
            "1,2,3 1-5/2 ? * 0",
            "@hourly",
            "@every 1h30m",
            "TZ=Europe/Berlin 0 0 * * *",
        ] {
            assert_eq!(schedule(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_a_reason() {
        for (text, reason) in [
            ("", "empty spec string"),
            ("* *", "expected exactly 5 fields, found 2: [* *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("@sometimes", "unrecognized descriptor: @sometimes"),
            ("TZ=UTC", "provided bad location UTC"),
        ] {
            assert_eq!(schedule(text), Err(reason.to_owned()), "{text}");
        }
    }
}
