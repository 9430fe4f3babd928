//! Facts of the machine: memory, processors, disks, addresses, routes, clocks, build. Facts are read
//! anew at each call and nothing here changes the machine.

mod counters;
mod facts;
pub mod fake;
pub mod features;
#[cfg(target_os = "linux")]
mod linux;
pub mod network;
#[cfg(target_os = "linux")]
mod proc_text;
#[cfg(windows)]
pub(crate) mod registry;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::LinuxMachine as Native;
#[cfg(windows)]
pub use windows::WindowsMachine as Native;

use std::io;
use std::time::{Duration, SystemTime};

use transom_model::Os;

pub use counters::{Counters, MemoryInUse, Traffic};
pub use facts::{
    Disk, Interface, InterfaceAddress, Load, Memory, Processors, RouteEntry, Surroundings, System,
};

/// The system that this program was built for.
#[cfg(target_os = "linux")]
pub const OS: Os = Os::Linux;
/// The system that this program was built for.
#[cfg(windows)]
pub const OS: Os = Os::Windows;

/// Tells facts of a machine.
pub trait Machine: Send + Sync {
    fn os(&self) -> Os;

    /// Name, build, kernel, architecture and host name.
    fn system(&self) -> Result<System, MachineError>;

    fn memory(&self) -> Result<Memory, MachineError>;

    fn processors(&self) -> Result<Processors, MachineError>;

    /// How much there is to do; None where the system keeps no such count.
    fn load(&self) -> Result<Option<Load>, MachineError>;

    /// What the machine counts while it works.
    fn counters(&self) -> Counters;

    /// Mounted file systems or volumes that hold files of people.
    fn disks(&self) -> Result<Vec<Disk>, MachineError>;

    /// Network interfaces with their addresses, by index.
    fn interfaces(&self) -> Result<Vec<Interface>, MachineError>;

    /// Routes of the main table, IPv4 first.
    fn routes(&self) -> Result<Vec<RouteEntry>, MachineError>;

    /// A value that is the same until the machine boots again.
    fn boot_id(&self) -> Result<String, MachineError>;

    /// Time since the machine booted, sleep included. Never goes back.
    fn uptime(&self) -> Result<Duration, MachineError>;

    /// The time of day.
    fn now(&self) -> SystemTime;

    /// The name of the time zone: `Europe/Berlin` on Linux, `W. Europe Standard Time` on Windows.
    fn time_zone(&self) -> Result<Option<String>, MachineError>;

    /// Whether there is a hypervisor, a container or Wine around the system.
    fn surroundings(&self) -> Result<Surroundings, MachineError>;

    /// The route that packets for anywhere take: the default route with the lowest metric, IPv4
    /// before IPv6.
    fn default_route(&self) -> Result<Option<RouteEntry>, MachineError> {
        Ok(facts::default_route(&self.routes()?).cloned())
    }
}

/// Why a fact could not be told.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("could not read {what}")]
    Read { what: String, source: io::Error },
    #[error("could not make sense of {what}: `{text}`")]
    Unclear { what: String, text: String },
}

impl MachineError {
    pub(crate) fn read(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Read { what, source }
    }
}
