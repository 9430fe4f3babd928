//! How far long operations are, on stderr. Invariant: something moves only on a terminal; elsewhere
//! there are plain lines, few of them, and none for what is over quickly.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Whoever waits this long wants to know what for.
const FIRST_LINE_AFTER: Duration = Duration::from_secs(2);

/// Logs of a build server should not drown in progress.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// A task of unknown length.
const SPINNER: &str = "{spinner} {prefix} {msg}";

/// A task of known length.
const BAR: &str = "{spinner} {prefix} [{bar:24}] {pos}/{len} {msg}";

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Spinners and bars that redraw themselves.
    Moving,
    /// Plain lines now and then.
    Lines,
    /// Nothing.
    Silent,
}

/// Shows tasks. Clones show on the same screen.
#[derive(Clone)]
pub struct Progress {
    mode: Mode,
    bars: MultiProgress,
    stream: Arc<Mutex<Box<dyn Write + Send>>>,
}

impl Progress {
    pub fn new(mode: Mode, stream: Box<dyn Write + Send>) -> Self {
        let target = match mode {
            Mode::Moving => ProgressDrawTarget::stderr(),
            Mode::Lines | Mode::Silent => ProgressDrawTarget::hidden(),
        };
        Self {
            mode,
            bars: MultiProgress::with_draw_target(target),
            stream: Arc::new(Mutex::new(stream)),
        }
    }

    /// Begins a task of unknown length. It is over when the returned value is dropped.
    pub fn start(&self, what: &str) -> Task {
        self.task(what, ProgressBar::no_length(), SPINNER)
    }

    /// Begins a task of `total` steps.
    pub fn start_counted(&self, what: &str, total: u64) -> Task {
        self.task(what, ProgressBar::new(total), BAR)
    }

    fn task(&self, what: &str, bar: ProgressBar, template: &str) -> Task {
        let bar = self.bars.add(bar.with_prefix(what.to_owned()));
        if let Ok(style) = ProgressStyle::with_template(template) {
            // The templates are constants, and a test reads them: there is no other case.
            bar.set_style(style.progress_chars("=> "));
        }
        if self.mode == Mode::Moving {
            bar.enable_steady_tick(TICK);
        }
        Task {
            progress: self.clone(),
            bar,
            pace: Mutex::new(Pace::default()),
            started: Instant::now(),
        }
    }

    /// Writes to the same stream without tearing what is drawn on it.
    pub fn write_beside(&self, bytes: &[u8]) -> io::Result<()> {
        self.bars.suspend(|| {
            let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            stream.write_all(bytes)
        })
    }
}

/// Something that takes a while.
pub struct Task {
    progress: Progress,
    bar: ProgressBar,
    pace: Mutex<Pace>,
    started: Instant,
}

impl Task {
    /// Says what is being done now.
    pub fn step(&self, message: &str) {
        self.bar.set_message(message.to_owned());
        self.line_if_due();
    }

    /// Counts `steps` as done.
    pub fn advance(&self, steps: u64) {
        self.bar.inc(steps);
        self.line_if_due();
    }

    fn line_if_due(&self) {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        if self.progress.mode == Mode::Lines && pace.due(self.started.elapsed()) {
            // Progress is worth no failure.
            let _ = self.progress.write_beside(self.line().as_bytes());
        }
    }

    fn line(&self) -> String {
        let count = self
            .bar
            .length()
            .map(|total| format!(" {}/{total}", self.bar.position()));
        let count = count.unwrap_or_default();
        let line = format!("{}{count} {}", self.bar.prefix(), self.bar.message());
        line.trim_end().to_owned() + "\n"
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        self.progress.bars.remove(&self.bar);
    }
}

/// Decides when the next plain line is due. Pure: the time comes from outside.
#[derive(Debug, Default)]
struct Pace {
    last: Option<Duration>,
}

impl Pace {
    fn due(&mut self, elapsed: Duration) -> bool {
        let next = self
            .last
            .map_or(FIRST_LINE_AFTER, |last| last + BETWEEN_LINES);
        if elapsed < next {
            return false;
        }
        self.last = Some(elapsed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invocation::{Memory, Sink};

    #[test]
    fn short_tasks_say_nothing_and_long_ones_little() {
        let mut pace = Pace::default();
        let due: Vec<u64> = (0..=40)
            .filter(|second| pace.due(Duration::from_secs(*second)))
            .collect();
        assert_eq!(due, [2, 12, 22, 32]);
    }

    #[test]
    fn the_templates_can_be_drawn() {
        for template in [SPINNER, BAR] {
            ProgressStyle::with_template(template).unwrap();
        }
    }

    fn task_started_long_ago(mode: Mode, memory: &Memory) -> Task {
        let progress = Progress::new(mode, Sink::Memory(memory.clone()).open(false));
        let mut task = progress.start_counted("copying", 3);
        task.started = Instant::now().checked_sub(FIRST_LINE_AFTER).unwrap();
        task
    }

    #[test]
    fn a_long_task_away_from_a_terminal_is_a_plain_line() {
        let memory = Memory::default();
        let task = task_started_long_ago(Mode::Lines, &memory);
        task.advance(1);
        task.step("kernel");
        drop(task);
        assert_eq!(memory.text(), "copying 1/3\n");
    }

    #[test]
    fn a_silent_task_writes_nothing() {
        let memory = Memory::default();
        let task = task_started_long_ago(Mode::Silent, &memory);
        task.step("kernel");
        drop(task);
        assert_eq!(memory.text(), "");
    }
}
