//! What a fake container does from its start to its end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Exec;
use crate::logs::Stream;

/// Everything a container will do. Containers of one kind share one.
#[derive(Clone)]
pub struct Plan {
    /// Why it cannot be started, if it cannot.
    pub refuses_to_start: Option<String>,
    /// How long its start takes.
    pub start_delay: Duration,
    pub runs: Runs,
    pub on_stop: OnStop,
    /// Lines it prints when it starts.
    pub output: Vec<(Stream, String)>,
    /// Lines of its input come back as lines of its output.
    pub echoes_input: bool,
    /// The exit code with which it ends when its input ends.
    pub ends_with_input: Option<i32>,
    /// Ports that answer with what they are told.
    pub echo_ports: Vec<u16>,
    pub exec: Arc<dyn Fn(&Exec) -> ExecPlan + Send + Sync>,
    pub cpu_millis: u64,
    pub memory_bytes: u64,
}

/// How long a container runs when nobody stops it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    Forever,
    For { duration: Duration, exit_code: i32 },
}

/// What a container does when it is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStop {
    Ends { after: Duration, exit_code: i32 },
    Nothing,
}

/// What a program that is run beside a container's own does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecPlan {
    pub output: Vec<u8>,
    pub errors: Vec<u8>,
    /// Input comes back as output, until it ends.
    pub echoes_input: bool,
    pub exit_code: i32,
}

impl Default for Plan {
    /// Runs until it is asked to end.
    fn default() -> Self {
        Self {
            refuses_to_start: None,
            start_delay: Duration::ZERO,
            runs: Runs::Forever,
            on_stop: OnStop::Ends {
                after: Duration::ZERO,
                exit_code: 0,
            },
            output: Vec::new(),
            echoes_input: false,
            ends_with_input: None,
            echo_ports: Vec::new(),
            exec: Arc::new(|_| ExecPlan::default()),
            cpu_millis: 10,
            memory_bytes: 16 << 20,
        }
    }
}

impl Plan {
    /// Runs for a while and ends with `exit_code`.
    pub fn ends(duration: Duration, exit_code: i32) -> Self {
        Self {
            runs: Runs::For {
                duration,
                exit_code,
            },
            ..Self::default()
        }
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Plan")
            .field("runs", &self.runs)
            .field("on_stop", &self.on_stop)
            .finish_non_exhaustive()
    }
}
