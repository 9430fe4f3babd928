//! How long ago something was, in as few letters as people need. Invariant: never more than two
//! units, and a time in the future is not an age.

use jiff::{SignedDuration, Timestamp};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// `95s`, `5m30s`, `125m`, `3h20m`, `23h`, `3d4h`, `123d`, `2y30d`: the steps of kubectl, so that
/// both can be read side by side.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs();
    match seconds {
        // Clocks of two machines differ a little; more than that is worth seeing.
        ..=-2 => "<future>".to_owned(),
        -1..0 => "0s".to_owned(),
        _ => elapsed(SignedDuration::from_secs(seconds)),
    }
}

fn elapsed(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => pair(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => pair(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds, DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => pair(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// Two units, the smaller one left out when it is zero.
fn pair(seconds: i64, large: i64, large_name: &str, small: i64, small_name: &str) -> String {
    match (seconds % large) / small {
        0 => format!("{}{large_name}", seconds / large),
        rest => format!("{}{large_name}{rest}{small_name}", seconds / large),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_at_most_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (330, "5m30s"),
            (599, "9m59s"),
            (600, "10m"),
            (7_500, "125m"),
            (12_000, "3h20m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (273_600, "3d4h"),
            (10_627_200, "123d"),
            (65_664_000, "2y30d"),
            (315_360_000, "10y"),
        ] {
            let since = Timestamp::UNIX_EPOCH;
            let now = since + SignedDuration::from_secs(seconds);
            assert_eq!(age(since, now), text, "{seconds}");
        }
    }

    #[test]
    fn a_clock_that_is_ahead_gives_no_negative_age() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(age(now + SignedDuration::from_secs(1), now), "0s");
        assert_eq!(age(now + SignedDuration::from_secs(60), now), "<future>");
    }
}
