//! Where tests make a file operation fail, or the whole process die, at a chosen step. Every step that
//! changes something on disk passes a named point; a point that is not armed costs one relaxed load.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// The variable read by [`arm_from_environment`]: `die@7` (at the seventh point passed),
/// `die@files.write.rename` (the first time that point is passed), `fail@7`,
/// `fail@files.write.rename`, or `count:<file>` (append the name of every point passed).
pub const TRANSOM_FAULT: &str = "TRANSOM_FAULT";

/// The exit code of a process that died at a point, where there are no signals.
pub const DEATH_EXIT_CODE: i32 = 137;

/// What happens at which point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// The process ends abruptly: no destructor runs, nothing is flushed.
    Die(Place),
    /// The step fails once; later ones pass.
    Fail(Place),
    /// This step and every later one fail: as far as the disk can tell, the process is dead. For
    /// walks over a machine in memory.
    Halt(Place),
    /// Each name is appended to a file.
    Count(String),
}

/// One point of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Counted from 1.
    Nth(u64),
    /// The first time this point is passed.
    Named(String),
}

/// Why a plan could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no fault plan: expected die@<point>, fail@<point> or count:<file>")]
pub struct PlanError {
    text: String,
}

impl std::str::FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let place = |text: &str| match text.parse() {
            Ok(0) => None,
            Ok(number) => Some(Place::Nth(number)),
            Err(_) if text.is_empty() => None,
            Err(_) => Some(Place::Named(text.to_owned())),
        };
        let plan = if let Some(rest) = text.strip_prefix("die@") {
            place(rest).map(Self::Die)
        } else if let Some(rest) = text.strip_prefix("fail@") {
            place(rest).map(Self::Fail)
        } else {
            text.strip_prefix("count:")
                .filter(|file| !file.is_empty())
                .map(|file| Self::Count(file.to_owned()))
        };
        plan.ok_or_else(|| PlanError {
            text: text.to_owned(),
        })
    }
}

#[derive(Debug)]
struct Armed {
    /// `None` for the whole process.
    thread: Option<ThreadId>,
    plan: Plan,
    passed: u64,
    /// Whether the place of a [`Plan::Halt`] was reached.
    halted: bool,
}

/// How many plans are armed in this process.
static ARMED: AtomicUsize = AtomicUsize::new(0);
static PLANS: Mutex<Vec<Armed>> = Mutex::new(Vec::new());

fn plans() -> MutexGuard<'static, Vec<Armed>> {
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes a point. Fails, or never returns, only if a plan says so.
pub fn point(name: &'static str) -> io::Result<()> {
    if ARMED.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    pass_armed(name)
}

#[cold]
fn pass_armed(name: &'static str) -> io::Result<()> {
    let here = std::thread::current().id();
    plans()
        .iter_mut()
        .filter(|armed| armed.thread.is_none_or(|thread| thread == here))
        .try_for_each(|armed| armed.pass(name))
}

impl Armed {
    fn pass(&mut self, name: &'static str) -> io::Result<()> {
        self.passed += 1;
        match &self.plan {
            Plan::Die(place) if self.is_at(place, name) => super::die_abruptly(),
            Plan::Fail(place) if self.is_at(place, name) => {
                // Cleaning up after the failure must pass.
                self.plan = Plan::Fail(Place::Nth(u64::MAX));
                Err(io::Error::other(format!("fault injected at {name}")))
            }
            Plan::Halt(place) if self.halted || self.is_at(place, name) => {
                self.halted = true;
                Err(io::Error::other(format!("halted at {name}")))
            }
            Plan::Count(file) => fs_err::OpenOptions::new()
                .create(true)
                .append(true)
                .open(file)
                .and_then(|mut file| file.write_all(format!("{name}\n").as_bytes())),
            Plan::Die(_) | Plan::Fail(_) | Plan::Halt(_) => Ok(()),
        }
    }

    fn is_at(&self, place: &Place, name: &str) -> bool {
        match place {
            Place::Nth(number) => *number == self.passed,
            Place::Named(wanted) => wanted == name,
        }
    }
}

/// Arms the whole process as [`TRANSOM_FAULT`] says, if it is set. Called once, first in `main`.
#[expect(
    clippy::disallowed_methods,
    reason = "the one reader of this variable, called explicitly by main"
)]
pub fn arm_from_environment() -> Result<(), PlanError> {
    match std::env::var(TRANSOM_FAULT) {
        Ok(text) => {
            arm_process(text.parse()?);
            Ok(())
        }
        Err(std::env::VarError::NotPresent) => Ok(()),
        Err(std::env::VarError::NotUnicode(text)) => Err(PlanError {
            text: text.to_string_lossy().into_owned(),
        }),
    }
}

/// Arms the whole process until it ends.
pub fn arm_process(plan: Plan) {
    arm(None, plan);
}

fn arm(thread: Option<ThreadId>, plan: Plan) {
    plans().push(Armed {
        thread,
        plan,
        passed: 0,
        halted: false,
    });
    ARMED.fetch_add(1, Ordering::Relaxed);
}

/// Arms the current thread while the value lives, so that tests in one process do not disturb each
/// other.
pub fn arm_thread(plan: Plan) -> ThreadPlan {
    let thread = std::thread::current().id();
    arm(Some(thread), plan);
    ThreadPlan { thread }
}

/// Disarms its thread when dropped.
#[derive(Debug)]
#[must_use = "the plan is disarmed when this is dropped"]
pub struct ThreadPlan {
    thread: ThreadId,
}

impl Drop for ThreadPlan {
    fn drop(&mut self) {
        plans().retain(|armed| armed.thread != Some(self.thread));
        ARMED.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_from_text() {
        let named = || Place::Named("files.replace.rename".to_owned());
        for (text, plan) in [
            ("die@7", Plan::Die(Place::Nth(7))),
            ("fail@1", Plan::Fail(Place::Nth(1))),
            ("die@files.replace.rename", Plan::Die(named())),
            ("fail@files.replace.rename", Plan::Fail(named())),
            ("count:/tmp/points", Plan::Count("/tmp/points".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(plan), "{text}");
        }
        for text in ["", "die", "die@", "die@0", "count:", "explode@1"] {
            let error = text.parse::<Plan>().expect_err(text);
            assert!(error.to_string().starts_with(&format!("`{text}`")));
        }
    }

    #[test]
    fn a_plan_of_one_thread_fails_once_there_and_nowhere_else() {
        let plan = arm_thread(Plan::Fail(Place::Nth(2)));
        point("first").expect("before its time");
        std::thread::scope(|scope| {
            scope.spawn(|| point("elsewhere").expect("another thread"));
        });
        let error = point("second").expect_err("its time has come");
        assert_eq!(error.to_string(), "fault injected at second");
        point("third").expect("only once");
        drop(plan);
        point("second").expect("disarmed");
    }

    #[test]
    fn after_a_halt_nothing_passes() {
        let plan = arm_thread(Plan::Halt(Place::Nth(2)));
        point("first").expect("before its time");
        for name in ["second", "third"] {
            point(name).expect_err("halted");
        }
        drop(plan);
        point("first").expect("disarmed");
    }

    #[test]
    fn points_are_counted_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("points");
        let plan = arm_thread(Plan::Count(file.display().to_string()));
        point("files.write.create").expect("passed");
        point("files.write.sync").expect("passed");
        drop(plan);
        let names = fs_err::read_to_string(&file).expect("read");
        assert_eq!(names, "files.write.create\nfiles.write.sync\n");
    }
}
