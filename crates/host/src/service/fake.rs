//! Services kept in memory. A service can be told to fail its start or never to stop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Registration, ServiceError, ServiceManager, ServiceStatus};

/// Services kept in memory.
#[derive(Debug, Default)]
pub struct FakeServices {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ours: BTreeMap<String, Service>,
    foreign: BTreeSet<String>,
    never_ready: BTreeSet<String>,
    never_stops: BTreeSet<String>,
    next_process: u32,
}

#[derive(Debug)]
struct Service {
    registration: Registration,
    status: ServiceStatus,
}

impl FakeServices {
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a service there that is not ours.
    pub fn add_foreign(&self, name: &str) {
        self.state().foreign.insert(name.to_owned());
    }

    /// Lets every start of the service run into its timeout.
    pub fn never_ready(&self, name: &str) {
        self.state().never_ready.insert(name.to_owned());
    }

    /// Lets every stop of the service run into its timeout.
    pub fn never_stops(&self, name: &str) {
        self.state().never_stops.insert(name.to_owned());
    }

    /// What is registered under a name.
    pub fn registration(&self, name: &str) -> Option<Registration> {
        self.state()
            .ours
            .get(name)
            .map(|service| service.registration.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each call leaves the state valid before it could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn ours(&mut self, name: &str) -> Result<&mut Service, ServiceError> {
        if self.foreign.contains(name) {
            return Err(ServiceError::Foreign {
                name: name.to_owned(),
            });
        }
        self.ours
            .get_mut(name)
            .ok_or_else(|| ServiceError::NotInstalled {
                name: name.to_owned(),
            })
    }
}

impl ServiceManager for FakeServices {
    fn install(&self, registration: &Registration) -> Result<(), ServiceError> {
        registration.check()?;
        let name = &registration.name;
        let mut state = self.state();
        match state.ours(name) {
            Ok(service) => service.registration = registration.clone(),
            Err(ServiceError::NotInstalled { .. }) => {
                let service = Service {
                    registration: registration.clone(),
                    status: ServiceStatus::Stopped { exit_code: None },
                };
                state.ours.insert(name.clone(), service);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn start(&self, name: &str, timeout: Duration) -> Result<(), ServiceError> {
        let mut state = self.state();
        let never_ready = state.never_ready.contains(name);
        state.next_process += 1;
        let process = state.next_process;
        let service = state.ours(name)?;
        if never_ready {
            service.status = ServiceStatus::Starting;
            return Err(ServiceError::timeout("start", name, timeout));
        }
        if !matches!(service.status, ServiceStatus::Running { .. }) {
            service.status = ServiceStatus::Running {
                process: Some(process),
            };
        }
        Ok(())
    }

    fn stop(&self, name: &str, timeout: Duration) -> Result<(), ServiceError> {
        let mut state = self.state();
        let never_stops = state.never_stops.contains(name);
        let service = state.ours(name)?;
        if never_stops && !matches!(service.status, ServiceStatus::Stopped { .. }) {
            service.status = ServiceStatus::Stopping;
            return Err(ServiceError::timeout("stop", name, timeout));
        }
        service.status = ServiceStatus::Stopped { exit_code: Some(0) };
        Ok(())
    }

    fn status(&self, name: &str) -> Result<ServiceStatus, ServiceError> {
        let mut state = self.state();
        if state.foreign.contains(name) {
            return Ok(ServiceStatus::Running { process: None });
        }
        Ok(state
            .ours(name)
            .map_or(ServiceStatus::NotInstalled, |service| service.status))
    }

    fn uninstall(&self, name: &str) -> Result<(), ServiceError> {
        match self.stop(name, Duration::ZERO) {
            Ok(()) => {
                self.state().ours.remove(name);
                Ok(())
            }
            Err(ServiceError::NotInstalled { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn list_ours(&self) -> Result<Vec<String>, ServiceError> {
        Ok(self.state().ours.keys().cloned().collect())
    }
}
