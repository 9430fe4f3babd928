//! Calendar events: `Mon..Fri *-*-* 08:00:00 Europe/Berlin`. An event is a set of local times; two
//! events that print the same are the same.

mod next;
mod parse;

use std::fmt;

use jiff::civil::{Date, DateTime, Weekday};

pub use parse::CalendarError;

/// Seconds are counted in millionths, so that `0.5` is exact.
const SECOND: u32 = 1_000_000;

/// Years that events may fall into, as in systemd.
const YEARS: std::ops::RangeInclusive<u32> = 1970..=2199;

/// Local times at which a timer fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarEvent {
    weekdays: Weekdays,
    years: Component,
    months: Component,
    days: Component,
    /// `~`: days are counted from the end of the month.
    days_from_end: bool,
    hours: Component,
    minutes: Component,
    /// In microseconds.
    seconds: Component,
    zone: Zone,
}

/// Which clock an event means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Zone {
    /// The machine's.
    Local,
    Utc,
    /// A name of the time-zone database, known to exist.
    Named(String),
}

/// Days of the week as bits, Monday lowest. All bits set is "any".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Weekdays(u8);

impl Weekdays {
    const ANY: Self = Self(0x7f);

    fn contains(self, day: Weekday) -> bool {
        self.0 & (1 << day.to_monday_zero_offset()) != 0
    }
}

/// The values one field may have. No ranges is `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Component(Vec<Range>);

/// `start`, `start..stop`, `start/step` or `start..stop/step`. A step without stop has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    start: u32,
    stop: Option<u32>,
    step: Option<u32>,
}

impl Range {
    /// The smallest value in the range that is at least `from` and at most `maximum`.
    fn first_from(self, from: u32, maximum: u32) -> Option<u32> {
        let stop = match (self.stop, self.step) {
            (Some(stop), _) => stop.min(maximum),
            (None, Some(_)) => maximum,
            (None, None) => self.start.min(maximum),
        };
        let value = if from <= self.start {
            self.start
        } else {
            let every = self.step.unwrap_or(1);
            let steps = (from - self.start).div_ceil(every);
            self.start.checked_add(steps.checked_mul(every)?)?
        };
        (value <= stop).then_some(value)
    }
}

impl Component {
    fn single(value: u32) -> Self {
        Self(vec![Range {
            start: value,
            stop: None,
            step: None,
        }])
    }

    /// The smallest allowed value that is at least `from` and at most `maximum`.
    fn first_from(&self, from: u32, maximum: u32) -> Option<u32> {
        if self.0.is_empty() {
            return (from <= maximum).then_some(from);
        }
        self.0
            .iter()
            .filter_map(|range| range.first_from(from, maximum))
            .min()
    }

    fn contains(&self, value: u32, maximum: u32) -> bool {
        self.first_from(value, maximum) == Some(value)
    }

    fn covers(&self, mut values: std::ops::RangeInclusive<u32>) -> bool {
        let maximum = *values.end();
        values.all(|value| self.contains(value, maximum))
    }

    /// The same days counted from the start of a month of `length` days.
    fn turned_around(&self, length: u32) -> Self {
        let turn = |value: u32| (length + 1).saturating_sub(value);
        Self(
            self.0
                .iter()
                // A day that this month does not have must not become day zero.
                .filter(|range| range.start <= length)
                .map(|range| match range.stop {
                    Some(stop) => Range {
                        start: turn(stop).max(1),
                        stop: Some(turn(range.start)),
                        step: range.step,
                    },
                    None => Range {
                        start: turn(range.start),
                        ..*range
                    },
                })
                .collect(),
        )
    }
}

impl CalendarEvent {
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Whether a local time is one of the event's.
    pub fn matches(&self, time: DateTime) -> bool {
        let year = u32::try_from(time.year()).unwrap_or(0);
        let seconds = unsigned(time.second()) * SECOND + sub_second(time);
        YEARS.contains(&year)
            && time.subsec_nanosecond() % 1000 == 0
            && self.years.contains(year, *YEARS.end())
            && self.months.contains(unsigned(time.month()), 12)
            && self.day_matches(time.date())
            && self.hours.contains(unsigned(time.hour()), 23)
            && self.minutes.contains(unsigned(time.minute()), 59)
            && self.seconds.contains(seconds, 60 * SECOND - 1)
    }

    fn day_matches(&self, date: Date) -> bool {
        let length = unsigned(date.days_in_month());
        self.weekdays.contains(date.weekday())
            && self
                .days_in_month(length)
                .contains(unsigned(date.day()), length)
    }

    fn days_in_month(&self, length: u32) -> Component {
        if self.days_from_end && !self.days.0.is_empty() {
            self.days.turned_around(length)
        } else {
            self.days.clone()
        }
    }
}

/// The calendar's fields are never negative.
fn unsigned(value: i8) -> u32 {
    u32::from(value.unsigned_abs())
}

fn sub_second(time: DateTime) -> u32 {
    time.subsec_nanosecond().unsigned_abs() / 1000
}

impl fmt::Display for CalendarEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.weekdays != Weekdays::ANY {
            write!(formatter, "{} ", self.weekdays)?;
        }
        write_component(formatter, &self.years, 4)?;
        formatter.write_str("-")?;
        write_component(formatter, &self.months, 2)?;
        formatter.write_str(if self.days_from_end { "~" } else { "-" })?;
        write_component(formatter, &self.days, 2)?;
        formatter.write_str(" ")?;
        write_component(formatter, &self.hours, 2)?;
        formatter.write_str(":")?;
        write_component(formatter, &self.minutes, 2)?;
        formatter.write_str(":")?;
        write_seconds(formatter, &self.seconds)?;
        match &self.zone {
            Zone::Local => Ok(()),
            Zone::Utc => formatter.write_str(" UTC"),
            Zone::Named(name) => write!(formatter, " {name}"),
        }
    }
}

impl fmt::Display for Weekdays {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
        let has = |day: usize| day < 7 && self.0 & (1 << day) != 0;
        let mut parts = Vec::new();
        let mut day = 0;
        while day < 7 {
            if !has(day) {
                day += 1;
                continue;
            }
            let start = day;
            while has(day + 1) {
                day += 1;
            }
            match day - start {
                0 => parts.push(NAMES[start].to_owned()),
                1 => parts.push(format!("{},{}", NAMES[start], NAMES[day])),
                _ => parts.push(format!("{}..{}", NAMES[start], NAMES[day])),
            }
            day += 1;
        }
        formatter.write_str(&parts.join(","))
    }
}

fn write_component(
    formatter: &mut fmt::Formatter<'_>,
    component: &Component,
    width: usize,
) -> fmt::Result {
    write_ranges(
        formatter,
        component,
        |value| format!("{value:0width$}"),
        |step| step.to_string(),
    )
}

fn write_seconds(formatter: &mut fmt::Formatter<'_>, component: &Component) -> fmt::Result {
    let with_fraction = |value: u32, width: usize| {
        let (whole, fraction) = (value / SECOND, value % SECOND);
        if fraction == 0 {
            return format!("{whole:0width$}");
        }
        let digits = format!("{fraction:06}");
        format!("{whole:0width$}.{}", digits.trim_end_matches('0'))
    };
    write_ranges(
        formatter,
        component,
        |value| with_fraction(value, 2),
        |step| with_fraction(step, 1),
    )
}

fn write_ranges(
    formatter: &mut fmt::Formatter<'_>,
    component: &Component,
    value: impl Fn(u32) -> String,
    step: impl Fn(u32) -> String,
) -> fmt::Result {
    if component.0.is_empty() {
        return formatter.write_str("*");
    }
    for (index, range) in component.0.iter().enumerate() {
        if index > 0 {
            formatter.write_str(",")?;
        }
        formatter.write_str(&value(range.start))?;
        if let Some(stop) = range.stop {
            write!(formatter, "..{}", value(stop))?;
        }
        if let Some(every) = range.step {
            write!(formatter, "/{}", step(every))?;
        }
    }
    Ok(())
}
