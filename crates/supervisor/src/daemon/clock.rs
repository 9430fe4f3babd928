//! The machine's clocks and place, as the engine wants them.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use transom_host::machine::Machine;

use crate::engine::{Moment, Now, Place};

pub(super) fn now(machine: &dyn Machine) -> Now {
    // The uptime comes from the kernel without any file or device in between. Should it fail all the
    // same, deadlines stand still, which is better than a supervisor that ends.
    let uptime = machine.uptime().unwrap_or_else(|error| {
        tracing::error!(error = %error, "the machine does not tell its uptime");
        Duration::ZERO
    });
    let wall = Timestamp::try_from(machine.now()).unwrap_or(Timestamp::UNIX_EPOCH);
    Now {
        boot: Moment::from_uptime(uptime),
        wall,
    }
}

pub(super) fn place(machine: &dyn Machine) -> Place {
    let machine = machine
        .system()
        .map(|system| system.host_name)
        .unwrap_or_default();
    Place {
        zone: TimeZone::system(),
        machine,
    }
}
