//! The table of `[Unit]`. Conditions are in `condition`.

use super::draft::{Draft, Input, set};
use super::{Directive, Section, full, limited, lists};
use crate::unit::values::ValueError;

const S: Section = Section::Unit;

pub(super) const TABLE: &[Directive] = &[
    full(
        S,
        "Description",
        "text",
        "What the unit is, for people",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.description,
                |input| input.text().map(Some),
            )
        },
    ),
    full(
        S,
        "Documentation",
        "list of addresses",
        "Where to read more",
        |draft, input| lists::word_list(&mut draft.documentation, input),
    ),
    full(
        S,
        "Requires",
        "list of units",
        "Units that are started too; if one fails or is stopped, so is this one",
        |draft, input| lists::dependencies(&mut draft.dependencies.requires, input),
    ),
    full(
        S,
        "Requisite",
        "list of units",
        "Units that must be active already, or the start fails",
        |draft, input| lists::dependencies(&mut draft.dependencies.requisite, input),
    ),
    full(
        S,
        "Wants",
        "list of units",
        "Units that are started too; their failure does not matter",
        |draft, input| lists::dependencies(&mut draft.dependencies.wants, input),
    ),
    full(
        S,
        "BindsTo",
        "list of units",
        "As Requires=, and this unit stops when one of them stops for any reason",
        |draft, input| lists::dependencies(&mut draft.dependencies.binds_to, input),
    ),
    full(
        S,
        "PartOf",
        "list of units",
        "When one of them is stopped or restarted, so is this unit",
        |draft, input| lists::dependencies(&mut draft.dependencies.part_of, input),
    ),
    full(
        S,
        "Upholds",
        "list of units",
        "Units that are kept running while this one is",
        |draft, input| lists::dependencies(&mut draft.dependencies.upholds, input),
    ),
    full(
        S,
        "Conflicts",
        "list of units",
        "Units that are stopped when this one starts, and the other way round",
        |draft, input| lists::dependencies(&mut draft.dependencies.conflicts, input),
    ),
    full(
        S,
        "Before",
        "list of units",
        "Units that start after this one and stop before it",
        |draft, input| lists::dependencies(&mut draft.dependencies.before, input),
    ),
    full(
        S,
        "After",
        "list of units",
        "Units that start before this one and stop after it",
        |draft, input| lists::dependencies(&mut draft.dependencies.after, input),
    ),
    full(
        S,
        "OnFailure",
        "list of units",
        "Units started when this one fails",
        |draft, input| lists::dependencies(&mut draft.dependencies.on_failure, input),
    ),
    full(
        S,
        "OnSuccess",
        "list of units",
        "Units started when this one ends well",
        |draft, input| lists::dependencies(&mut draft.dependencies.on_success, input),
    ),
    full(
        S,
        "PropagatesReloadTo",
        "list of units",
        "Units reloaded together with this one",
        |draft, input| lists::dependencies(&mut draft.dependencies.propagates_reload_to, input),
    ),
    full(
        S,
        "ReloadPropagatedFrom",
        "list of units",
        "The other direction of PropagatesReloadTo=",
        |draft, input| lists::dependencies(&mut draft.dependencies.reload_propagated_from, input),
    ),
    full(
        S,
        "PropagatesStopTo",
        "list of units",
        "Units stopped together with this one",
        |draft, input| lists::dependencies(&mut draft.dependencies.propagates_stop_to, input),
    ),
    full(
        S,
        "StopPropagatedFrom",
        "list of units",
        "The other direction of PropagatesStopTo=",
        |draft, input| lists::dependencies(&mut draft.dependencies.stop_propagated_from, input),
    ),
    full(
        S,
        "DefaultDependencies",
        "boolean",
        "Whether the unit stops at shutdown without being told",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.no_default_dependencies,
                |input| input.boolean().map(|value| !value),
            )
        },
    ),
    full(
        S,
        "RefuseManualStart",
        "boolean",
        "Only other units may start this one",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.refuse_manual_start,
                Input::boolean,
            )
        },
    ),
    full(
        S,
        "RefuseManualStop",
        "boolean",
        "Only other units may stop this one",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.refuse_manual_stop,
                Input::boolean,
            )
        },
    ),
    full(
        S,
        "StopWhenUnneeded",
        "boolean",
        "Stop when no active unit needs this one",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.stop_when_unneeded,
                Input::boolean,
            )
        },
    ),
    full(
        S,
        "JobTimeoutSec",
        "time span",
        "How long a job may take, its waiting included",
        |draft, input| set(draft, input, |draft| &mut draft.job_timeout, Input::timeout),
    ),
    full(
        S,
        "StartLimitIntervalSec",
        "time span",
        "The time in which starts are counted; 0 turns the limit off",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.start_limit.interval,
                Input::span,
            )
        },
    ),
    full(
        S,
        "StartLimitInterval",
        "time span",
        "The older name of StartLimitIntervalSec=",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.start_limit.interval,
                Input::span,
            )
        },
    ),
    full(
        S,
        "StartLimitBurst",
        "number",
        "How many starts are allowed in that time",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.start_limit.burst,
                Input::number,
            )
        },
    ),
    limited(
        S,
        "StartLimitAction",
        "none",
        "What happens when the limit is hit",
        check_limit_action,
        "the unit fails, and nothing else happens",
    ),
];

/// All that can be asked for is what happens anyway; the rest is refused by name.
fn check_limit_action(_: &mut Draft, input: &mut Input<'_>) -> Result<(), ValueError> {
    if matches!(input.raw, "" | "none") {
        return Ok(());
    }
    Err(ValueError::new(format!(
        "`{}` is not supported: this supervisor never takes the machine or itself down",
        input.raw
    )))
}
