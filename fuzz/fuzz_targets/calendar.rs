//! Events print as they are read, and the next time is later, matches, and is found quickly.
#![no_main]

use jiff::Timestamp;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use transom_supervisor::unit::CalendarEvent;

fuzz_target!(|text: &str| {
    let Ok(event) = text.parse::<CalendarEvent>() else {
        return;
    };
    let again: CalendarEvent = event.to_string().parse().expect("a printed event can be read");
    assert_eq!(event, again);
    let mut now = Timestamp::from_second(1_790_000_000).expect("a time in range");
    for _ in 0..5 {
        let Some(next) = event.next_after(now, &TimeZone::UTC) else {
            return;
        };
        assert!(next > now);
        now = next;
    }
});
