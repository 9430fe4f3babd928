//! What a `.service` file says. Values only; defaults are systemd's.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::command::ExecCommand;
use super::signal::{ExitStatusSet, Signal};

/// When a service counts as started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ServiceType {
    /// As soon as the process exists.
    #[default]
    Simple,
    /// When the program has really been executed.
    Exec,
    /// Refused: the first process exits and leaves a daemon, which nobody can follow.
    Forking,
    /// When the process has finished.
    Oneshot,
    /// When the service says `READY=1`.
    Notify,
    /// As `Notify`, and reloads by signal.
    NotifyReload,
    /// Refused: there is no bus to appear on.
    Dbus,
    /// As `Simple`, after other jobs are done.
    Idle,
}

/// When a service is started again by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Restart {
    #[default]
    No,
    OnSuccess,
    OnFailure,
    OnAbnormal,
    OnWatchdog,
    OnAbort,
    Always,
}

/// Which processes are ended at stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum KillMode {
    /// All processes of the unit.
    #[default]
    ControlGroup,
    /// The signal to the main process, the final kill to all.
    Mixed,
    /// The main process only.
    Process,
    /// None.
    None,
}

/// Whose notifications count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum NotifyAccess {
    #[default]
    None,
    Main,
    Exec,
    All,
}

/// Where standard input comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StandardInput {
    #[default]
    Null,
    File(Utf8PathBuf),
}

/// Where standard output or error goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StandardOutput {
    /// To where the stream before it goes: error follows output.
    Inherit,
    Null,
    /// The unit's own log.
    #[default]
    Journal,
    /// Added to at its end, as `Append`: no line is overwritten.
    File(Utf8PathBuf),
    Append(Utf8PathBuf),
    Truncate(Utf8PathBuf),
}

/// A file with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentFile {
    pub path: Utf8PathBuf,
    /// `-`: it may be missing.
    pub optional: bool,
}

/// Where a service starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingDirectory {
    pub place: WorkingPlace,
    /// `-`: if it is missing, start anyway.
    pub optional: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkingPlace {
    /// `~`
    Home,
    Path(Utf8PathBuf),
}

/// One resource limit; `None` is infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

/// What `Limit…=` limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    CpuTime,
    FileSize,
    Stack,
    Core,
    OpenFiles,
    AddressSpace,
    Processes,
    LockedMemory,
}

/// `MemoryMax=` as written: the share needs to know the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    Bytes(u64),
    /// Hundredths of a percent of the machine's memory.
    Share(u64),
}

/// `TasksMax=` as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TasksLimit {
    Count(u64),
    /// Hundredths of a percent of what the machine allows.
    Share(u64),
}

/// Folders made before the service starts, below the place for their kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceDirectories {
    /// Relative names.
    pub names: Vec<Utf8PathBuf>,
    pub mode: u32,
}

impl Default for ServiceDirectories {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            mode: 0o755,
        }
    }
}

/// Whether `RuntimeDirectory=` stays after the service has stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Preserve {
    #[default]
    No,
    Restart,
    Yes,
}

/// A process's execution priority class on either system: −20 (most) to 19 (least).
pub type Nice = i8;

/// Everything of `[Service]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub service_type: ServiceType,
    pub exec_condition: Vec<ExecCommand>,
    pub exec_start_pre: Vec<ExecCommand>,
    pub exec_start: Vec<ExecCommand>,
    pub exec_start_post: Vec<ExecCommand>,
    pub exec_reload: Vec<ExecCommand>,
    pub exec_stop: Vec<ExecCommand>,
    pub exec_stop_post: Vec<ExecCommand>,
    /// In the order written; a later one of the same name wins.
    pub environment: Vec<(String, String)>,
    pub environment_files: Vec<EnvironmentFile>,
    /// Names taken over from the supervisor's own environment.
    pub pass_environment: Vec<String>,
    /// Names, or `NAME=value` pairs, removed at the very end.
    pub unset_environment: Vec<String>,
    pub restart: Restart,
    pub restart_sec: Duration,
    /// Steps from `restart_sec` to `restart_max_delay_sec`; 0 keeps the delay constant.
    pub restart_steps: u32,
    /// `None`: no growth.
    pub restart_max_delay_sec: Option<Duration>,
    pub success_exit_status: ExitStatusSet,
    pub restart_prevent_exit_status: ExitStatusSet,
    pub restart_force_exit_status: ExitStatusSet,
    /// `None`: no limit, as for the others below.
    pub timeout_start: Option<Duration>,
    pub timeout_stop: Option<Duration>,
    pub runtime_max: Option<Duration>,
    /// `None`: no watchdog.
    pub watchdog_sec: Option<Duration>,
    pub remain_after_exit: bool,
    pub notify_access: NotifyAccess,
    pub user: Option<String>,
    pub group: Option<String>,
    pub supplementary_groups: Vec<String>,
    pub working_directory: Option<WorkingDirectory>,
    pub umask: u32,
    pub nice: Nice,
    pub oom_score_adjust: Option<i16>,
    pub kill_mode: KillMode,
    pub kill_signal: Signal,
    pub final_kill_signal: Signal,
    pub reload_signal: Signal,
    pub send_sigkill: bool,
    pub send_sighup: bool,
    pub limits: BTreeMap<Resource, Limit>,
    pub memory_max: Option<MemoryLimit>,
    /// Hundredths of a percent of one CPU.
    pub cpu_quota: Option<u64>,
    pub tasks_max: Option<TasksLimit>,
    pub standard_input: StandardInput,
    pub standard_output: StandardOutput,
    pub standard_error: StandardOutput,
    pub runtime_directory: ServiceDirectories,
    pub runtime_directory_preserve: Preserve,
    pub state_directory: ServiceDirectories,
    pub cache_directory: ServiceDirectories,
    pub logs_directory: ServiceDirectories,
    pub configuration_directory: ServiceDirectories,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            service_type: ServiceType::default(),
            exec_condition: Vec::new(),
            exec_start_pre: Vec::new(),
            exec_start: Vec::new(),
            exec_start_post: Vec::new(),
            exec_reload: Vec::new(),
            exec_stop: Vec::new(),
            exec_stop_post: Vec::new(),
            environment: Vec::new(),
            environment_files: Vec::new(),
            pass_environment: Vec::new(),
            unset_environment: Vec::new(),
            restart: Restart::default(),
            restart_sec: Duration::from_millis(100),
            restart_steps: 0,
            restart_max_delay_sec: None,
            success_exit_status: ExitStatusSet::default(),
            restart_prevent_exit_status: ExitStatusSet::default(),
            restart_force_exit_status: ExitStatusSet::default(),
            timeout_start: Some(Self::DEFAULT_TIMEOUT),
            timeout_stop: Some(Self::DEFAULT_TIMEOUT),
            runtime_max: None,
            watchdog_sec: None,
            remain_after_exit: false,
            notify_access: NotifyAccess::default(),
            user: None,
            group: None,
            supplementary_groups: Vec::new(),
            working_directory: None,
            umask: 0o022,
            nice: 0,
            oom_score_adjust: None,
            kill_mode: KillMode::default(),
            kill_signal: Signal::TERM,
            final_kill_signal: Signal::KILL,
            reload_signal: Signal::HUP,
            send_sigkill: true,
            send_sighup: false,
            limits: BTreeMap::new(),
            memory_max: None,
            cpu_quota: None,
            tasks_max: None,
            standard_input: StandardInput::default(),
            standard_output: StandardOutput::default(),
            standard_error: StandardOutput::Inherit,
            runtime_directory: ServiceDirectories::default(),
            runtime_directory_preserve: Preserve::default(),
            state_directory: ServiceDirectories::default(),
            cache_directory: ServiceDirectories::default(),
            logs_directory: ServiceDirectories::default(),
            configuration_directory: ServiceDirectories::default(),
        }
    }
}

impl Service {
    /// The folders of `RuntimeDirectory=` that go when the service stops, those above first: once
    /// they are gone, a link that the service left in them leads nowhere.
    pub fn runtime_folders_to_remove(&self, base: &Utf8Path, restarting: bool) -> Vec<Utf8PathBuf> {
        let stays = match self.runtime_directory_preserve {
            Preserve::No => false,
            Preserve::Restart => restarting,
            Preserve::Yes => true,
        };
        if stays {
            return Vec::new();
        }
        let names: BTreeSet<&Utf8PathBuf> = self.runtime_directory.names.iter().collect();
        names.into_iter().map(|name| base.join(name)).collect()
    }

    /// Whether it is started when its commands have ended, rather than when they run.
    pub fn is_oneshot(&self) -> bool {
        self.service_type == ServiceType::Oneshot
    }

    /// Whether someone listens to what it says through `NOTIFY_SOCKET`. A type or a watchdog that
    /// needs this has set `NotifyAccess=` when its file was read.
    pub fn hears_notifications(&self) -> bool {
        self.notify_access != NotifyAccess::None
    }

    /// `DefaultTimeoutStartSec=` and `DefaultTimeoutStopSec=` of systemd.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(90);
}
