//! When leases end. Only the clocks: which keys belong to a lease is known to the store.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::{LeaseId, StoreError};

/// Longer leases end after this; clocks cannot count further on every system.
const LONGEST: Duration = Duration::from_hours(365 * 24);

#[derive(Clone, Copy, Debug)]
struct Clock {
    length: Duration,
    deadline: Instant,
}

/// The leases that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    clocks: HashMap<LeaseId, Clock>,
}

impl Leases {
    /// Begins a lease, or begins it again with another length.
    pub(crate) fn begin(&mut self, lease: LeaseId, length: Duration, now: Instant) -> Instant {
        let length = length.min(LONGEST);
        let deadline = now + length;
        self.clocks.insert(lease, Clock { length, deadline });
        deadline
    }

    pub(crate) fn renew(&mut self, lease: LeaseId, now: Instant) -> Result<(), StoreError> {
        let clock = self
            .clocks
            .get_mut(&lease)
            .ok_or(StoreError::NoLease(lease))?;
        clock.deadline = now + clock.length;
        Ok(())
    }

    pub(crate) fn contains(&self, lease: LeaseId) -> bool {
        self.clocks.contains_key(&lease)
    }

    pub(crate) fn lengths(&self) -> Vec<(LeaseId, Duration)> {
        let lengths = self
            .clocks
            .iter()
            .map(|(lease, clock)| (*lease, clock.length));
        lengths.collect()
    }

    pub(crate) fn deadline(&self, lease: LeaseId) -> Option<Instant> {
        self.clocks.get(&lease).map(|clock| clock.deadline)
    }

    /// Ends a lease; whether it was there.
    pub(crate) fn end(&mut self, lease: LeaseId) -> bool {
        self.clocks.remove(&lease).is_some()
    }
}
