//! What holds for any input: the same as the fuzz targets check, on a stable compiler.

use camino::Utf8Path;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use transom_model::os::Os;

use crate::unit::calendar::{CalendarEvent, Zone};
use crate::unit::command::ExecCommand;
use crate::unit::parse::{UnitSource, parse};
use crate::unit::syntax::{self, Assignment};
use crate::unit::values::{format_time_span, parse_time_span};
use crate::unit::{SpecifierContext, UnitName, words};

fn any_os() -> impl Strategy<Value = Os> {
    prop_oneof![Just(Os::Linux), Just(Os::Windows)]
}

/// Text made of the pieces that unit files are made of, so that deep paths are reached.
fn unit_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("[Service]\n".to_owned()),
        Just("[Unit]\n".to_owned()),
        Just("[Timer]\n".to_owned()),
        Just("ExecStart=".to_owned()),
        Just("OnCalendar=".to_owned()),
        Just("Environment=".to_owned()),
        Just("ConditionMemory=".to_owned()),
        Just("After=".to_owned()),
        Just("RestartSec=".to_owned()),
        Just("\\\n".to_owned()),
        Just("\n".to_owned()),
        Just("%".to_owned()),
        Just("\\".to_owned()),
        Just("\"".to_owned()),
        "[ -~]{0,12}",
        "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Mostly valid calendar events.
fn calendar_text() -> impl Strategy<Value = String> {
    let field = |low: u32, high: u32| {
        prop_oneof![
            3 => Just("*".to_owned()),
            3 => (low..=high).prop_map(|value| value.to_string()),
            1 => (low..=high, 1..9_u32).prop_map(|(value, step)| format!("{value}/{step}")),
            1 => (low..=high, low..=high).prop_map(|(one, two)| format!("{}..{}", one.min(two), one.max(two))),
            1 => (low..=high, low..=high).prop_map(|(one, two)| format!("{one},{two}")),
        ]
    };
    let weekdays = prop_oneof![Just(""), Just("Mon..Fri "), Just("Sun "), Just("Tue,Thu ")];
    let day_mark = prop_oneof![3 => Just("-"), 1 => Just("~")];
    let zone = prop_oneof![
        Just(""),
        Just(" UTC"),
        Just(" America/New_York"),
        Just(" Australia/Lord_Howe")
    ];
    let date = (field(2024, 2040), field(1, 12), day_mark, field(1, 31));
    let time = (field(0, 23), field(0, 59), field(0, 59));
    (weekdays, date, time, zone).prop_map(
        |(weekdays, (year, month, mark, day), (hour, minute, second), zone)| {
            format!("{weekdays}{year}-{month}{mark}{day} {hour}:{minute}:{second}{zone}")
        },
    )
}

fn without_lines(list: &[Assignment]) -> Vec<(String, String, String)> {
    let take = |one: &Assignment| (one.section.clone(), one.key.clone(), one.value.clone());
    list.iter().map(take).collect()
}

proptest! {
    #[test]
    fn any_text_is_a_unit_with_problems_and_can_be_written_again(text in unit_text(), os in any_os()) {
        let path = Utf8Path::new("x.service");
        let first = syntax::parse(text.as_bytes(), path, os);
        let second = syntax::parse(syntax::render(&first.assignments).as_bytes(), path, os);
        prop_assert_eq!(without_lines(&first.assignments), without_lines(&second.assignments));
        for name in ["x.service", "x@y.timer", "x.target"] {
            let source = UnitSource { path: path.to_owned(), bytes: text.clone().into_bytes() };
            let unit = parse(&UnitName::new(name).unwrap(), Some(&source), &[], &SpecifierContext::places(os));
            prop_assert!(unit.problems.iter().all(|problem| !problem.message.is_empty()));
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), os in any_os()) {
        syntax::parse(&bytes, Utf8Path::new("x.service"), os);
    }

    #[test]
    fn any_words_survive_quoting(list in prop::collection::vec("[ -~äé\\\\\"';]{0,8}", 1..6), os in any_os()) {
        let line = list.iter().map(|word| words::quote(word, os)).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(words::split(&line, os).unwrap().into_texts(), list);
    }

    #[test]
    fn any_command_reads_as_it_prints(text in "[-@:+!]{0,3}/?[ -~]{0,40}", os in any_os()) {
        let plain = |word: &str| Ok(word.replace("%%", "%"));
        if let Ok(parsed) = ExecCommand::parse_line(&text, os, plain) {
            for command in parsed.commands {
                let again = ExecCommand::parse_line(&command.render(os), os, plain).unwrap();
                prop_assert_eq!(vec![command.clone()], again.commands);
                command.expand(|name| Some(name.to_lowercase()));
            }
        }
    }

    #[test]
    fn next_times_increase_match_and_miss_nothing(text in calendar_text(), start in 1_700_000_000_i64..2_100_000_000) {
        let event: CalendarEvent = text.parse().unwrap();
        prop_assert_eq!(event.to_string().parse::<CalendarEvent>().unwrap(), event.clone());
        let local = TimeZone::get("Europe/Berlin").unwrap();
        let zone = match event.zone() {
            Zone::Local => local.clone(),
            Zone::Utc => TimeZone::UTC,
            Zone::Named(name) => TimeZone::get(name).unwrap(),
        };
        let mut now = Timestamp::from_second(start).unwrap();
        for _ in 0..4 {
            let Some(next) = event.next_after(now, &local) else {
                break;
            };
            prop_assert!(next > now);
            prop_assert!(event.matches(next.to_zoned(zone.clone()).datetime()));
            // Asked from in between, the answer is the same: nothing lies between.
            let middle = now.as_second().midpoint(next.as_second());
            let middle = Timestamp::from_second(middle).unwrap().max(now);
            if middle < next {
                prop_assert_eq!(event.next_after(middle, &local), Some(next));
            }
            now = next;
        }
    }

    #[test]
    fn any_text_is_an_event_or_an_error(text in "[ -~]{0,30}") {
        if let Ok(event) = text.parse::<CalendarEvent>() {
            prop_assert_eq!(event.to_string().parse::<CalendarEvent>().unwrap(), event);
        }
    }

    #[test]
    fn any_span_reads_as_it_prints(microseconds in 0..1_000_000_000_000_000_u64) {
        let span = Some(std::time::Duration::from_micros(microseconds));
        prop_assert_eq!(parse_time_span(&format_time_span(span)).unwrap(), span);
    }
}
