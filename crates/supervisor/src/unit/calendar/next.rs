//! When an event fires next. The answer is always later than the question, is a time of the event
//! in its zone, and is found (or ruled out) in bounded steps.
//!
//! Around changes of the clock: local times that are skipped do not exist, so nothing fires for
//! them. Local times that happen twice fire twice if the event means every hour, and otherwise only
//! the first time: a daily job stays a daily job.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::{CalendarEvent, SECOND, YEARS, Zone, sub_second, unsigned};

/// Farther than any change of a clock reaches.
const CLOCK_CHANGE_REACH: SignedDuration = SignedDuration::from_hours(48);

impl CalendarEvent {
    /// The first time after `now`. `local` is the machine's zone, used if the event names none.
    pub fn next_after(&self, now: Timestamp, local: &TimeZone) -> Option<Timestamp> {
        let zone = match &self.zone {
            Zone::Local => local.clone(),
            Zone::Utc => TimeZone::UTC,
            Zone::Named(name) => TimeZone::get(name).ok()?,
        };
        let mut cursor = now.checked_add(SignedDuration::from_micros(1)).ok()?;
        cursor = Timestamp::from_microsecond(cursor.as_microsecond()).ok()?;
        if cursor <= now {
            cursor = cursor.checked_add(SignedDuration::from_micros(1)).ok()?;
        }
        let mut was_empty = false;
        loop {
            let piece = Piece::around(&zone, cursor);
            match self.first_in(&piece, cursor) {
                Some(instant) if piece.end.is_none_or(|end| instant < end) => return Some(instant),
                Some(instant) => {
                    // Nothing matches before `instant`, so most of the way can be skipped; the rest
                    // is looked at again because the clock may change until then.
                    let near = instant.checked_sub(CLOCK_CHANGE_REACH).ok()?;
                    cursor = near.max(piece.end?);
                }
                // A clock that goes back can bring a last match after "nothing later matches".
                None if was_empty => return None,
                None => {
                    was_empty = true;
                    cursor = piece.end?;
                }
            }
        }
    }

    /// The first match at or after `from`, on a clock that keeps the piece's offset for ever.
    fn first_in(&self, piece: &Piece, from: Timestamp) -> Option<Timestamp> {
        let mut bound = piece.offset.to_datetime(from);
        if !self.hours.covers(0..=23)
            && let Some(repeated_until) = piece.repeated_until
        {
            bound = bound.max(repeated_until);
        }
        piece
            .offset
            .to_timestamp(self.first_local_from(bound)?)
            .ok()
    }

    /// The smallest local time of the event that is at least `bound`.
    fn first_local_from(&self, bound: DateTime) -> Option<DateTime> {
        let last_year = *YEARS.end();
        let start = bound.date();
        let mut year = u32::try_from(start.year()).ok()?.max(*YEARS.start());
        while let Some(this_year) = self.years.first_from(year, last_year) {
            let mut month = 1;
            while let Some(this_month) = self.months.first_from(month, 12) {
                if let Some(found) = self.first_in_month(this_year, this_month, bound) {
                    return Some(found);
                }
                month = this_month + 1;
            }
            year = this_year + 1;
        }
        None
    }

    fn first_in_month(&self, year: u32, month: u32, bound: DateTime) -> Option<DateTime> {
        let first = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, 1).ok()?;
        if first.last_of_month() < bound.date() {
            return None;
        }
        let length = unsigned(first.days_in_month());
        let days = self.days_in_month(length);
        if days.0.is_empty() && self.days_from_end && !self.days.0.is_empty() {
            // Counted from the end, none of the days exists in this month.
            return None;
        }
        let mut day = 1;
        while let Some(this_day) = days.first_from(day, length) {
            let date = Date::new(first.year(), first.month(), i8::try_from(this_day).ok()?).ok()?;
            if date >= bound.date() && self.weekdays.contains(date.weekday()) {
                let from = if date == bound.date() {
                    bound.time()
                } else {
                    Time::midnight()
                };
                if let Some(time) = self.first_time_from(from) {
                    return Some(date.to_datetime(time));
                }
            }
            day = this_day + 1;
        }
        None
    }

    /// The smallest time of day of the event that is at least `from`.
    fn first_time_from(&self, from: Time) -> Option<Time> {
        let bound = from.on(1970, 1, 1);
        let (from_hour, from_minute) = (unsigned(from.hour()), unsigned(from.minute()));
        let from_second = unsigned(from.second()) * SECOND + sub_second(bound);
        let mut hour = from_hour;
        while let Some(this_hour) = self.hours.first_from(hour, 23) {
            let mut minute = if this_hour == from_hour {
                from_minute
            } else {
                0
            };
            while let Some(this_minute) = self.minutes.first_from(minute, 59) {
                let is_bound = this_hour == from_hour && this_minute == from_minute;
                let second = if is_bound { from_second } else { 0 };
                if let Some(micros) = self.seconds.first_from(second, 60 * SECOND - 1) {
                    return time_of_day(this_hour, this_minute, micros);
                }
                minute = this_minute + 1;
            }
            hour = this_hour + 1;
        }
        None
    }
}

fn time_of_day(hour: u32, minute: u32, micros: u32) -> Option<Time> {
    Time::new(
        i8::try_from(hour).ok()?,
        i8::try_from(minute).ok()?,
        i8::try_from(micros / SECOND).ok()?,
        i32::try_from(micros % SECOND).ok()? * 1000,
    )
    .ok()
}

/// A stretch of time in which a zone's offset does not change.
struct Piece {
    offset: Offset,
    end: Option<Timestamp>,
    /// If the clock went back when the stretch began: until when local times are a repetition.
    repeated_until: Option<DateTime>,
}

impl Piece {
    fn around(zone: &TimeZone, instant: Timestamp) -> Self {
        let offset = zone.to_offset(instant);
        let end = zone
            .following(instant)
            .next()
            .map(|change| change.timestamp());
        // `preceding` is exclusive: a change exactly at `instant` belongs to this stretch.
        let just_after = instant
            .checked_add(SignedDuration::from_nanos(1))
            .unwrap_or(instant);
        let start = zone
            .preceding(just_after)
            .next()
            .map(|change| change.timestamp());
        let repeated_until = start.and_then(|start| {
            let before = zone.to_offset(start.checked_sub(SignedDuration::from_nanos(1)).ok()?);
            (before.seconds() > offset.seconds()).then(|| before.to_datetime(start))
        });
        Self {
            offset,
            end,
            repeated_until,
        }
    }
}
