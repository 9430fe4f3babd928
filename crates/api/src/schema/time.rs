//! Points in time as objects have them: RFC 3339, written in UTC, with seconds or with microseconds.

use jiff::Timestamp;
use jiff::civil::DateTime;

/// The elements of a time, as Go names them when one is missing.
const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// Reads a time in any zone. The error is the sentence that upstream has for it.
pub fn parse(text: &str) -> Result<Timestamp, String> {
    let mut reader = Reader { text, rest: text };
    let year = reader.number(4, "2006")?;
    reader.literal("-")?;
    let month = reader.number(2, "01")?;
    reader.literal("-")?;
    let day = reader.number(2, "02")?;
    reader.literal("T")?;
    let hour = reader.number(2, "15")?;
    reader.literal(":")?;
    let minute = reader.number(2, "04")?;
    reader.literal(":")?;
    let second = reader.number(2, "05")?;
    let nanos = reader.fraction();
    let offset = reader.offset()?;
    for (name, value, least, most) in [
        ("month", month, 1, 12),
        ("hour", hour, 0, 23),
        ("minute", minute, 0, 59),
        ("second", second, 0, 59),
    ] {
        if !(least..=most).contains(&value) {
            return Err(format!("parsing time {text:?}: {name} out of range"));
        }
    }
    let small = |value: i32| i8::try_from(value).unwrap_or_default();
    let year = i16::try_from(year).unwrap_or_default();
    DateTime::new(
        year,
        small(month),
        small(day),
        small(hour),
        small(minute),
        small(second),
        nanos,
    )
    .and_then(|local| local.to_zoned(jiff::tz::TimeZone::UTC))
    .and_then(|zoned| {
        zoned
            .timestamp()
            .checked_sub(jiff::SignedDuration::from_secs(i64::from(offset)))
    })
    .map_err(|_| format!("parsing time {text:?}: day out of range"))
}

/// `2026-01-01T00:00:00Z`.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `2026-01-01T00:00:00.000000Z`.
pub fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn missing(&self, element: &str) -> String {
        format!(
            "parsing time {:?} as {LAYOUT:?}: cannot parse {:?} as {element:?}",
            self.text, self.rest
        )
    }

    fn number(&mut self, digits: usize, element: &str) -> Result<i32, String> {
        let number = self
            .rest
            .get(..digits)
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.missing(element))?;
        self.rest = &self.rest[digits..];
        Ok(number)
    }

    fn literal(&mut self, literal: &str) -> Result<(), String> {
        self.rest = self
            .rest
            .strip_prefix(literal)
            .ok_or_else(|| self.missing(literal))?;
        Ok(())
    }

    /// Parts of a second, which may follow though the layout does not show them.
    fn fraction(&mut self) -> i32 {
        let Some(digits) = self.rest.strip_prefix(['.', ',']) else {
            return 0;
        };
        let end = digits
            .find(|character: char| !character.is_ascii_digit())
            .unwrap_or(digits.len());
        if end == 0 {
            return 0;
        }
        self.rest = &digits[end..];
        let nine: String = digits[..end]
            .chars()
            .chain("000000000".chars())
            .take(9)
            .collect();
        nine.parse().unwrap_or_default()
    }

    /// Seconds east of Greenwich.
    fn offset(&mut self) -> Result<i32, String> {
        if self.rest == "Z" {
            return Ok(0);
        }
        let before = self.rest;
        let sign = match before.as_bytes().first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(self.missing("Z07:00")),
        };
        let parts = before[1..].split_once(':').filter(|(hours, minutes)| {
            [hours, minutes]
                .iter()
                .all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()))
        });
        match parts.and_then(|(hours, minutes)| {
            Some((hours.parse::<i32>().ok()?, minutes.parse::<i32>().ok()?))
        }) {
            Some((hours, minutes)) if hours <= 24 && minutes < 60 => {
                Ok(sign * (hours * 3600 + minutes * 60))
            }
            _ => Err(self.missing("Z07:00")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn any_zone_is_written_as_utc() {
        for (given, expected) in [
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            ("2026-01-01T01:30:00+01:30", "2026-01-01T00:00:00Z"),
            ("2025-12-31T19:00:00.75-05:00", "2026-01-01T00:00:00Z"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(seconds(parse(given).unwrap()), expected);
        }
        assert_eq!(
            micros(parse("2026-01-01T00:00:00.1234567Z").unwrap()),
            "2026-01-01T00:00:00.123456Z"
        );
    }

    #[test]
    fn what_is_wrong_is_said_as_go_says_it() {
        for (given, expected) in [
            (
                "abc",
                r#"parsing time "abc" as "2006-01-02T15:04:05Z07:00": cannot parse "abc" as "2006""#,
            ),
            (
                "2026-01-01",
                r#"parsing time "2026-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#,
            ),
            (
                "2026-13-01T00:00:00Z",
                r#"parsing time "2026-13-01T00:00:00Z": month out of range"#,
            ),
            (
                "2026-02-30T00:00:00Z",
                r#"parsing time "2026-02-30T00:00:00Z": day out of range"#,
            ),
        ] {
            assert_eq!(parse(given).unwrap_err(), expected);
        }
    }

    proptest! {
        #[test]
        fn no_text_is_fatal(text in "[0-9TZ:+.é-]{0,30}") {
            let _ = parse(&text);
        }
    }
}
