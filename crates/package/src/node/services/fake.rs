//! Services in memory, for tests of what is built on services. They note every call in order.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Services, ServicesError};

/// Services in memory. Clones are the same services.
#[derive(Debug, Clone, Default)]
pub struct FakeServices {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    running: BTreeSet<String>,
    never_healthy: BTreeSet<String>,
    refusing: BTreeSet<&'static str>,
    calls: Vec<String>,
}

impl FakeServices {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this unit never gets healthy.
    pub fn never_healthy(&self, unit: &str) {
        self.state().never_healthy.insert(unit.to_owned());
    }

    /// From now on every `stop`, `start` or `reload` fails.
    pub fn refuse(&self, action: &'static str) {
        self.state().refusing.insert(action);
    }

    /// What runs, sorted.
    pub fn running(&self) -> Vec<String> {
        self.state().running.iter().cloned().collect()
    }

    /// All calls so far, such as `start a.service b.service`.
    pub fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }
}

impl State {
    fn note(&mut self, action: &'static str, units: &[String]) -> Result<(), ServicesError> {
        let words = [action.to_owned()].into_iter().chain(units.iter().cloned());
        self.calls.push(words.collect::<Vec<_>>().join(" "));
        if self.refusing.contains(action) {
            let source = format!("told to refuse to {action}").into();
            return Err(ServicesError { action, source });
        }
        Ok(())
    }
}

impl Services for FakeServices {
    fn stop(&self, units: &[String]) -> Result<(), ServicesError> {
        let mut state = self.state();
        state.note("stop", units)?;
        state.running.retain(|unit| !units.contains(unit));
        Ok(())
    }

    fn reload(&self) -> Result<(), ServicesError> {
        self.state().note("reload", &[])
    }

    fn start(&self, units: &[String]) -> Result<(), ServicesError> {
        let mut state = self.state();
        state.note("start", units)?;
        state.running.extend(units.iter().cloned());
        Ok(())
    }

    fn wait_healthy(&self, units: &[String], _: Duration) -> Result<Vec<String>, ServicesError> {
        let state = self.state();
        let sick = units
            .iter()
            .filter(|unit| state.never_healthy.contains(*unit) || !state.running.contains(*unit));
        Ok(sick.map(|unit| format!("{unit} is not healthy")).collect())
    }
}
