//! Reads calendar events in systemd's notation.

use std::str::FromStr;

use jiff::tz::TimeZone;

use super::{CalendarEvent, Component, Range, SECOND, Weekdays, YEARS, Zone};

/// Why a text is not a calendar event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    #[error("calendar event is empty")]
    Empty,
    #[error("`{text}` is not a day of the week")]
    Weekday { text: String },
    #[error("`{text}` is not a date such as 2026-11-16 or *-*-01")]
    Date { text: String },
    #[error("`{text}` is not a time such as 08:30 or *:0/15")]
    Time { text: String },
    #[error("`{text}` is not a number between {minimum} and {maximum}")]
    OutOfRange {
        text: String,
        minimum: u32,
        maximum: u32,
    },
    #[error("`{text}` runs backwards")]
    Backwards { text: String },
    #[error("`{text}`: a step is counted from a value, as in 0/5")]
    StepOfAny { text: String },
    #[error("`{text}` is neither a part of a date or time nor a known time zone")]
    Unknown { text: String },
}

/// Names with the events they stand for.
const SHORTHANDS: [(&str, &str); 10] = [
    ("minutely", "*-*-* *:*:00"),
    ("hourly", "*-*-* *:00:00"),
    ("daily", "*-*-* 00:00:00"),
    ("weekly", "Mon *-*-* 00:00:00"),
    ("monthly", "*-*-01 00:00:00"),
    ("quarterly", "*-01,04,07,10-01 00:00:00"),
    ("semiannually", "*-01,07-01 00:00:00"),
    ("semi-annually", "*-01,07-01 00:00:00"),
    ("yearly", "*-01-01 00:00:00"),
    ("annually", "*-01-01 00:00:00"),
];

impl FromStr for CalendarEvent {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let zone = take_zone(&mut words);
        let Some(first) = words.first() else {
            return Err(CalendarError::Empty);
        };
        let lower = first.to_ascii_lowercase();
        if let Some((_, full)) = SHORTHANDS.iter().find(|(name, _)| *name == lower) {
            reject_rest(&words[1..])?;
            let event: Self = full.parse()?;
            return Ok(Self { zone, ..event });
        }
        let mut event = Self {
            weekdays: Weekdays::ANY,
            years: Component::default(),
            months: Component::default(),
            days: Component::default(),
            days_from_end: false,
            hours: Component::single(0),
            minutes: Component::single(0),
            seconds: Component::single(0),
            zone,
        };
        let mut rest = words.as_slice();
        if first.starts_with(|character: char| character.is_ascii_alphabetic()) {
            event.weekdays = parse_weekdays(first)?;
            rest = &rest[1..];
        }
        if let Some(word) = rest.first()
            && !word.contains(':')
        {
            event.parse_date(word)?;
            rest = &rest[1..];
        }
        if let Some(word) = rest.first() {
            event.parse_time(word)?;
            rest = &rest[1..];
        }
        reject_rest(rest)?;
        Ok(event)
    }
}

fn reject_rest(rest: &[&str]) -> Result<(), CalendarError> {
    match rest.first() {
        Some(word) => Err(CalendarError::Unknown {
            text: (*word).to_owned(),
        }),
        None => Ok(()),
    }
}

/// Takes the last word if it is a zone. A single word is never one: it would leave no event.
fn take_zone(words: &mut Vec<&str>) -> Zone {
    let Some(last) = words.last().filter(|_| words.len() > 1) else {
        return Zone::Local;
    };
    if last.eq_ignore_ascii_case("UTC") {
        words.pop();
        return Zone::Utc;
    }
    if !last.starts_with(|character: char| character.is_ascii_alphabetic()) {
        return Zone::Local;
    }
    let Ok(zone) = TimeZone::get(last) else {
        return Zone::Local;
    };
    // The database's own spelling, so that equal events print the same.
    let name = zone.iana_name().unwrap_or(last).to_owned();
    words.pop();
    if name == "UTC" {
        Zone::Utc
    } else {
        Zone::Named(name)
    }
}

fn parse_weekdays(text: &str) -> Result<Weekdays, CalendarError> {
    let mut bits = 0;
    // A comma at the end is allowed before a date, as in systemd.
    for part in text.trim_end_matches(',').split(',') {
        let ends = part.split_once("..").or_else(|| part.split_once('-'));
        let (from, to) = match ends {
            Some((from, to)) => (weekday(from)?, weekday(to)?),
            None => (weekday(part)?, weekday(part)?),
        };
        if from > to {
            return Err(CalendarError::Backwards {
                text: part.to_owned(),
            });
        }
        for day in from..=to {
            bits |= 1 << day;
        }
    }
    Ok(Weekdays(bits))
}

/// The day's number, Monday being zero.
fn weekday(text: &str) -> Result<u8, CalendarError> {
    const NAMES: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let lower = text.to_ascii_lowercase();
    NAMES
        .iter()
        .position(|name| lower == *name || lower == name[..3])
        .and_then(|index| u8::try_from(index).ok())
        .ok_or_else(|| CalendarError::Weekday {
            text: text.to_owned(),
        })
}

impl CalendarEvent {
    fn parse_date(&mut self, text: &str) -> Result<(), CalendarError> {
        let invalid = || CalendarError::Date {
            text: text.to_owned(),
        };
        let (before_day, day) = text.rsplit_once(['-', '~']).ok_or_else(invalid)?;
        self.days_from_end = text.as_bytes().get(before_day.len()) == Some(&b'~');
        let (year, month) = match before_day.split_once('-') {
            Some((year, month)) => (Some(year), month),
            None => (None, before_day),
        };
        if month.contains(['-', '~']) || year.is_some_and(|year| year.contains('~')) {
            return Err(invalid());
        }
        if let Some(year) = year {
            self.years = parse_component(year, *YEARS.start(), *YEARS.end(), parse_year)?;
        }
        self.months = parse_component(month, 1, 12, parse_number)?;
        self.days = parse_component(day, 1, 31, parse_number)?;
        if self.days.0.is_empty() {
            self.days_from_end = false;
        }
        Ok(())
    }

    fn parse_time(&mut self, text: &str) -> Result<(), CalendarError> {
        let fields: Vec<&str> = text.split(':').collect();
        let (hour, minute, second) = match fields[..] {
            [hour, minute] => (hour, minute, "0"),
            [hour, minute, second] => (hour, minute, second),
            _ => {
                return Err(CalendarError::Time {
                    text: text.to_owned(),
                });
            }
        };
        self.hours = parse_component(hour, 0, 23, parse_number)?;
        self.minutes = parse_component(minute, 0, 59, parse_number)?;
        self.seconds = if second == "*" {
            // Every second, not every microsecond.
            Component(vec![Range {
                start: 0,
                stop: None,
                step: Some(SECOND),
            }])
        } else {
            parse_component(second, 0, 60 * SECOND - 1, parse_seconds)?
        };
        Ok(())
    }
}

fn parse_component(
    text: &str,
    minimum: u32,
    maximum: u32,
    number: fn(&str) -> Option<u32>,
) -> Result<Component, CalendarError> {
    if text == "*" {
        return Ok(Component::default());
    }
    if text.starts_with("*/") {
        return Err(CalendarError::StepOfAny {
            text: text.to_owned(),
        });
    }
    let value = |written: &str| {
        number(written)
            .filter(|value| (minimum..=maximum).contains(value))
            .ok_or_else(|| CalendarError::OutOfRange {
                text: written.to_owned(),
                minimum,
                maximum: if is_in_microseconds(maximum) {
                    maximum / SECOND
                } else {
                    maximum
                },
            })
    };
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let (span, written_step) = match part.split_once('/') {
            Some((span, step)) => (span, Some(step)),
            None => (part, None),
        };
        let (start, stop) = match span.split_once("..") {
            Some((first, last)) => (value(first)?, Some(value(last)?)),
            None => (value(span)?, None),
        };
        if stop.is_some_and(|stop| stop < start) {
            return Err(CalendarError::Backwards {
                text: part.to_owned(),
            });
        }
        let mut every = written_step
            .map(|written| parse_step(written, maximum))
            .transpose()?;
        // Ranges of whole numbers step by one; seconds step by whole seconds unless told otherwise.
        if is_in_microseconds(maximum) && stop.is_some() && every.is_none() {
            every = Some(SECOND);
        }
        ranges.push(Range {
            start,
            stop,
            step: every,
        });
    }
    ranges.sort_unstable();
    ranges.dedup();
    Ok(Component(ranges))
}

/// The field of seconds is told from the others by its scale.
fn is_in_microseconds(maximum: u32) -> bool {
    maximum >= SECOND
}

fn parse_step(written: &str, maximum: u32) -> Result<u32, CalendarError> {
    let (parse, shown): (fn(&str) -> Option<u32>, u32) = if is_in_microseconds(maximum) {
        (parse_seconds, maximum / SECOND)
    } else {
        (parse_number, maximum)
    };
    parse(written)
        .filter(|step| (1..=maximum).contains(step))
        .ok_or_else(|| CalendarError::OutOfRange {
            text: written.to_owned(),
            minimum: 1,
            maximum: shown,
        })
}

fn parse_number(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Two digits mean the years from 1970 to 2069.
fn parse_year(text: &str) -> Option<u32> {
    let year = parse_number(text)?;
    Some(match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    })
}

/// Seconds with up to six digits behind the point, in microseconds.
fn parse_seconds(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || fraction.len() > 6 {
        return None;
    }
    let digits = parse_number(fraction)?;
    let scale = 10_u32.pow(6 - u32::try_from(fraction.len()).ok()?);
    parse_number(whole)?
        .checked_mul(SECOND)?
        .checked_add(digits * scale)
}
