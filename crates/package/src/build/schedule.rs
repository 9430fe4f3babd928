//! Many packages: each as soon as what it requires is there, several at once. A failure stops what
//! depends on it; unless all that can go on shall go on, nothing else is begun after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use transom_model::package::PackageId;

use super::error::BuildError;

/// What became of a package.
#[derive(Debug)]
pub enum Outcome {
    /// The cache had it.
    Reused,
    /// The repository had it.
    Fetched,
    Built,
    Failed(BuildError),
    /// Something that it requires failed.
    Skipped {
        because: PackageId,
    },
    /// Another failure came first.
    NotStarted,
}

impl Outcome {
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Reused | Self::Fetched | Self::Built)
    }
}

/// A package with what it waits for.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) id: PackageId,
    /// Those of the same run only.
    pub(super) requires: BTreeSet<PackageId>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Job>,
    running: usize,
    stopped: bool,
    outcomes: BTreeMap<PackageId, Outcome>,
}

enum Next {
    Run(PackageId),
    Skip(PackageId, PackageId),
    Wait,
    End,
}

impl State {
    fn next(&mut self) -> Next {
        for (index, job) in self.waiting.iter().enumerate() {
            let failed = job
                .requires
                .iter()
                .find(|id| self.outcomes.get(*id).is_some_and(|one| !one.is_good()));
            if let Some(failed) = failed {
                // The first cause, not the link before.
                let because = match &self.outcomes[failed] {
                    Outcome::Skipped { because } => because.clone(),
                    _ => failed.clone(),
                };
                let job = self.waiting.remove(index);
                return Next::Skip(job.id, because);
            }
            let ready = job.requires.iter().all(|id| self.outcomes.contains_key(id));
            if ready && !self.stopped {
                let job = self.waiting.remove(index);
                self.running += 1;
                return Next::Run(job.id);
            }
        }
        if self.waiting.is_empty() || self.running == 0 {
            Next::End
        } else {
            Next::Wait
        }
    }
}

/// Runs all jobs on at most `threads` threads. `jobs` are in an order in which they could run.
pub(super) fn run(
    jobs: Vec<Job>,
    threads: usize,
    keep_going: bool,
    work: &(dyn Fn(&PackageId) -> Outcome + Sync),
    skipped: &(dyn Fn(&PackageId, &PackageId) + Sync),
) -> BTreeMap<PackageId, Outcome> {
    let threads = threads.clamp(1, jobs.len().max(1));
    let state = Mutex::new(State {
        waiting: jobs,
        ..State::default()
    });
    let changed = Condvar::new();
    let lock = || -> MutexGuard<'_, State> { state.lock().unwrap_or_else(PoisonError::into_inner) };
    let worker = || {
        loop {
            let mut guard = lock();
            let id = match guard.next() {
                Next::Run(id) => id,
                Next::Skip(id, because) => {
                    skipped(&id, &because);
                    guard.outcomes.insert(id, Outcome::Skipped { because });
                    continue;
                }
                Next::Wait => {
                    // Whoever runs now wakes us when it is done.
                    drop(changed.wait(guard).unwrap_or_else(PoisonError::into_inner));
                    continue;
                }
                Next::End => break,
            };
            drop(guard);
            let outcome = work(&id);
            let mut guard = lock();
            guard.running -= 1;
            guard.stopped |= !keep_going && !outcome.is_good();
            guard.outcomes.insert(id, outcome);
            drop(guard);
            changed.notify_all();
        }
        changed.notify_all();
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(worker);
        }
        worker();
    });
    let mut state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    for job in state.waiting {
        state.outcomes.insert(job.id, Outcome::NotStarted);
    }
    state.outcomes
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn id(name: &str) -> PackageId {
        format!("{name}--1").parse().unwrap()
    }

    fn jobs(list: &[(&str, &[&str])]) -> Vec<Job> {
        list.iter()
            .map(|(name, requires)| Job {
                id: id(name),
                requires: requires.iter().map(|name| id(name)).collect(),
            })
            .collect()
    }

    fn outcomes(
        list: &[(&str, &[&str])],
        keep_going: bool,
        failing: &str,
    ) -> Vec<(String, &'static str)> {
        let work = |id: &PackageId| {
            if id.name_str() == failing {
                Outcome::Failed(BuildError::NoPowerShell)
            } else {
                Outcome::Built
            }
        };
        run(jobs(list), 1, keep_going, &work, &|_, _| ())
            .into_iter()
            .map(|(id, outcome)| {
                let became = match outcome {
                    Outcome::Built => "built",
                    Outcome::Failed(_) => "failed",
                    Outcome::Skipped { because } => {
                        assert_eq!(because.name_str(), failing);
                        "skipped"
                    }
                    Outcome::NotStarted => "not started",
                    _ => "other",
                };
                (id.name_str().to_owned(), became)
            })
            .collect()
    }

    const CHAIN: &[(&str, &[&str])] = &[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &[])];

    #[test]
    fn a_failure_stops_its_dependents_and_only_them_if_asked() {
        let words = |keep_going| {
            outcomes(CHAIN, keep_going, "a")
                .into_iter()
                .map(|(_, word)| word)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(true), ["failed", "skipped", "skipped", "built"]);
        assert_eq!(
            words(false),
            ["failed", "skipped", "skipped", "not started"]
        );
    }

    #[test]
    fn nothing_starts_before_what_it_requires() {
        let done = Mutex::new(BTreeSet::new());
        let list = jobs(&[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])]);
        let needs: BTreeMap<PackageId, BTreeSet<PackageId>> = list
            .iter()
            .map(|job| (job.id.clone(), job.requires.clone()))
            .collect();
        let work = |id: &PackageId| {
            assert!(needs[id].is_subset(&done.lock().unwrap()));
            done.lock().unwrap().insert(id.clone());
            Outcome::Built
        };
        let outcomes = run(list.clone(), 4, false, &work, &|_, _| ());
        assert_eq!(outcomes.len(), 4);
        assert!(outcomes.values().all(Outcome::is_good));
    }

    #[test]
    fn independent_packages_run_at_the_same_time() {
        // Each waits for the other, which only works if both run.
        let barrier = std::sync::Barrier::new(2);
        let count = AtomicUsize::new(0);
        let work = |_: &PackageId| {
            barrier.wait();
            count.fetch_add(1, Ordering::Relaxed);
            Outcome::Built
        };
        run(jobs(&[("a", &[]), ("b", &[])]), 2, false, &work, &|_, _| ());
        assert_eq!(count.into_inner(), 2);
    }
}
