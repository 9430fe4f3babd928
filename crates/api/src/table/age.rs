//! Durations as people read them: the two biggest parts, and only while the smaller one matters.

use jiff::{SignedDuration, Timestamp};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// `118s`, `9m30s`, `179m`, `7h5m`, `47h`, `7d3h`, `729d`, `7y40d`, `8y`.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    // Clocks differ a little; what is nearly now is now.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    if seconds < 2 * MINUTE {
        format!("{seconds}s")
    } else if seconds < 10 * MINUTE {
        two(seconds, MINUTE, "m", 1, "s")
    } else if seconds < 3 * HOUR {
        format!("{}m", seconds / MINUTE)
    } else if seconds < 8 * HOUR {
        two(seconds, HOUR, "h", MINUTE, "m")
    } else if seconds < 2 * DAY {
        format!("{}h", seconds / HOUR)
    } else if seconds < 8 * DAY {
        two(seconds, DAY, "d", HOUR, "h")
    } else if seconds < 2 * YEAR {
        format!("{}d", seconds / DAY)
    } else if seconds < 8 * YEAR {
        two(seconds, YEAR, "y", DAY, "d")
    } else {
        format!("{}y", seconds / YEAR)
    }
}

/// Two parts, without the smaller one if it is zero.
fn two(seconds: i64, big: i64, big_letter: &str, small: i64, small_letter: &str) -> String {
    let rest = seconds % big / small;
    if rest == 0 {
        format!("{}{big_letter}", seconds / big)
    } else {
        format!("{}{big_letter}{rest}{small_letter}", seconds / big)
    }
}

/// How long ago a time was that stands in an object.
pub(super) fn since(time: &str, now: Timestamp) -> String {
    if time.is_empty() {
        return "<unknown>".to_owned();
    }
    match time.parse::<Timestamp>() {
        Ok(time) => human_duration(now.duration_since(time)),
        Err(_) => "<invalid>".to_owned(),
    }
}
