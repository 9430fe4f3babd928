//! Calendar events: notation, and the next time across changes of the clock.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::unit::calendar::CalendarEvent;

fn event(text: &str) -> CalendarEvent {
    text.parse().unwrap()
}

/// The next `count` times after `from`, shown in `zone`.
fn times(text: &str, from: &str, zone: &str, count: usize) -> Vec<String> {
    let zone = TimeZone::get(zone).unwrap();
    let mut now: Timestamp = from.parse().unwrap();
    let mut shown = Vec::new();
    while shown.len() < count {
        let Some(next) = event(text).next_after(now, &zone) else {
            break;
        };
        shown.push(
            next.to_zoned(zone.clone())
                .strftime("%a %F %T %Z")
                .to_string(),
        );
        now = next;
    }
    shown
}

#[test]
fn events_print_in_their_normal_form() {
    for (text, normal) in [
        ("daily", "*-*-* 00:00:00"),
        ("weekly UTC", "Mon *-*-* 00:00:00 UTC"),
        ("quarterly", "*-01,04,07,10-01 00:00:00"),
        ("Mon-Fri 8:5", "Mon..Fri *-*-* 08:05:00"),
        ("sat,SUNDAY *-*-*", "Sat,Sun *-*-* 00:00:00"),
        ("26-1-2", "2026-01-02 00:00:00"),
        ("5-1", "*-05-01 00:00:00"),
        ("*-*~3", "*-*~03 00:00:00"),
        ("*:0/15", "*-*-* *:00/15:00"),
        (
            "*-*-* 00/2:00:00 europe/berlin",
            "*-*-* 00/2:00:00 Europe/Berlin",
        ),
        ("*:*:0.5,30", "*-*-* *:*:00.5,30"),
        ("1..5,1..5-1", "*-01..05-01 00:00:00"),
    ] {
        assert_eq!(event(text).to_string(), normal, "{text}");
        assert_eq!(event(normal), event(text));
    }
}

#[test]
fn events_that_make_no_sense_are_refused() {
    for text in [
        "",
        "UTC",
        "Feb 30",
        "Mon..Xyz",
        "Fri..Mon",
        "25:00",
        "12:60",
        "*-13-01",
        "*-00-01",
        "*-*-32",
        "1969-01-01",
        "*/2:00",
        "5..1:00",
        "0/0:00",
        "1:2:3:4",
        "*-*-* 00:00 Mars/Base",
        "daily 00:00",
        "a-b-c",
        "12:00:00.1234567",
    ] {
        assert!(text.parse::<CalendarEvent>().is_err(), "{text}");
    }
}

#[test]
fn the_next_times_follow_the_fields() {
    assert_eq!(
        times("Mon..Fri 08:00", "2026-11-13T09:00:00Z", "UTC", 2),
        ["Mon 2026-11-16 08:00:00 UTC", "Tue 2026-11-17 08:00:00 UTC"]
    );
    assert_eq!(
        times("*-02~01", "2027-01-01T00:00:00Z", "UTC", 2),
        ["Sun 2027-02-28 00:00:00 UTC", "Tue 2028-02-29 00:00:00 UTC"]
    );
    assert_eq!(
        times("Mon *-05~07/1", "2026-01-01T00:00:00Z", "UTC", 2),
        ["Mon 2026-05-25 00:00:00 UTC", "Mon 2027-05-31 00:00:00 UTC"]
    );
    assert_eq!(
        times("*-*-* 22/1:30", "2026-01-01T22:30:00Z", "UTC", 2),
        ["Thu 2026-01-01 23:30:00 UTC", "Fri 2026-01-02 22:30:00 UTC"]
    );
}

#[test]
fn impossible_and_past_dates_have_no_next_time() {
    for text in [
        "*-02-30",
        "2001-01-01",
        "Mon 2026-11-17",
        "*-02~30",
        "*-04-31 *:*:*",
    ] {
        let now: Timestamp = "2026-11-16T00:00:00Z".parse().unwrap();
        let zone = TimeZone::get("America/New_York").unwrap();
        assert_eq!(event(text).next_after(now, &zone), None, "{text}");
    }
}

#[test]
fn skipped_local_times_do_not_happen() {
    // The clock goes from 02:00 to 03:00 on 29 March 2026.
    assert_eq!(
        times("*-*-* 02:30", "2026-03-28T00:00:00Z", "Europe/Berlin", 2),
        [
            "Sat 2026-03-28 02:30:00 CET",
            "Mon 2026-03-30 02:30:00 CEST"
        ]
    );
    assert_eq!(
        times("*:0/30", "2026-03-29T00:30:00Z", "Europe/Berlin", 2),
        [
            "Sun 2026-03-29 03:00:00 CEST",
            "Sun 2026-03-29 03:30:00 CEST"
        ]
    );
}

#[test]
fn repeated_local_times_happen_once_for_a_daily_event_and_twice_for_an_hourly_one() {
    // The clock goes from 03:00 back to 02:00 on 25 October 2026.
    assert_eq!(
        times("*-*-* 02:30", "2026-10-24T12:00:00Z", "Europe/Berlin", 2),
        [
            "Sun 2026-10-25 02:30:00 CEST",
            "Mon 2026-10-26 02:30:00 CET"
        ]
    );
    assert_eq!(
        times("*:30", "2026-10-25T00:00:00Z", "Europe/Berlin", 3),
        [
            "Sun 2026-10-25 02:30:00 CEST",
            "Sun 2026-10-25 02:30:00 CET",
            "Sun 2026-10-25 03:30:00 CET"
        ]
    );
}

#[test]
fn a_named_zone_counts_more_than_the_machines() {
    assert_eq!(
        times("*-*-* 00:00 Asia/Tokyo", "2026-11-16T00:00:00Z", "UTC", 1),
        ["Mon 2026-11-16 15:00:00 UTC"]
    );
}
