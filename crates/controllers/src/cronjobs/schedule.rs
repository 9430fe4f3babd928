//! When a schedule is due: five fields, a word for some of them, or a pause between times.

use std::{ops::RangeInclusive, time::Duration};

use jiff::{SignedDuration, Timestamp, ToSpan as _, tz::TimeZone};

/// How far ahead a time is looked for. One that never comes is found out by then.
const HORIZON_YEARS: i16 = 5;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Why a schedule cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ScheduleError {
    #[error("expected exactly 5 fields, found {found}: [{text}]")]
    Fields { found: usize, text: String },
    #[error("failed to parse int from {text}")]
    Number { text: String },
    #[error("`{text}` is not between {first} and {last}")]
    Range { text: String, first: u8, last: u8 },
    #[error("unrecognized descriptor: {text}")]
    Word { text: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    Fields(Fields),
    Every(Duration),
}

/// What each field allows, a bit for each value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Both kinds of day must fit if one of them says nothing, else either.
    both_days: bool,
}

impl Schedule {
    pub(super) fn parse(text: &str) -> Result<Self, ScheduleError> {
        let text = text.trim();
        if let Some(word) = text.strip_prefix('@') {
            return descriptor(text, word);
        }
        let parts: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts[..] else {
            return Err(ScheduleError::Fields {
                found: parts.len(),
                text: text.to_owned(),
            });
        };
        let is_any = |text: &str| {
            text.split(',')
                .any(|part| matches!(part, "*" | "?" | "*/1" | "?/1"))
        };
        Ok(Self::Fields(Fields {
            minutes: field(minutes, 0..=59, &[])?,
            hours: field(hours, 0..=23, &[])?,
            days: field(days, 1..=31, &[])?,
            months: field(months, 1..=12, &MONTHS)?,
            weekdays: field(weekdays, 0..=6, &DAYS)?,
            both_days: is_any(days) || is_any(weekdays),
        }))
    }

    /// The first time after another, where clocks show what a zone says. `None` if there is none.
    pub(super) fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Every(pause) => {
                let pause = SignedDuration::try_from(*pause).ok()?;
                let next = after.checked_add(pause).ok()?;
                Timestamp::from_second(next.as_second()).ok()
            }
            Self::Fields(fields) => fields.next(after, zone),
        }
    }
}

fn descriptor(text: &str, word: &str) -> Result<Schedule, ScheduleError> {
    let unknown = || ScheduleError::Word {
        text: text.to_owned(),
    };
    if let Some(pause) = word.strip_prefix("every ") {
        let pause: SignedDuration = pause.trim().parse().map_err(|_| unknown())?;
        let pause = Duration::try_from(pause).map_err(|_| unknown())?;
        // Less than a second is a second, and parts of one do not count.
        return Ok(Schedule::Every(Duration::from_secs(pause.as_secs().max(1))));
    }
    let fields = match word {
        "yearly" | "annually" => "0 0 1 1 *",
        "monthly" => "0 0 1 * *",
        "weekly" => "0 0 * * 0",
        "daily" | "midnight" => "0 0 * * *",
        "hourly" => "0 * * * *",
        _ => return Err(unknown()),
    };
    Schedule::parse(fields)
}

/// The values that a field allows.
fn field(text: &str, bounds: RangeInclusive<u8>, names: &[&str]) -> Result<u64, ScheduleError> {
    text.split(',')
        .try_fold(0, |all, part| Ok(all | range(part, &bounds, names)?))
}

fn range(text: &str, bounds: &RangeInclusive<u8>, names: &[&str]) -> Result<u64, ScheduleError> {
    let (first_bound, last_bound) = (*bounds.start(), *bounds.end());
    let outside = || ScheduleError::Range {
        text: text.to_owned(),
        first: first_bound,
        last: last_bound,
    };
    let (values, step) = match text.split_once('/') {
        Some((values, step)) => (values, Some(number(step, &[], 0)?)),
        None => (text, None),
    };
    let (first, last) = match values.split_once('-') {
        _ if matches!(values, "*" | "?") => (first_bound, last_bound),
        Some((first, last)) => (
            number(first, names, first_bound)?,
            number(last, names, first_bound)?,
        ),
        None => {
            let first = number(values, names, first_bound)?;
            // With a step, one value is where it begins.
            (first, if step.is_some() { last_bound } else { first })
        }
    };
    let step = step.unwrap_or(1);
    if step == 0 || first > last || !bounds.contains(&first) || !bounds.contains(&last) {
        return Err(outside());
    }
    Ok((first..=last)
        .step_by(usize::from(step))
        .fold(0, |all, value| all | 1 << value))
}

fn number(text: &str, names: &[&str], offset: u8) -> Result<u8, ScheduleError> {
    let place = names
        .iter()
        .position(|name| text.eq_ignore_ascii_case(name));
    if let Some(place) = place.and_then(|place| u8::try_from(place).ok()) {
        return Ok(place + offset);
    }
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| is_number)
        .ok_or_else(|| ScheduleError::Number {
            text: text.to_owned(),
        })
}

fn has(bits: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| value < 64 && bits >> value & 1 == 1)
}

impl Fields {
    fn fits_day(&self, date: jiff::civil::Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        if self.both_days {
            day && weekday
        } else {
            day || weekday
        }
    }

    /// Goes ahead by months, days, hours and minutes, each from the start of the one before. Hours and
    /// minutes are real time, so an hour that clocks skip is skipped and one that they repeat is repeated.
    fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let minute = after.as_second().div_euclid(60).checked_add(1)?;
        let mut time = Timestamp::from_second(minute.checked_mul(60)?).ok()?;
        let last_year = time
            .to_zoned(zone.clone())
            .year()
            .checked_add(HORIZON_YEARS)?;
        loop {
            let local = time.to_zoned(zone.clone());
            if local.year() > last_year {
                return None;
            }
            let date = local.date();
            if !has(self.months, date.month()) {
                let next = date.first_of_month().checked_add(1.month()).ok()?;
                time = start_of(next, zone)?;
            } else if !self.fits_day(date) {
                time = start_of(date.tomorrow().ok()?, zone)?;
            } else if !has(self.hours, local.hour()) {
                let rest = 3_600 - i64::from(local.minute()) * 60 - i64::from(local.second());
                time = Timestamp::from_second(time.as_second() + rest).ok()?;
            } else if has(self.minutes, local.minute()) && local.second() == 0 {
                return Some(time);
            } else {
                time = Timestamp::from_second(time.as_second() + 60 - i64::from(local.second()))
                    .ok()?;
            }
        }
    }
}

fn start_of(date: jiff::civil::Date, zone: &TimeZone) -> Option<Timestamp> {
    date.to_zoned(zone.clone())
        .ok()
        .map(|start| start.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str, zone: &str) -> String {
        let zone = TimeZone::get(zone).unwrap();
        let schedule = Schedule::parse(schedule).unwrap();
        let next = schedule.next(after.parse().unwrap(), &zone);
        next.map_or("never".to_owned(), |next| next.to_string())
    }

    #[test]
    fn the_next_time_is_the_first_that_all_fields_allow() {
        for (schedule, after, wanted) in [
            ("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
            (
                "*/15 * * * *",
                "2026-01-01T00:07:30Z",
                "2026-01-01T00:15:00Z",
            ),
            (
                "5/20 * * * *",
                "2026-01-01T00:06:00Z",
                "2026-01-01T00:25:00Z",
            ),
            ("0 3 * * *", "2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z"),
            (
                "30 4 1,15 * *",
                "2026-01-02T00:00:00Z",
                "2026-01-15T04:30:00Z",
            ),
            (
                "0 0 * * mon-fri",
                "2026-01-02T00:00:00Z",
                "2026-01-05T00:00:00Z",
            ),
            // Either kind of day is enough if both say something.
            (
                "0 0 13 * FRI",
                "2026-01-01T00:00:00Z",
                "2026-01-02T00:00:00Z",
            ),
            ("0 0 31 * *", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z"),
            (
                "0 0 29 feb ?",
                "2026-01-01T00:00:00Z",
                "2028-02-29T00:00:00Z",
            ),
            ("0 0 30 2 *", "2026-01-01T00:00:00Z", "never"),
            ("@hourly", "2026-01-01T00:30:00Z", "2026-01-01T01:00:00Z"),
            ("@weekly", "2026-01-01T00:30:00Z", "2026-01-04T00:00:00Z"),
            (
                "@every 1h30m",
                "2026-01-01T00:00:00Z",
                "2026-01-01T01:30:00Z",
            ),
        ] {
            assert_eq!(next(schedule, after, "UTC"), wanted, "{schedule}");
        }
    }

    #[test]
    fn clocks_that_are_changed_skip_and_repeat() {
        let zone = "Europe/Berlin";
        assert_eq!(
            next("0 12 * * *", "2026-07-01T00:00:00Z", zone),
            "2026-07-01T10:00:00Z"
        );
        // On 29 March there is no half past two: the next one is the day after.
        assert_eq!(
            next("30 2 * * *", "2026-03-28T12:00:00Z", zone),
            "2026-03-30T00:30:00Z"
        );
        // On 25 October there are two.
        assert_eq!(
            next("30 2 * * *", "2026-10-24T12:00:00Z", zone),
            "2026-10-25T00:30:00Z"
        );
        assert_eq!(
            next("30 2 * * *", "2026-10-25T00:30:00Z", zone),
            "2026-10-25T01:30:00Z"
        );
        // A zone that is half an hour off.
        assert_eq!(
            next("0 6 * * *", "2026-01-01T00:00:00Z", "Asia/Kolkata"),
            "2026-01-01T00:30:00Z"
        );
    }

    #[test]
    fn what_is_no_schedule_is_told() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 7",
            "a * * * *",
            "5-1 * * * *",
            "*/0 * * * *",
            "-1 * * * *",
            "1-2-3 * * * *",
            "@often",
            "@every",
            "@every -1h",
            "TZ=UTC * * * * *",
            "1,,2 * * * *",
        ] {
            assert!(Schedule::parse(text).is_err(), "{text}");
        }
        assert_eq!(
            Schedule::parse("* *").unwrap_err().to_string(),
            "expected exactly 5 fields, found 2: [* *]"
        );
    }
}
