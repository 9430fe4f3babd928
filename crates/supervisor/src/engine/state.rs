//! Where a unit is in its life. The names are systemd's, so that people and scripts know them.

use serde::{Deserialize, Serialize};

use crate::control::protocol::ActiveState;

/// The fine-grained state of a unit of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Not started, or ended well.
    #[default]
    Dead,
    /// Ended badly.
    Failed,
    /// `ExecCondition=` is running.
    Condition,
    StartPre,
    Start,
    StartPost,
    Running,
    /// No process, yet active: a oneshot with `RemainAfterExit=`.
    Exited,
    Reload,
    /// `ExecStop=` is running.
    Stop,
    /// Asked to end; waiting.
    StopSigterm,
    /// Told to end; waiting for the kernel.
    StopSigkill,
    StopPost,
    /// Whatever is left after `ExecStopPost=` is being killed.
    FinalSigkill,
    /// Ended, and to be started again in a moment.
    AutoRestart,
    /// A target that has been reached.
    Active,
    /// A timer that will fire.
    Waiting,
    /// A timer whose unit is active.
    TimerRunning,
    /// A timer that will not fire again.
    Elapsed,
}

impl State {
    /// The coarse state that `systemctl is-active` prints.
    pub fn active_state(self) -> ActiveState {
        match self {
            Self::Dead => ActiveState::Inactive,
            Self::Failed => ActiveState::Failed,
            Self::Condition
            | Self::StartPre
            | Self::Start
            | Self::StartPost
            | Self::AutoRestart => ActiveState::Activating,
            Self::Running
            | Self::Exited
            | Self::Active
            | Self::Waiting
            | Self::TimerRunning
            | Self::Elapsed => ActiveState::Active,
            Self::Reload => ActiveState::Reloading,
            Self::Stop
            | Self::StopSigterm
            | Self::StopSigkill
            | Self::StopPost
            | Self::FinalSigkill => ActiveState::Deactivating,
        }
    }

    /// The name that `systemctl` prints in its SUB column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Failed => "failed",
            Self::Condition => "condition",
            Self::StartPre => "start-pre",
            Self::Start => "start",
            Self::StartPost => "start-post",
            Self::Running | Self::TimerRunning => "running",
            Self::Exited => "exited",
            Self::Reload => "reload",
            Self::Stop => "stop",
            Self::StopSigterm => "stop-sigterm",
            Self::StopSigkill => "stop-sigkill",
            Self::StopPost => "stop-post",
            Self::FinalSigkill => "final-sigkill",
            Self::AutoRestart => "auto-restart",
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Elapsed => "elapsed",
        }
    }

    /// Whether the unit has come to rest without being active.
    pub fn is_down(self) -> bool {
        matches!(self, Self::Dead | Self::Failed)
    }

    /// Whether the unit counts as started for those who need it.
    pub fn is_up(self) -> bool {
        matches!(
            self.active_state(),
            ActiveState::Active | ActiveState::Reloading
        )
    }
}
