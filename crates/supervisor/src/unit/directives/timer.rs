//! The table of `[Timer]`.

use super::draft::{Draft, Input, set};
use super::{Directive, Section, full, limited, lists};
use crate::unit::calendar::CalendarEvent;
use crate::unit::name::{UnitName, UnitType};
use crate::unit::values::ValueError;

const S: Section = Section::Timer;

pub(super) const TABLE: &[Directive] = &[
    full(
        S,
        "OnActiveSec",
        "time span",
        "After the timer was started",
        |draft, input| lists::spans(&mut draft.timer.on_active, input),
    ),
    full(
        S,
        "OnBootSec",
        "time span",
        "After the machine was booted",
        |draft, input| lists::spans(&mut draft.timer.on_boot, input),
    ),
    full(
        S,
        "OnStartupSec",
        "time span",
        "After the supervisor was started",
        |draft, input| lists::spans(&mut draft.timer.on_startup, input),
    ),
    full(
        S,
        "OnUnitActiveSec",
        "time span",
        "After the unit was last started",
        |draft, input| lists::spans(&mut draft.timer.on_unit_active, input),
    ),
    full(
        S,
        "OnUnitInactiveSec",
        "time span",
        "After the unit last ended",
        |draft, input| lists::spans(&mut draft.timer.on_unit_inactive, input),
    ),
    full(
        S,
        "OnCalendar",
        "calendar event",
        "At these times of the clock",
        add_calendar_event,
    ),
    limited(
        S,
        "AccuracySec",
        "time span",
        "How much later it may fire",
        |_, input| {
            if input.is_empty() {
                return Ok(());
            }
            input.span().map(drop)
        },
        "checked only: timers fire on time",
    ),
    full(
        S,
        "RandomizedDelaySec",
        "time span",
        "A random delay up to this long",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.timer.randomized_delay,
                Input::span,
            )
        },
    ),
    full(
        S,
        "FixedRandomDelay",
        "boolean",
        "The same random delay each time",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.timer.fixed_random_delay,
                Input::boolean,
            )
        },
    ),
    full(
        S,
        "Persistent",
        "boolean",
        "Make up for times missed while the timer was off",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.timer.persistent,
                Input::boolean,
            )
        },
    ),
    limited(
        S,
        "WakeSystem",
        "boolean",
        "Wake the machine",
        check_wake_system,
        "checked only: the machine is never woken",
    ),
    full(
        S,
        "RemainAfterElapse",
        "boolean",
        "Keep the timer after it has fired for the last time",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.timer.remain_after_elapse,
                Input::boolean,
            )
        },
    ),
    full(
        S,
        "Unit",
        "unit",
        "What it starts; by default the service of the same name",
        set_unit,
    ),
];

fn add_calendar_event(draft: &mut Draft, input: &mut Input<'_>) -> Result<(), ValueError> {
    if input.is_empty() {
        draft.timer.on_calendar.clear();
        return Ok(());
    }
    let event: CalendarEvent = input
        .text()?
        .parse()
        .map_err(|error| ValueError::new(format!("{error}")))?;
    draft.timer.on_calendar.push(event);
    Ok(())
}

fn check_wake_system(_: &mut Draft, input: &mut Input<'_>) -> Result<(), ValueError> {
    if !input.is_empty() && input.boolean()? {
        input.warn("not supported: this supervisor never wakes the machine; the timer fires when it is awake");
    }
    Ok(())
}

fn set_unit(draft: &mut Draft, input: &mut Input<'_>) -> Result<(), ValueError> {
    set(
        draft,
        input,
        |draft| &mut draft.timer.unit,
        |input| {
            let name = UnitName::new(&input.text()?)
                .map_err(|error| ValueError::new(error.to_string()))?;
            if name.unit_type() == UnitType::Timer {
                return Err(ValueError::new(format!(
                    "`{name}` is a timer: timers start services and targets"
                )));
            }
            Ok(Some(name))
        },
    )
}
