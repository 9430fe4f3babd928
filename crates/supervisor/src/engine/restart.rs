//! `Restart=`: whether a service that ended is started again, and when.

use std::time::Duration;

use transom_host::process::Exit;

use crate::control::protocol::UnitResult;
use crate::unit::{Restart, Service};

/// What an exit of the main process means. A service that dies of a polite signal has ended well, as
/// people stop services that way by hand.
pub(super) fn judge_main_exit(service: &Service, exit: Exit) -> UnitResult {
    const HANGUP: i32 = 1;
    const INTERRUPT: i32 = 2;
    const PIPE: i32 = 13;
    const TERMINATE: i32 = 15;
    if service.success_exit_status.contains(exit) {
        return UnitResult::Success;
    }
    match exit {
        Exit::Code(0) => UnitResult::Success,
        Exit::Signal(HANGUP | INTERRUPT | PIPE | TERMINATE) if !service.is_oneshot() => {
            UnitResult::Success
        }
        Exit::Code(_) | Exit::Unknown => UnitResult::ExitCode,
        Exit::Signal(_) => UnitResult::Signal,
    }
}

/// Whether a service that came to `result` is to be started again. `exit` is the main process's end.
pub(super) fn wants_restart(service: &Service, result: UnitResult, exit: Option<Exit>) -> bool {
    if matches!(
        result,
        UnitResult::StartLimitHit | UnitResult::Assert | UnitResult::ExecCondition
    ) {
        return false;
    }
    if let Some(exit) = exit {
        if service.restart_prevent_exit_status.contains(exit) {
            return false;
        }
        if service.restart_force_exit_status.contains(exit) {
            return true;
        }
    }
    match service.restart {
        Restart::No => false,
        Restart::Always => true,
        Restart::OnSuccess => result == UnitResult::Success,
        Restart::OnFailure => result != UnitResult::Success,
        Restart::OnAbnormal => !matches!(result, UnitResult::Success | UnitResult::ExitCode),
        Restart::OnAbort => result == UnitResult::Signal,
        Restart::OnWatchdog => result == UnitResult::Watchdog,
    }
}

/// How long to wait before restart number `restarts` (counted from 0): `RestartSec=`, growing to
/// `RestartMaxDelaySec=` in `RestartSteps=` equal ratios.
pub(super) fn restart_delay(service: &Service, restarts: u32) -> Duration {
    let first = service.restart_sec;
    let (Some(last), steps) = (service.restart_max_delay_sec, service.restart_steps) else {
        return first;
    };
    if steps == 0 || last <= first || first.is_zero() {
        return first;
    }
    if restarts >= steps {
        return last;
    }
    let ratio = last.as_secs_f64() / first.as_secs_f64();
    first.mul_f64(ratio.powf(f64::from(restarts) / f64::from(steps)))
}
