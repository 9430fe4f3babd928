//! `is-active`, `is-enabled`, `is-failed`: one word per unit, and an exit code for scripts.

use transom_supervisor::control::protocol::{ActiveState, LoadState, UnitStatus};
use transom_supervisor::unit::UnitName;

use super::{inspect, resolve, systemd};
use crate::commands::service::enable::unit_store;
use crate::context::Context;
use crate::failure::Exit;

/// Say whether units are active; exit code 0 if any is
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 one is active, 3 none is, 4 there is no such unit.\n\nExamples:\n  transom service is-active web && echo up"
)]
pub(super) struct IsActive {
    #[arg(required = true, value_name = "UNIT")]
    units: Vec<String>,
}

/// Say whether units have failed; exit code 0 if any has
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 one has failed, 1 none has.\n\nExamples:\n  transom service is-failed '*'"
)]
pub(super) struct IsFailed {
    #[arg(required = true, value_name = "UNIT")]
    units: Vec<String>,
}

/// Say whether units are enabled; exit code 0 if any is
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 one is enabled, 1 none is, 4 there is no such unit.\n\nExamples:\n  transom service is-enabled web"
)]
pub(super) struct IsEnabled {
    #[arg(required = true, value_name = "UNIT")]
    units: Vec<String>,
}

impl IsActive {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            return systemd::systemctl("is-active", &[], &self.units);
        }
        let units = states(cx, &self.units)?;
        let up = |unit: &UnitStatus| {
            matches!(
                unit.active_state,
                ActiveState::Active | ActiveState::Reloading
            )
        };
        Ok(if units.iter().any(up) {
            Exit::Success
        } else if units
            .iter()
            .any(|unit| unit.load_state != LoadState::NotFound)
        {
            Exit::Status(3)
        } else {
            Exit::Status(4)
        })
    }
}

impl IsFailed {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            return systemd::systemctl("is-failed", &[], &self.units);
        }
        let units = states(cx, &self.units)?;
        let failed = units
            .iter()
            .any(|unit| unit.active_state == ActiveState::Failed);
        Ok(if failed { Exit::Success } else { Exit::Failure })
    }
}

/// Prints the state of each unit, one per line.
fn states(cx: &Context, words: &[String]) -> anyhow::Result<Vec<UnitStatus>> {
    let units = inspect(cx, &resolve(cx, words)?)?;
    if !cx.settings.quiet.value {
        for unit in &units {
            cx.out.write(&format!("{}\n", unit.active_state.name()))?;
        }
    }
    Ok(units)
}

impl IsEnabled {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            return systemd::systemctl("is-enabled", &[], &self.units);
        }
        let store = unit_store(cx)?;
        let mut enabled = false;
        let mut known = false;
        for word in &self.units {
            let name = UnitName::from_command_line(word)?;
            let state = store
                .unit_file_state(&name)
                .map_or("not-found", |state| state.name());
            known |= state != "not-found";
            enabled |= matches!(
                state,
                "enabled" | "enabled-runtime" | "static" | "alias" | "indirect" | "generated"
            );
            if !cx.settings.quiet.value {
                cx.out.write(&format!("{state}\n"))?;
            }
        }
        Ok(match (enabled, known) {
            (true, _) => Exit::Success,
            (false, true) => Exit::Failure,
            (false, false) => Exit::Status(4),
        })
    }
}
