//! The table of `[Service]`: what runs, when it counts as started, how it ends.

use super::draft::{Draft, Input, Written, set};
use super::{Directive, Section, full, limited, lists};
use crate::unit::service::{KillMode, NotifyAccess, Restart, ServiceType};
use crate::unit::values::ValueError;

const S: Section = Section::Service;

pub(super) const TABLE: &[Directive] = &[
    limited(
        S,
        "Type",
        "simple, exec, oneshot, notify, notify-reload, idle",
        "When the service counts as started",
        set_type,
        "a service of type forking or dbus is refused",
    ),
    full(
        S,
        "ExecCondition",
        "command line",
        "Commands that decide whether to start; exit codes 1 to 254 mean no",
        |draft, input| lists::commands(&mut draft.service.exec_condition, input),
    ),
    full(
        S,
        "ExecStartPre",
        "command line",
        "Commands before the start",
        |draft, input| lists::commands(&mut draft.service.exec_start_pre, input),
    ),
    full(
        S,
        "ExecStart",
        "command line",
        "The service itself",
        |draft, input| lists::commands(&mut draft.service.exec_start, input),
    ),
    full(
        S,
        "ExecStartPost",
        "command line",
        "Commands after the start",
        |draft, input| lists::commands(&mut draft.service.exec_start_post, input),
    ),
    full(
        S,
        "ExecReload",
        "command line",
        "Commands that make the service read its configuration again",
        |draft, input| lists::commands(&mut draft.service.exec_reload, input),
    ),
    full(
        S,
        "ExecStop",
        "command line",
        "Commands that ask the service to stop",
        |draft, input| lists::commands(&mut draft.service.exec_stop, input),
    ),
    full(
        S,
        "ExecStopPost",
        "command line",
        "Commands after the service has stopped, however it ended",
        |draft, input| lists::commands(&mut draft.service.exec_stop_post, input),
    ),
    full(
        S,
        "Restart",
        "no, always, on-success, on-failure, on-abnormal, on-abort, on-watchdog",
        "When the service is started again by itself",
        |draft, input| set(draft, input, |draft| &mut draft.service.restart, restart),
    ),
    full(
        S,
        "RestartSec",
        "time span",
        "How long to wait before starting again",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.restart_sec,
                Input::span,
            )
        },
    ),
    full(
        S,
        "RestartSteps",
        "number",
        "In how many steps the wait grows to RestartMaxDelaySec=",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.restart_steps,
                Input::number,
            )
        },
    ),
    full(
        S,
        "RestartMaxDelaySec",
        "time span",
        "The longest wait before starting again",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.restart_max_delay_sec,
                Input::span_or_infinity,
            )
        },
    ),
    full(
        S,
        "SuccessExitStatus",
        "list of exit statuses",
        "Exit codes and signals that count as success, besides 0",
        |draft, input| lists::exit_statuses(&mut draft.service.success_exit_status, input),
    ),
    full(
        S,
        "RestartPreventExitStatus",
        "list of exit statuses",
        "Exit codes and signals after which the service is not started again",
        |draft, input| lists::exit_statuses(&mut draft.service.restart_prevent_exit_status, input),
    ),
    full(
        S,
        "RestartForceExitStatus",
        "list of exit statuses",
        "Exit codes and signals after which it always is",
        |draft, input| lists::exit_statuses(&mut draft.service.restart_force_exit_status, input),
    ),
    full(
        S,
        "TimeoutStartSec",
        "time span",
        "How long the start may take",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.timeout_start,
                |input| input.timeout().map(Written::As),
            )
        },
    ),
    full(
        S,
        "TimeoutStopSec",
        "time span",
        "How long the stop may take before the kill",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.timeout_stop,
                Input::timeout,
            )
        },
    ),
    full(
        S,
        "TimeoutSec",
        "time span",
        "TimeoutStartSec= and TimeoutStopSec= at once",
        set_both_timeouts,
    ),
    full(
        S,
        "RuntimeMaxSec",
        "time span",
        "How long the service may run",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.runtime_max,
                Input::timeout,
            )
        },
    ),
    full(
        S,
        "WatchdogSec",
        "time span",
        "How often the service must say that it is alive",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.watchdog_sec,
                Input::timeout,
            )
        },
    ),
    full(
        S,
        "RemainAfterExit",
        "boolean",
        "Stay active after all processes have ended well",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.remain_after_exit,
                Input::boolean,
            )
        },
    ),
    full(
        S,
        "NotifyAccess",
        "none, main, exec, all",
        "Whose notifications count",
        set_notify_access,
    ),
    full(
        S,
        "KillMode",
        "control-group, mixed, process, none",
        "Which processes are ended at stop",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.kill_mode,
                kill_mode,
            )
        },
    ),
    full(
        S,
        "KillSignal",
        "signal",
        "The signal that asks to stop",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.kill_signal,
                Input::signal,
            )
        },
    ),
    full(
        S,
        "FinalKillSignal",
        "signal",
        "The signal that ends what did not stop",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.final_kill_signal,
                Input::signal,
            )
        },
    ),
    full(
        S,
        "ReloadSignal",
        "signal",
        "The signal that reloads a notify-reload service",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.reload_signal,
                Input::signal,
            )
        },
    ),
    full(
        S,
        "SendSIGKILL",
        "boolean",
        "End what did not stop in time",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.send_sigkill,
                Input::boolean,
            )
        },
    ),
    full(
        S,
        "SendSIGHUP",
        "boolean",
        "Send SIGHUP right after KillSignal=",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.send_sighup,
                Input::boolean,
            )
        },
    ),
    full(
        S,
        "StartLimitInterval",
        "time span",
        "The older place of StartLimitIntervalSec=",
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
        "The older place of StartLimitBurst= of [Unit]",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.start_limit.burst,
                Input::number,
            )
        },
    ),
];

fn set_type(draft: &mut Draft, input: &mut Input<'_>) -> Result<(), ValueError> {
    draft.type_is_written = !input.is_empty();
    set(
        draft,
        input,
        |draft| &mut draft.service.service_type,
        |input| {
            input.choice(&[
                ("simple", ServiceType::Simple),
                ("exec", ServiceType::Exec),
                ("forking", ServiceType::Forking),
                ("oneshot", ServiceType::Oneshot),
                ("notify", ServiceType::Notify),
                ("notify-reload", ServiceType::NotifyReload),
                ("dbus", ServiceType::Dbus),
                ("idle", ServiceType::Idle),
            ])
        },
    )
}

fn set_notify_access(draft: &mut Draft, input: &mut Input<'_>) -> Result<(), ValueError> {
    set(
        draft,
        input,
        |draft| &mut draft.service.notify_access,
        |input| {
            input.choice(&[
                ("none", NotifyAccess::None),
                ("main", NotifyAccess::Main),
                ("exec", NotifyAccess::Exec),
                ("all", NotifyAccess::All),
            ])
        },
    )?;
    draft.notify_access_is_written = !input.is_empty();
    Ok(())
}

fn set_both_timeouts(draft: &mut Draft, input: &mut Input<'_>) -> Result<(), ValueError> {
    set(
        draft,
        input,
        |draft| &mut draft.service.timeout_stop,
        Input::timeout,
    )?;
    set(
        draft,
        input,
        |draft| &mut draft.timeout_start,
        |input| input.timeout().map(Written::As),
    )
}

fn restart(input: &Input<'_>) -> Result<Restart, ValueError> {
    input.choice(&[
        ("no", Restart::No),
        ("always", Restart::Always),
        ("on-success", Restart::OnSuccess),
        ("on-failure", Restart::OnFailure),
        ("on-abnormal", Restart::OnAbnormal),
        ("on-abort", Restart::OnAbort),
        ("on-watchdog", Restart::OnWatchdog),
    ])
}

fn kill_mode(input: &Input<'_>) -> Result<KillMode, ValueError> {
    input.choice(&[
        ("control-group", KillMode::ControlGroup),
        ("mixed", KillMode::Mixed),
        ("process", KillMode::Process),
        ("none", KillMode::None),
    ])
}
