//! A machine whose facts a test sets. Its clocks move only when told to.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use transom_model::windows::WindowsVersion;
use transom_model::{Arch, Os};

use super::{
    Counters, Disk, Interface, Load, Machine, MachineError, Memory, MemoryInUse, Processors,
    RouteEntry, Surroundings, System,
};

/// Everything a fake machine tells; change it with [`FakeMachine::update`].
#[derive(Debug, Clone)]
pub struct FakeFacts {
    pub system: System,
    pub memory: Memory,
    pub processors: Processors,
    pub load: Option<Load>,
    pub counters: Counters,
    pub disks: Vec<Disk>,
    pub interfaces: Vec<Interface>,
    pub routes: Vec<RouteEntry>,
    pub time_zone: Option<String>,
    pub surroundings: Surroundings,
    boots: u64,
    uptime: Duration,
    now: SystemTime,
}

/// A machine whose facts a test sets.
#[derive(Debug)]
pub struct FakeMachine {
    facts: Mutex<FakeFacts>,
}

impl FakeMachine {
    /// A small machine without a network.
    pub fn new(os: Os) -> Self {
        let windows_version = match os {
            Os::Linux => None,
            Os::Windows => Some(WindowsVersion::new(10, 0, 20348, Some(2113))),
        };
        let system = System {
            os,
            pretty_name: format!("Fake {os}"),
            kernel: windows_version
                .map_or_else(|| "6.1.0".to_owned(), |version| version.to_string()),
            arch: Some(Arch::Amd64),
            host_name: "fake".to_owned(),
            windows_version,
            edition: None,
            installation: None,
        };
        Self {
            facts: Mutex::new(FakeFacts {
                system,
                memory: Memory {
                    total: 4 << 30,
                    available: 3 << 30,
                    swap_total: 0,
                    swap_free: 0,
                },
                processors: Processors {
                    logical: 2,
                    allowed: 2,
                },
                load: None,
                counters: Counters {
                    processor_time: Some(Duration::from_secs(10)),
                    memory: Some(MemoryInUse {
                        usage: 1 << 30,
                        working_set: 1 << 30,
                        ..MemoryInUse::default()
                    }),
                    processes: Some(100),
                    most_processes: (os == Os::Linux).then_some(32_768),
                    traffic: Vec::new(),
                },
                disks: Vec::new(),
                interfaces: Vec::new(),
                routes: Vec::new(),
                time_zone: Some("UTC".to_owned()),
                surroundings: Surroundings::default(),
                boots: 1,
                uptime: Duration::from_mins(1),
                now: SystemTime::UNIX_EPOCH + Duration::from_hours(500_000),
            }),
        }
    }

    pub fn update(&self, change: impl FnOnce(&mut FakeFacts)) {
        change(&mut self.facts());
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        let mut facts = self.facts();
        facts.uptime += by;
        facts.now += by;
    }

    /// Boots the machine anew.
    pub fn reboot(&self) {
        let mut facts = self.facts();
        facts.boots += 1;
        facts.uptime = Duration::ZERO;
    }

    fn facts(&self) -> MutexGuard<'_, FakeFacts> {
        // A panicking test leaves facts behind that are still facts.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machine for FakeMachine {
    fn os(&self) -> Os {
        self.facts().system.os
    }

    fn system(&self) -> Result<System, MachineError> {
        Ok(self.facts().system.clone())
    }

    fn memory(&self) -> Result<Memory, MachineError> {
        Ok(self.facts().memory)
    }

    fn processors(&self) -> Result<Processors, MachineError> {
        Ok(self.facts().processors)
    }

    fn load(&self) -> Result<Option<Load>, MachineError> {
        Ok(self.facts().load)
    }

    fn counters(&self) -> Counters {
        self.facts().counters.clone()
    }

    fn disks(&self) -> Result<Vec<Disk>, MachineError> {
        Ok(self.facts().disks.clone())
    }

    fn interfaces(&self) -> Result<Vec<Interface>, MachineError> {
        Ok(self.facts().interfaces.clone())
    }

    fn routes(&self) -> Result<Vec<RouteEntry>, MachineError> {
        Ok(self.facts().routes.clone())
    }

    fn boot_id(&self) -> Result<String, MachineError> {
        Ok(format!("fake-boot-{}", self.facts().boots))
    }

    fn uptime(&self) -> Result<Duration, MachineError> {
        Ok(self.facts().uptime)
    }

    fn now(&self) -> SystemTime {
        self.facts().now
    }

    fn time_zone(&self) -> Result<Option<String>, MachineError> {
        Ok(self.facts().time_zone.clone())
    }

    fn surroundings(&self) -> Result<Surroundings, MachineError> {
        Ok(self.facts().surroundings.clone())
    }
}
